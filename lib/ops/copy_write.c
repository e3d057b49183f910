/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_write.c - room, segments, deleted lists, snapshot
 */
#include "lib/ops/copy_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/sections.h"
#include "lib/image/digest.h"
#include "lib/segment/segment_copy.h"

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

uint64_t stele_copier_need(const struct stele_snapshot *snapshot)
{
	/* One for each segment, one at the begin, one at the end, two spare. */
	uint64_t end = STELE_DATA_OFFSET + (snapshot->segment_count + 4ULL) *
						   catalog_size(snapshot);

	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		const struct stele_segment *s = &snapshot->segments[i];

		if (s->descriptor.boundary)
			end = round_up(end, s->descriptor.boundary);
		end += s->descriptor.size +
		       stele_deleted_blocks(s->deleted_count) *
			       STELE_BLOCK_SIZE;
	}
	return end;
}

/* Have space handed out for all that will be written. */
static int try_room(const struct stele_copier *c)
{
	uint64_t offset, catalog;
	int ret = stele_edit_commit_size(c->edit, &catalog);

	catalog += catalog_size(c->snapshot);
	for (uint32_t i = 0; ret == 0 && i < c->snapshot->segment_count; i++) {
		const struct stele_segment *s = &c->snapshot->segments[i];
		const uint64_t deleted = stele_deleted_blocks(s->deleted_count);

		if (!stele_edit_segment(c->edit, s->descriptor.id))
			ret = stele_edit_allocate(c->edit, s->descriptor.size,
						  s->descriptor.boundary,
						  &offset);
		if (ret == 0)
			ret = stele_edit_allocate(c->edit, catalog, 0, &offset);
		if (ret == 0 && deleted)
			ret = stele_edit_allocate(c->edit,
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
	struct stele_image *image = c->edit->image;
	int ret = try_room(c);

	if (ret == 0 && c->edit->old_target_size)
		ret = c->commit(c->commit_user, c->time);
	if (ret < 0)
		return ret;
	stele_edit_release(c->edit);
	return stele_edit_begin(image, c->edit);
}

/* ---- segments -------------------------------------------------------------- */

/* But for their places: is one descriptor what the other one is? */
static bool same_descriptor(const struct stele_segment *a,
			    const struct stele_segment *b)
{
	const size_t place = offsetof(struct stele_disk_descriptor, offset);
	const struct stele_descriptor *x = &a->descriptor, *y = &b->descriptor;

	if (x->block_count != y->block_count)
		return false;
	for (uint64_t i = 0; i < x->block_count; i++) {
		struct stele_disk_block one = x->blocks[i];
		struct stele_disk_block other = y->blocks[i];

		if (i == 0) {
			memset(one.payload + place, 0, sizeof(le64));
			memset(other.payload + place, 0, sizeof(le64));
		}
		if (memcmp(one.payload, other.payload, sizeof(one.payload)))
			return false;
	}
	return true;
}

/* The target has a segment of this id. Is it this one? */
static int check_present(struct stele_copier *c,
			 const struct stele_segment *segment,
			 const struct stele_catalog_segment *where)
{
	struct stele_segment there;
	int ret = stele_segment_load_bare(c->edit->image, where, &there);

	if (ret < 0)
		return ret;
	if (!same_descriptor(segment, &there)) {
		stele_log_error(&c->edit->image->log,
				"the target has another segment of the id %" PRIx64
				": delete the snapshots that use it, and free "
				"it with gc",
				segment->descriptor.id);
		ret = -EEXIST;
	}
	stele_segment_release(&there);
	return ret;
}

static int on_progress(void *user, uint64_t done)
{
	struct stele_copier *c = user;

	return c->progress ? c->progress(c->progress_user, c->done + done,
					 c->report->total_size) :
			     0;
}

static int commit_segment(struct stele_copier *c,
			  const struct stele_segment *segment, uint64_t offset)
{
	const struct stele_descriptor *d = &segment->descriptor;
	int ret;

	c->edit->feature_incompat |=
		stele_descriptor_features(d, segment->fields);
	ret = stele_edit_add_segment(c->edit,
				     &(struct stele_catalog_segment){
					     .id = d->id,
					     .offset = offset,
					     .size = d->size,
					     .descriptor_size =
						     descriptor_size(segment),
					     .sample_count = d->sample_count,
				     });
	return ret < 0 ? ret : c->commit(c->commit_user, c->time);
}

static int send_segment(struct stele_copier *c,
			const struct stele_segment *segment)
{
	struct stele_segment_copy copy = {
		.image = c->image,
		.segment = segment,
		.to = c->edit->image->dev,
		.jobs = c->jobs,
		.progress = on_progress,
		.progress_user = c,
	};
	int ret = stele_edit_allocate(c->edit, segment->descriptor.size,
				      segment->descriptor.boundary,
				      &copy.to_offset);

	if (ret < 0)
		return ret;
	stele_edit_keep_space(c->edit); /* for the copy that goes on */
	ret = stele_segment_copy(&copy);
	c->report->sent_size += copy.sent_size;
	c->report->resumed_size += copy.resumed_size;
	if (ret == 0)
		ret = commit_segment(c, segment, copy.to_offset);
	c->report->segments_sent += ret == 0;
	return ret;
}

static int pass_segments(struct stele_copier *c)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < c->snapshot->segment_count; i++) {
		const struct stele_segment *s = &c->snapshot->segments[i];
		const struct stele_catalog_segment *where =
			stele_edit_segment(c->edit, s->descriptor.id);

		ret = where ? check_present(c, s, where) : send_segment(c, s);
		if (ret == 0)
			c->done += s->descriptor.size;
		if (ret == 0 && on_progress(c, 0))
			ret = -ECANCELED;
	}
	return ret;
}

