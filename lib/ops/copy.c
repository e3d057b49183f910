/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - stele_copy(): a snapshot to another target, new or not
 *
 * A target without an image gets one that is committed empty before anything is
 * sent: from there on there is but one case, an image to which a snapshot is
 * added, however often the copy is interrupted.
 */
#include "lib/ops/copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/sections.h"
#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/base/workers.h"
#include "lib/device/guard.h"
#include "lib/device/name.h"
#include "lib/node/open.h"
#include "lib/posix/shown.h"
#include "lib/posix/tree.h"
#include "lib/read/dataset.h"
#include "lib/segment/builder.h"
#include "lib/segment/segment_copy.h"
#include "lib/txn/addition.h"
#include "lib/txn/claim.h"
#include "lib/txn/intent.h"
#include "lib/txn/posix.h"

#define JOBS_PER_CORE 4

/* Can the target show it as files? */
static int check_granules(const struct stele_snapshot *snapshot, const struct stele_device *to,
			  const struct stele_log *log)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < snapshot->segment_count; i++)
		ret = stele_posix_check_granule(&snapshot->segments[i].descriptor,
						stele_posix_block_min(to), "", log);
	return ret;
}

static uint64_t descriptor_size(const struct stele_segment *segment)
{
	return segment->descriptor.block_count * STELE_BLOCK_SIZE;
}

/* ---- room ------------------------------------------------------------------ */

/* Of the catalog of an image that holds but this; generously. */
static uint64_t catalog_size(const struct stele_snapshot *snapshot)
{
	const struct stele_catalog_counts counts = {
		.segments = snapshot->segment_count,
		.snapshots = 1,
		.refs = snapshot->segment_count,
		.free = 2 * snapshot->segment_count + 8,
		.notes_size = snapshot->info.note_size,
	};

	return stele_stream_blocks(stele_catalog_stream_size(&counts)) *
	       STELE_BLOCK_SIZE;
}

/* Bytes that an empty target needs for the snapshot, catalogs and all. */
static uint64_t need_of(const struct stele_snapshot *snapshot)
{
	/* One for each segment, one at the begin, one at the end, two spare. */
	uint64_t end = STELE_DATA_OFFSET + (snapshot->segment_count + 4ULL) *
						   catalog_size(snapshot);

	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		const struct stele_segment *s = &snapshot->segments[i];

		if (s->descriptor.boundary)
			end = round_up(end, s->descriptor.boundary);
		end += s->descriptor.size +
		       stele_deleted_blocks(s->deleted.word_count) *
			       STELE_BLOCK_SIZE;
	}
	return end;
}

/* Have space handed out for all that will be written. */
static int try_room(const struct stele_copier *c)
{
	uint64_t offset, catalog;
	int ret = stele_txn_commit_size(c->txn, &catalog);

	catalog += catalog_size(c->snapshot);
	for (uint32_t i = 0; ret == 0 && i < c->snapshot->segment_count; i++) {
		const struct stele_segment *s = &c->snapshot->segments[i];
		const uint64_t deleted = stele_deleted_blocks(s->deleted.word_count);

		if (!stele_txn_segment(c->txn, s->descriptor.id))
			ret = stele_txn_allocate(c->txn, s->descriptor.size,
						  s->descriptor.boundary,
						  &offset);
		if (ret == 0)
			ret = stele_txn_allocate(c->txn, catalog, 0, &offset);
		if (ret == 0 && deleted)
			ret = stele_txn_allocate(c->txn,
						  deleted * STELE_BLOCK_SIZE, 0,
						  &offset);
	}
	return ret;
}

/*
 * Too small a target is refused before a byte is sent. If it had to grow, that
 * is committed: else it would not be there for the copy that goes on.
 */
static int make_room(struct stele_copier *c)
{
	int ret = try_room(c);

	if (ret == 0 && c->txn->old_target_size)
		ret = stele_txn_publish(c->txn, c->txn->time);
	if (ret < 0)
		return ret;
	return stele_txn_restart(c->txn);
}

/* ---- segments -------------------------------------------------------------- */

int stele_copier_progress(void *user, uint64_t bytes, uint64_t samples)
{
	struct stele_copier *c = user;
	struct stele_progress progress = c->done;

	progress.bytes_done += bytes;
	progress.samples_done += samples;
	return c->progress ? c->progress(c->progress_user, &progress) : 0;
}

static int begin_progress(struct stele_copier *c)
{
	c->done = (struct stele_progress){
		.size = sizeof(c->done),
		.phase = STELE_PHASE_COPY,
		.bytes_total = c->report->total_size,
	};
	for (uint32_t i = 0; i < c->snapshot->segment_count; i++)
		c->done.samples_total +=
			c->snapshot->segments[i].descriptor.sample_count;
	return stele_copier_progress(c, 0, 0) ? -ECANCELED : 0;
}

static int commit_segment(struct stele_copier *c,
			  const struct stele_segment *segment, uint64_t offset)
{
	const struct stele_descriptor *d = &segment->descriptor;
	int ret;

	c->txn->feature_incompat |=
		stele_descriptor_features(d, segment->fields);
	ret = stele_txn_add_segment(c->txn,
				     &(struct stele_catalog_segment){
					     .id = d->id,
					     .offset = offset,
					     .size = d->size,
					     .descriptor_size =
						     descriptor_size(segment),
					     .sample_count = d->sample_count,
				     });
	return ret < 0 || c->staged ? ret : stele_txn_publish(c->txn, c->txn->time);
}

static int send_segment(struct stele_copier *c,
			const struct stele_segment *segment)
{
	struct stele_segment_copy copy = {
		.image = c->image,
		.segment = segment,
		.to = c->txn->image->dev,
		.jobs = c->jobs,
		.progress = stele_copier_progress,
		.progress_user = c,
	};
	int ret = stele_txn_allocate(c->txn, segment->descriptor.size,
				      segment->descriptor.boundary,
				      &copy.to_offset);

	if (ret < 0)
		return ret;
	if (!c->staged)
		stele_txn_keep_space(c->txn); /* for the copy that goes on */
	if (c->txn->dry) {
		copy.sent_size = segment->descriptor.size;
		c->txn->posix = false; /* of what is not sent no tree can be made */
	} else {
		ret = stele_segment_copy(&copy);
	}
	c->report->sent_size += copy.sent_size;
	c->report->resumed_size += copy.resumed_size;
	if (ret == 0)
		ret = commit_segment(c, segment, copy.to_offset);
	c->report->segments_sent += ret == 0;
	return ret;
}

static int take_segment(struct stele_copier *c, const struct stele_segment *segment)
{
	const uint64_t id = segment->descriptor.id;
	int ret;

	if (!stele_txn_segment(c->txn, id))
		return send_segment(c, segment);
	ret = stele_copier_check(c, segment);
	if (ret != -ENODATA)
		return ret;
	stele_log_warning(&c->txn->image->log,
			  "segment %016" PRIx64 " of an interrupted copy is damaged: it is sent "
			  "again", id);
	ret = stele_txn_drop_segment(c->txn, id);
	return ret ? ret : send_segment(c, segment);
}

static int pass_segments(struct stele_copier *c)
{
	int ret = begin_progress(c);

	for (uint32_t i = 0; ret == 0 && i < c->snapshot->segment_count; i++) {
		const struct stele_segment *s = &c->snapshot->segments[i];

		ret = take_segment(c, s);
		if (ret < 0)
			break;
		c->done.bytes_done += s->descriptor.size;
		c->done.samples_done += s->descriptor.sample_count;
		if (stele_copier_progress(c, 0, 0))
			ret = -ECANCELED;
	}
	return ret;
}

/* ---- the snapshot ---------------------------------------------------------- */

/* Of the source's parent, if it was copied before. */
static uint64_t find_parent(const struct stele_copier *c)
{
	const struct stele_catalog *catalog = &c->image->catalog;
	struct stele_catalog_snapshot info;

	for (uint32_t i = 0; i < catalog->counts.snapshots; i++) {
		const struct stele_txn_snapshot *there;

		stele_catalog_snapshot(catalog, i, &info);
		if (info.id != c->snapshot->info.parent)
			continue;
		there = stele_txn_find(c->txn, info.name);
		return there && !memcmp(there->info.digest, info.digest,
					STELE_DIGEST_SIZE) ?
			       there->info.id :
			       0;
	}
	return 0;
}