/* ---- the snapshot ---------------------------------------------------------- */

/* What lies on the target by now must have the digest that the source's has. */
static int check_digest(struct stele_copier *c)
{
	const uint32_t count = c->snapshot->segment_count;
	struct stele_digest_part *parts = calloc(count + 1, sizeof(*parts));
	struct stele_hash *hash = NULL;
	uint8_t digest[STELE_DIGEST_SIZE];
	int ret = parts ? stele_hash_new(&hash) : -ENOMEM;

	for (uint32_t i = 0; ret == 0 && i < count; i++) {
		const struct stele_segment *from = &c->snapshot->segments[i];
		const struct stele_catalog_segment *where = stele_edit_segment(
			c->edit, from->descriptor.id);
		struct stele_segment there;

		ret = stele_segment_load_bare(c->edit->image, where, &there);
		if (ret < 0)
			break;
		memcpy(parts[i].schema_digest, there.descriptor.schema_digest,
		       STELE_DIGEST_SIZE);
		memcpy(parts[i].tree_root, there.descriptor.tree_root,
		       STELE_DIGEST_SIZE);
		parts[i].sample_count = there.descriptor.sample_count;
		parts[i].deleted = from->deleted;
		parts[i].deleted_count = from->deleted_count;
		stele_segment_release(&there);
	}
	if (ret == 0) {
		stele_hash_snapshot(hash, parts, count, digest);
		if (memcmp(digest, c->snapshot->digest, sizeof(digest)) != 0) {
			stele_log_error(&c->edit->image->log,
					"what was copied has another digest");
			ret = -EBADMSG;
		}
	}
	stele_hash_free(hash);
	free(parts);
	return ret;
}

/* Of the source's parent, if it was copied before. */
static uint64_t find_parent(const struct stele_copier *c)
{
	const struct stele_catalog *catalog = &c->image->catalog;
	struct stele_catalog_snapshot info;

	for (uint32_t i = 0; i < catalog->counts.snapshots; i++) {
		const struct stele_edit_snapshot *there;

		stele_catalog_snapshot(catalog, i, &info);
		if (info.id != c->snapshot->info.parent)
			continue;
		there = stele_edit_snapshot(c->edit, info.name);
		return there && !memcmp(there->digest, info.digest,
					STELE_DIGEST_SIZE) ?
			       there->id :
			       0;
	}
	return 0;
}

static int read_note(const struct stele_copier *c,
		     struct stele_edit_snapshot *snapshot)
{
	uint32_t index;
	int ret = stele_snapshot_find(c->image, c->snapshot->info.name, NULL,
				      &index);

	if (ret < 0)
		return ret;
	snapshot->note_size = c->snapshot->info.note_size;
	snapshot->note = malloc((size_t)snapshot->note_size + 1);
	if (!snapshot->note)
		return -ENOMEM;
	stele_catalog_note(&c->image->catalog, index, snapshot->note);
	return 0;
}

static int add_snapshot(struct stele_copier *c)
{
	const struct stele_snapshot *from = c->snapshot;
	struct stele_edit_snapshot snapshot = {
		.parent = find_parent(c),
		.time = from->info.time,
		.source_time = from->info.source_time,
		.sample_count = from->sample_count,
		.payload_size = from->info.payload_size,
		.ref_count = from->segment_count,
	};
	int ret = read_note(c, &snapshot);

	strncpy(snapshot.name, c->name, sizeof(snapshot.name) - 1);
	memcpy(snapshot.digest, from->digest, sizeof(snapshot.digest));
	snapshot.refs = calloc((size_t)from->segment_count + 1,
			       sizeof(*snapshot.refs));
	if (!snapshot.refs)
		ret = -ENOMEM;
	for (uint32_t i = 0; ret == 0 && i < from->segment_count; i++) {
		const struct stele_segment *s = &from->segments[i];

		snapshot.refs[i].segment_id = s->descriptor.id;
		ret = stele_edit_write_deleted(c->edit, &snapshot.refs[i],
					       s->deleted, s->deleted_count);
	}
	if (ret == 0)
		ret = stele_edit_add_snapshot(c->edit, &snapshot);
	free(snapshot.refs);
	free(snapshot.note);
	return ret;
}

/* Return: 1 it is there; 0 it is not; -EEXIST (logged). */
static int find_snapshot(const struct stele_copier *c)
{
	const struct stele_edit_snapshot *there =
		stele_edit_snapshot(c->edit, c->name);

	if (!there)
		return 0;
	if (!memcmp(there->digest, c->snapshot->digest, STELE_DIGEST_SIZE))
		return 1;
	stele_log_error(&c->edit->image->log,
			"the target has another snapshot '%s'", c->name);
	return -EEXIST;
}

int stele_copier_run(struct stele_copier *c)
{
	struct stele_copy_report *report = c->report;
	int ret = find_snapshot(c);

	memcpy(report->digest, c->snapshot->digest, STELE_DIGEST_SIZE);
	strncpy(report->snapshot, c->name, sizeof(report->snapshot) - 1);
	report->sample_count = c->snapshot->sample_count;
	report->segment_count = c->snapshot->segment_count;
	for (uint32_t i = 0; i < report->segment_count; i++)
		report->total_size += c->snapshot->segments[i].descriptor.size;
	if (ret)
		return ret < 0 ? ret : 0;
	ret = make_room(c);
	if (ret == 0)
		ret = pass_segments(c);
	if (ret == 0)
		ret = check_digest(c);
	if (ret == 0)
		ret = add_snapshot(c);
	if (ret == 0)
		ret = c->commit(c->commit_user, c->time);
	return ret;
}