/* As it lies on the target by now; of a dry run, which sends none, as it will be. */
static int add_segment(struct stele_copier *c, uint32_t index)
{
	const struct stele_segment *from = &c->snapshot->segments[index];
	struct stele_segment there = {.descriptor = from->descriptor};
	uint64_t *numbers;
	int ret = 0;

	if (!c->txn->dry)
		ret = stele_segment_load_bare(
			c->txn->image,
			stele_txn_segment(c->txn, from->descriptor.id), &there);
	if (ret < 0)
		return ret;
	ret = stele_addition_append(c->txn->work, &there.descriptor);
	stele_segment_release(&there);
	if (ret < 0)
		return ret;
	numbers = stele_deleted_numbers(&from->deleted);
	ret = numbers ? stele_addition_delete(c->txn->work, index, numbers,
					      from->deleted.count, 0) :
			-ENOMEM;
	free(numbers);
	return ret;
}

static int add_snapshot(struct stele_copier *c)
{
	const struct stele_catalog_snapshot *from = &c->snapshot->info;
	char *note = malloc((size_t)from->note_size + 1);
	struct stele_addition *work;
	uint32_t index;
	int ret = note ? stele_snapshot_find(c->image, from->name, NULL, &index) :
			 -ENOMEM;

	if (ret == 0)
		ret = stele_addition_begin(c->txn, NULL);
	for (uint32_t i = 0; ret == 0 && i < c->snapshot->segment_count; i++)
		ret = add_segment(c, i);
	if (ret == 0) {
		work = c->txn->work;
		stele_catalog_note(&c->image->catalog, index, note);
		work->note = note;
		work->note_size = from->note_size;
		work->parent = find_parent(c);
		work->time = from->time;
		work->source_time = from->source_time;
		work->payload_size = from->payload_size;
		work->expected = c->snapshot->digest;
		ret = stele_addition_end(work, c->name);
	}
	stele_addition_free(c->txn);
	free(note);
	return ret;
}

/* Return: 1 it is there; 0 it is not; -EEXIST (logged). */
static int find_snapshot(const struct stele_copier *c)
{
	const struct stele_txn_snapshot *there =
		stele_txn_find(c->txn, c->name);
	char text[STELE_CLAIM_TEXT_SIZE];

	if (!there)
		return 0;
	if (!memcmp(there->info.digest, c->snapshot->digest, STELE_DIGEST_SIZE))
		return 1;
	stele_claim_describe(c->txn->image, text);
	stele_log_error(&c->txn->image->log,
			"the target has another snapshot '%s'; it holds %s", c->name,
			text);
	return -EEXIST;
}

unsigned int stele_copy_jobs(void)
{
	const unsigned int jobs = JOBS_PER_CORE * stele_processors();

	return jobs < STELE_COPY_JOBS_MAX ? jobs : STELE_COPY_JOBS_MAX;
}

int stele_copy_on(struct stele_copier *c)
{
	struct stele_copy_report *report = c->report;
	int ret = find_snapshot(c);

	memcpy(report->digest, c->snapshot->digest, STELE_DIGEST_SIZE);
	strncpy(report->snapshot, c->name, sizeof(report->snapshot) - 1);
	report->created = !ret;
	report->sample_count = c->snapshot->sample_count;
	report->segment_count = c->snapshot->segment_count;
	for (uint32_t i = 0; i < report->segment_count; i++)
		report->total_size += c->snapshot->segments[i].descriptor.size;
	for (uint32_t i = 0; ret > 0 && i < report->segment_count; i++)
		stele_copier_unread(c, &c->snapshot->segments[i]);
	if (ret)
		return ret < 0 ? ret : 0;
	if (c->txn->posix) /* before anything is sent */
		ret = check_granules(c->snapshot, c->txn->image->dev, &c->txn->image->log);
	if (ret == 0 && !c->staged)
		ret = make_room(c);
	if (ret == 0)
		ret = pass_segments(c);
	if (ret == 0)
		ret = add_snapshot(c);
	if (ret == 0 && !c->staged)
		ret = stele_txn_publish(c->txn, c->txn->time);
	return ret;
}

/* ---- stele_copy() ------------------------------------------------------------- */

struct copy {
	struct stele_copy_opts opts;
	struct stele_log log;
	struct stele_dataset *ds; /* the source */
	struct stele_target from, to;
	struct stele_txn txn;
	struct stele_copy_report *report;
	char lost[STELE_NAME_SIZE_MAX + 1]; /* of the target, in words; "": nothing */
};

static int check_options(struct copy *c, const struct stele_copy_opts *opts)
{
	int ret = stele_options_get(opts, &c->opts, sizeof(c->opts), &c->log);

	if (!ret)
		ret = stele_options_flags(c->opts.flags,
					  STELE_FORCE |
						  STELE_DRY_RUN,
					  &c->log);
	if (!ret)
		ret = stele_options_check(&(struct stele_option){
			"reserved", c->opts.reserved, 0}, 1, &c->log);
	if (ret < 0)
		return ret;
	if (c->opts.label && strlen(c->opts.label) > STELE_NAME_SIZE_MAX) {
		stele_log_error(&c->log, "a label has at most %u bytes",
				STELE_NAME_SIZE_MAX);
		return -EINVAL;
	}
	if (!c->opts.jobs)
		c->opts.jobs = stele_copy_jobs();
	if (c->opts.jobs > STELE_COPY_JOBS_MAX)
		c->opts.jobs = STELE_COPY_JOBS_MAX;
	return stele_options_time(c->opts.time, &c->log, &c->opts.time);
}

/* ---- source and target ------------------------------------------------------- */

static int open_source(struct copy *c, const char *source)
{
	struct stele_mapping mapping = {0};
	int ret;

	if (!source)
		return -EINVAL;
	ret = stele_dataset_open(source,
				 &STELE_OPTS(stele_open_opts, .log = c->opts.log,
					     .log_user = c->opts.log_user,
					     .backend = c->opts.backend),
				 &c->ds);
	if (ret == 0)
		ret = stele_snapshot_check_names(&c->ds->image, &c->ds->snapshot);
	if (ret < 0)
		return ret;
	/* What it is, to compare it with the target. */
	ret = stele_target_parse(source, &c->log, &c->from);
	if (ret == 0)
		ret = stele_target_resolve(&c->from, &c->log, &mapping);
	stele_mapping_release(&mapping);
	return ret;
}

/* Of "rbd:...": the same but for options. */
static bool is_same_image(const struct copy *c)
{
	const size_t from = strcspn(c->from.path, "?");
	const size_t to = strcspn(c->to.path, "?");

	return stele_path_is_rbd(c->from.path) &&
	       stele_path_is_rbd(c->to.path) && from == to &&
	       !memcmp(c->from.path, c->to.path, from);
}

static int parse_target(struct copy *c, const char *target)
{
	bool named;
	int ret;

	if (!target)
		return -EINVAL;
	ret = stele_target_parse(target, &c->log, &c->to);
	if (ret < 0)
		return ret;
	named = c->to.snapshot;
	ret = stele_target_resolve_image(&c->to, &c->log);
	/* Of a mapped name only the path is wanted. */
	if (!named) {
		free(c->to.snapshot);
		c->to.snapshot = NULL;
	}
	if (ret == 0 && (stele_file_shares(c->ds->image.dev, c->to.path) || is_same_image(c))) {
		stele_log_error(&c->log, "'%s' is the source itself%s", target,
				stele_file_is(c->ds->image.dev, c->to.path) ||
						stele_path_is_rbd(c->to.path) ?
					"" : ", or overlaps it");
		ret = -EINVAL;
	}
	return ret;
}

static const char *name_of(const struct copy *c)
{
	return c->to.snapshot ? c->to.snapshot : c->ds->snapshot.info.name;
}

/* ---- a new image ------------------------------------------------------------- */

/*
 * Is there an image that a snapshot can be added to? Whatever else is there, the
 * claim says. Return: 1; 0; errno.
 */
static int find_image(struct copy *c, const char *target)
{
	struct stele_target unused = {0};
	struct stele_device *dev = NULL;
	struct stele_image image;
	int ret;

	if (c->opts.flags & STELE_FORCE)
		return 0;
	ret = stele_target_open(target, true, c->opts.backend, NULL, &unused,
				&dev);
	stele_target_release(&unused);
	if (ret < 0)
		return 0;
	ret = stele_image_load(dev, NULL, &image);
	if (ret < 0) {
		stele_device_close(dev);
		return 0;
	}
	stele_image_release(&image);
	return 1;
}

/* An image that holds nothing, yet is whole. */
static int begin_image(const struct copy *c, const struct stele_claim *claim)
{
	const struct stele_new_image what = {
		.uuid = c->opts.uuid,
		.label = c->opts.label ? c->opts.label : c->ds->image.sb.label,
		.lost = claim->lost,
		.size = claim->image_size,
		.time = c->opts.time,
	};
	struct stele_txn txn;
	struct stele_catalog_segment tree;
	int ret = stele_txn_on_new(&txn, claim->dev, &what, &c->log);

	if (ret == 0 && stele_posix_find(&c->ds->image, &tree)) {
		if (check_granules(&c->ds->snapshot, claim->dev, NULL) == 0)
			ret = stele_txn_set_posix(&txn, true);
		else
			stele_log_warning(&c->log,
					  "the copy cannot be mounted as files, unlike its "
					  "source: its device has blocks larger than the granule");
	}
	if (ret == 0)
		ret = stele_txn_publish(&txn, c->opts.time);
	stele_txn_release(&txn);
	return ret;
}

/*
 * A copy that was interrupted may even have published a snapshot, perhaps by another name:
 * nobody has used it, so all that is there is looked at again.
 */
static int take_back(struct copy *c)
{
	struct stele_txn *txn = &c->txn;
	char name[STELE_NAME_SIZE_MAX + 1];
	const struct stele_txn_snapshot *there;
	int ret = 0;

	if (!txn->snapshot_count)
		return 0;
	while (ret == 0 && (there = stele_txn_find(txn, NULL))) {
		strcpy(name, there->info.name);
		ret = stele_txn_remove_snapshot(txn, name);
	}
	while (ret == 0 && txn->deleted_count)
		stele_txn_forget_snapshot(txn, 0);
	return ret ? ret : stele_txn_publish(txn, c->opts.time);
}

/* On a device that nobody else could open: of a dry run, or of a file that has no name yet. */
static int begin_on(struct copy *c, struct stele_claim *claim)
{
	struct stele_device *dev = claim->dev;
	int ret;

	stele_intent_end(dev);
	claim->dev = NULL; /* the transaction's, also after an error */
	ret = stele_txn_on_device(&c->txn, dev, &c->log);
	if (ret < 0)
		return ret;
	if (!claim->dry) {
		claim->dev = dev;
		c->txn.borrowed = true;
		c->txn.claim = claim;
	}
	return claim->resumed ? take_back(c) : 0;
}

static int make_image(struct copy *c, const char *target)
{
	struct stele_claim *claim = calloc(1, sizeof(*claim));
	const struct stele_claim_opts want = {
		.backend = c->opts.backend,
		.snapshot = name_of(c),
		.needed = need_of(&c->ds->snapshot),
		.file_size = c->opts.file_size,
		.object_size = c->opts.object_size,
		.force = c->opts.flags & STELE_FORCE,
		.dry = c->opts.flags & STELE_DRY_RUN,
		.replace = true,
		.copy_of = &c->ds->snapshot,
		.copy_from = c->ds->image.dev,
	};
	int ret = claim ? 0 : -ENOMEM;

	/* The transaction that follows asks the same; nothing is made for it to refuse. */
	if (ret == 0 && !stele_path_is_rbd(c->to.path))
		ret = stele_guard_claimed(c->to.path, &c->log);
	if (ret == 0)
		ret = stele_claim_open(claim, c->to.path, &want, &c->log);
	if (ret == 0)
		ret = stele_claim_take(claim);
	if (ret == 0 && !claim->resumed)
		ret = begin_image(c, claim);
	if (ret == 0 && (want.dry || claim->beside))
		ret = begin_on(c, claim);
	else if (ret == 0)
		memcpy(c->lost, claim->lost, sizeof(c->lost));
	if (!c->txn.claim) {
		if (claim)
			stele_claim_drop(claim, ret < 0);
		free(claim);
	}
	/* Another copy may have made it meanwhile. */
	return ret == -EEXIST && find_image(c, target) ? 0 : ret;
}

/*
 * What the same copy would go on with is kept. What it could not make good is not, nor is a whole
 * one that cannot take the place of the old.
 */
static int finish_beside(struct copy *c, int ret)
{
	struct stele_claim *claim = c->txn.claim;
	const bool whole = ret == 0;

	if (whole)
		ret = stele_claim_finish(claim);
	if (!ret)
		return 0;
	claim->keep = !whole && claim->copy_of && ret != -EBADMSG && ret != -EUCLEAN &&
		      !stele_file_check_whole(claim->dev) &&
		      (claim->resumed || c->report->sent_size);
	if (!claim->keep) /* nobody shall be told that it can be resumed */
		c->report->sent_size = c->report->resumed_size = 0;
	return ret;
}

/* ---- copy -------------------------------------------------------------------- */

/* An image that is there stays the one that it is. */
static int check_image(const struct copy *c)
{
	const struct stele_superblock *sb = &c->txn.image->sb;
	const struct stele_copy_opts *opts = &c->opts;
	const char *what = NULL;

	if (opts->label && strcmp(opts->label, sb->label) != 0)
		what = "label";
	else if (opts->uuid && memcmp(opts->uuid, sb->uuid, STELE_UUID_SIZE) != 0)
		what = "UUID";
	else if (opts->file_size && opts->file_size != sb->image_size)
		what = "size";
	else if (opts->object_size && !stele_path_is_rbd(c->to.path))
		what = "object size";
	if (!what)
		return 0;
	stele_log_error(&c->log, "'%s' holds an image, whose %s is not set by a copy", c->to.path,
			what);
	return -EINVAL;
}

static int copy_to(struct copy *c, const char *target)
{
	int ret = stele_txn_check_name(name_of(c), &c->log);
	bool there;

	if (ret < 0)
		return ret;
	ret = find_image(c, target);
	there = ret > 0;
	if (ret == 0)
		ret = make_image(c, target);
	if (ret >= 0 && c->txn.state == STELE_TXN_CLOSED)
		ret = stele_txn_begin(&c->txn, target,
				      c->opts.flags & STELE_DRY_RUN,
				      c->opts.backend, &c->log);
	if (ret >= 0 && there)
		ret = check_image(c);
	if (ret < 0)
		return ret;
	c->txn.time = c->opts.time;
	ret = stele_copy_on(&(struct stele_copier){
		.image = &c->ds->image,
		.snapshot = &c->ds->snapshot,
		.txn = &c->txn,
		.name = name_of(c),
		.jobs = c->opts.jobs,
		.progress = c->opts.progress,
		.progress_user = c->opts.progress_user,
		.report = c->report,
	});
	return c->txn.claim ? finish_beside(c, ret) : ret;
}

static int do_copy(const char *source, const char *target,
		   const struct stele_copy_opts *opts,
		   struct stele_copy_report *report)
{
	struct stele_copy_report made = {0};
	struct copy c = {.report = &made};
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	ret = check_options(&c, opts);
	if (ret == 0)
		ret = stele_output_check(report, seconds, &c.log);
	if (ret == 0)
		ret = open_source(&c, source);
	if (ret == 0)
		ret = parse_target(&c, target);
	if (ret == 0)
		ret = copy_to(&c, target);
	if (ret < 0 && *c.lost)
		stele_log_error(&c.log, "'%s' has lost the image that it held: %s",
				c.to.path, c.lost);
	stele_txn_release(&c.txn);
	stele_dataset_close(c.ds);
	stele_target_release(&c.from);
	stele_target_release(&c.to);
	made.seconds = stele_seconds_since(&begin);
	stele_output_fill(report, &made, sizeof(made));
	return ret;
}

int stele_copy(const char *source, const char *target,
	       const struct stele_copy_opts *opts,
	       struct stele_copy_report *report)
{
	return STELE_CALL(do_copy(source, target, opts, report),
			  "cannot copy '%s' to '%s'", source, target);
}
