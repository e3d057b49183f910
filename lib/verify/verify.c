/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - superblocks, catalogs, snapshots, and every segment in turn
 *
 * Parts are checked before their composition, and a whole is only checked
 * if its parts are sound: damage is reported once, where it is.
 */
#include "lib/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/verify/check.h"
#include "lib/image/catalog.h"
#include "lib/image/copies.h"
#include "lib/txn/space.h"

/* ---- superblocks and catalogs -------------------------------------------- */

/*
 * What a copy shares with one of a later generation; images may grow. One that is unfinished is
 * the beginning of the same image, labelled with what that replaced.
 */
static bool same_image(const struct stele_superblock *a,
		       const struct stele_superblock *b)
{
	return memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0 &&
	       (strcmp(a->label, b->label) == 0 || a->state == STELE_STATE_UNFINISHED) &&
	       a->image_size <= b->image_size &&
	       a->create_time == b->create_time;
}

/*
 * Unfinished: a build over the image began, and was interrupted while it could turn back.
 * Otherwise of an earlier image: from a late writer that a build has replaced.
 */
static bool is_of_another(const struct stele_check *check,
			  const struct stele_copy *copy)
{
	return copy->sb.generation < check->image->sb.generation &&
	       !same_image(&copy->sb, &check->image->sb);
}

/*
 * A writer may be interrupted between slot and mirror, and a replaced one may
 * write one copy late: so an outdated copy is not damage. In the other slot
 * both are outdated; there it means the one older than its mirror.
 */
static bool lags(const struct stele_check *check,
		 const struct stele_copies *copies, unsigned int index)
{
	const struct stele_superblock *sb = &check->image->sb;
	const struct stele_copy *copy = &copies->copy[index];
	const struct stele_copy *mirror = &copies->copy[index ^ 2];

	if (copy->sb.generation >= sb->generation)
		return false;
	if (copy->sb.state != STELE_STATE_UNFINISHED &&
	    !same_image(&copy->sb, sb))
		return false;
	if (index % 2 == check->image->slot)
		return true;
	return mirror->error == 0 && !is_of_another(check, mirror) &&
	       !stele_superblock_same(&copy->sb, &mirror->sb) &&
	       copy->sb.generation <= mirror->sb.generation;
}

static const char *judge_copy(const struct stele_check *check,
			      const struct stele_copies *copies,
			      unsigned int index)
{
	const struct stele_copy *copy = &copies->copy[index];
	const struct stele_copy *mirror = &copies->copy[index ^ 2];
	const struct stele_superblock *sb = &check->image->sb;

	/* A newer one that was skipped: its catalog will be reported, see next_best(). */
	if (copy->sb.generation > sb->generation && index % 2 != check->image->slot)
		return same_image(sb, &copy->sb) ? NULL : "belongs to another image";
	if (index % 2 == check->image->slot &&
	    copy->sb.generation != sb->generation)
		return "generation does not belong in this slot";
	if (!same_image(&copy->sb, sb))
		return "belongs to another image";
	if (mirror->error == 0 && index == !check->image->slot &&
	    !stele_superblock_same(&copy->sb, &mirror->sb) &&
	    !is_of_another(check, mirror) && !lags(check, copies, index ^ 2))
		return "differs from its mirror";
	return NULL;
}

static void check_copy(struct stele_check *check,
		       const struct stele_copies *copies, unsigned int index)
{
	const struct stele_copy *copy = &copies->copy[index];
	const struct stele_copy *mirror = &copies->copy[index ^ 2];
	const char *why;
	int error = 0;

	if (copy->error < 0) {
		const char *lost = !mirror->error ? "" :
				   copies->doubt ? "; a newer generation may be lost with it" :
				   stele_copies_has_witness(copies) ?
						   "; the witness of the newest generation stands "
						   "in, and 'stele repair' writes it there" :
						   "";

		stele_check_report(check, copy->error, "superblock",
				   copy->offset, STELE_BLOCK_SIZE, "%s%s",
				   copy->why, lost);
		return;
	}
	if (copy->sb.generation == check->image->sb.generation &&
	    !stele_superblock_same(&copy->sb, &check->image->sb)) {
		why = "differs from another copy of the same generation";
		error = -ENOTUNIQ;
	} else if (lags(check, copies, index)) {
		why = "outdated, left by an interrupted writer; the next "
		      "change rewrites it";
	} else if (is_of_another(check, copy)) {
		why = copy->sb.state == STELE_STATE_UNFINISHED ?
			      "left by an interrupted build over this image" :
			      "belongs to an earlier image, left by a late "
			      "writer; the next change overwrites it";
	} else {
		why = judge_copy(check, copies, index);
		error = -EUCLEAN;
	}
	if (why)
		stele_check_report(check, error, "superblock", copy->offset,
				   STELE_BLOCK_SIZE, "generation %" PRIu64 ": %s",
				   copy->sb.generation, why);
}

/*
 * In the slot that was not selected: what recovery would use next of this image. If
 * the two differ, the newer one.
 */
static const struct stele_copy *next_best(const struct stele_check *check,
					  const struct stele_copies *copies)
{
	const struct stele_copy *a = &copies->copy[!check->image->slot];
	const struct stele_copy *b = a + 2;

	if (a->error < 0 || is_of_another(check, a) ||
	    (b->error == 0 && !is_of_another(check, b) &&
	     b->sb.generation > a->sb.generation))
		return b;
	return a;
}

/* Is each block of it sound, if not what was to be there? Then another writer's. */
static bool is_late(struct stele_check *check, const struct stele_superblock *at)
{
	const uint64_t count = at->catalog_size / STELE_BLOCK_SIZE;
	void *blocks = stele_device_alloc(check->image->dev, at->catalog_size);
	bool late = blocks &&
		    !stele_device_read(check->image->dev, blocks, at->catalog_offset,
				       at->catalog_size) &&
		    !stele_blocks_check(blocks, count, STELE_BLOCK_CATALOG,
					at->catalog_offset, STELE_OWNER_ANY, NULL);

	free(blocks);
	return late;
}

/* At one of its places: `at` leads to it. */
static int check_catalog(struct stele_check *check, const struct stele_superblock *at)
{
	const bool newer = at->generation > check->image->sb.generation;
	const bool mirror = at->catalog_offset < STELE_DATA_OFFSET;
	struct stele_catalog catalog;
	const char *why;
	void *blocks;
	int ret = stele_catalog_load_place(check->image->dev, at, &blocks, &catalog, &why);

	if (ret == -ENOMEM)
		return ret;
	if (ret == 0)
		free(blocks);
	else if (mirror && is_late(check, at))
		stele_check_report(check, 0, "catalog", at->catalog_offset, at->catalog_size,
				   "generation %" PRIu64 ": its mirror is one of another "
				   "commit: the device lost a write, or a late writer made "
				   "one; the next commit has another",
				   at->generation);
	else
		stele_check_report(check, ret, "catalog", at->catalog_offset, at->catalog_size,
				   "generation %" PRIu64 ": %s%s%s", at->generation,
				   mirror ? "mirror: " : "", why,
				   newer ? "; snapshots made in it are missing" : "");
	return stele_check_progress(check, at->catalog_size,
				    at->catalog_size / STELE_BLOCK_SIZE, 0);
}

/* What another commit left is no damage; nor has an image of an older Stele one. */
static int check_witness(struct stele_check *check)
{
	const struct stele_superblock *sb = &check->image->sb;
	const uint64_t at = stele_superblock_witness(sb->mirror_offset);
	void *block = stele_device_alloc(check->image->dev, STELE_BLOCK_SIZE);
	int ret = block ? stele_copies_check_witness(check->image->dev, sb, block) : -ENOMEM;

	free(block);
	if (ret == -ENOMEM)
		return ret;
	if (ret == -EMEDIUMTYPE || ret == -EUCLEAN)
		stele_check_report(check, 0, "superblock", at, STELE_BLOCK_SIZE,
				   "generation %" PRIu64 " has no witness; the next commit or "
				   "'stele repair' writes one", sb->generation);
	else if (ret < 0)
		stele_check_report(check, ret, "superblock", at, STELE_BLOCK_SIZE,
				   "witness of generation %" PRIu64 " cannot be used; 'stele "
				   "repair' writes another", sb->generation);
	return stele_check_progress(check, STELE_BLOCK_SIZE, 1, 0);
}

/* Of the image. */
static int check_catalogs(struct stele_check *check)
{
	const struct stele_superblock *sb = &check->image->sb;
	struct stele_superblock mirrored;
	int ret = check_catalog(check, sb);

	if (ret == 0 && stele_superblock_mirrored(sb, &mirrored))
		ret = check_catalog(check, &mirrored);
	if (sb->feature_incompat & STELE_FEATURE_MIRROR && !sb->mirror_offset)
		stele_check_report(check, 0, "catalog", sb->catalog_offset, sb->catalog_size,
				   "generation %" PRIu64 " has neither mirror nor witness, which "
				   "could not be written; the next commit tries again",
				   sb->generation);
	return ret == 0 && sb->mirror_offset ? check_witness(check) : ret;
}

static int check_superblocks(struct stele_check *check)
{
	const struct stele_superblock *sb = &check->image->sb;
	const struct stele_copy *other;
	struct stele_copies copies;
	int ret;

	ret = stele_copies_read(check->image->dev, &copies);
	if (ret < 0)
		return ret;
	if (stele_copies_compare(&check->image->copies, &copies) == -ESTALE)
		return -EAGAIN;
	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
		check_copy(check, &copies, i);
	ret = stele_check_progress(check, STELE_SUPERBLOCK_COPIES * STELE_BLOCK_SIZE,
				   STELE_SUPERBLOCK_COPIES, 0);
	if (ret == 0)
		ret = check_catalogs(check);
	other = next_best(check, &copies);
	if (ret == 0 && other->error == 0 && !is_of_another(check, other) &&
	    other->sb.state == STELE_STATE_READY &&
	    (other->sb.generation > sb->generation ||
	     other->sb.image_size <= sb->image_size))
		ret = check_catalog(check, &other->sb);
	return ret;
}

/* A feature in use must have its bit set. */
static void check_features(struct stele_check *check)
{
	const struct stele_image *image = check->image;
	const uint64_t unknown = image->sb.feature_compat &
				 ~(uint64_t)STELE_FEATURE_SIGNATURES;
	struct stele_catalog_ref ref;

	if (unknown)
		stele_log_warning(&image->log,
				  "unknown compatible features 0x%" PRIx64,
				  unknown);
	if (image->sb.feature_incompat & STELE_FEATURE_DELETED)
		return;
	for (uint32_t i = 0; i < image->catalog.counts.refs; i++) {
		stele_catalog_ref(&image->catalog, i, &ref);
		if (!ref.deleted_count)
			continue;
		stele_check_report(check, -EUCLEAN, "catalog",
				   image->sb.catalog_offset,
				   image->sb.catalog_size,
				   "a deleted list without its feature bit");
		return;
	}
}

/* ---- snapshots ----------------------------------------------------------- */

/* Return: 1: the deleted lists of a snapshot are sound; 0; -ENOMEM; -ECANCELED. */
static int check_deleted(struct stele_check *check,
			 const struct stele_catalog_snapshot *info)
{
	struct stele_catalog_ref ref;
	int sound = 1;

	for (uint32_t i = 0; i < info->ref_count; i++) {
		struct stele_check_list *list;
		int ret;

		stele_catalog_ref(&check->image->catalog, info->first_ref + i,
				  &ref);
		if (!ref.deleted_count)
			continue;
		list = &check->lists[stele_lists_find(&check->known, &ref)];
		ret = stele_check_list_report(check, list);
		if (ret < 0)
			return ret;
		sound &= list->error == 0;
	}
	return sound;
}

static void report_snapshot(struct stele_check *check, int error,
			    const char *name, const char *why)
{
	stele_check_report(check, error, "snapshot",
			   check->image->sb.catalog_offset,
			   check->image->sb.catalog_size, "snapshot '%s': %s",
			   name, why);
}

/* According to the records, if all could be read. */
static void check_payload(struct stele_check *check,
			  const struct stele_catalog_snapshot *info)
{
	struct stele_catalog_ref ref;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < info->ref_count; i++) {
		const struct stele_check_segment *segment;

		stele_catalog_ref(&check->image->catalog, info->first_ref + i,
				  &ref);
		segment = &check->segments[ref.segment];
		if (!segment->has_sizes)
			return;
		sum += segment->segment.descriptor.payload_size;
		for (uint32_t j = 0; j < STELE_REF_LISTS && ref.lists[j].offset; j++)
			sum -= check->lists[stele_lists_at(&check->known,
							   ref.lists[j].offset)]
				       .payload_size;
	}
	if (sum != info->payload_size)
		report_snapshot(check, -EUCLEAN, info->name,
				"payload size does not match its samples");
}

/* `covered`: the keys of its samples are checked with another snapshot. */
static int check_snapshot(struct stele_check *check, uint32_t index,
			  bool covered)
{
	struct stele_catalog_snapshot info;
	struct stele_snapshot snapshot;
	int ret;

	stele_catalog_snapshot(&check->image->catalog, index, &info);
	check->report->snapshots++;
	ret = check_deleted(check, &info);
	if (ret <= 0)
		return ret;
	ret = stele_check_snapshot_make(check, index, &snapshot);
	if (ret == -ENOMEM)
		return ret;
	/* Errors of a segment have been reported. */
	if (ret < 0 && !check->segments_broken)
		report_snapshot(check, ret, info.name,
				ret == -EBADMSG ? "digest differs" :
						  "segments do not fit together");
	if (ret < 0)
		return 0;
	check_payload(check, &info);
	if (!covered)
		ret = stele_check_snapshot_deleted(check, &snapshot);
	if (ret == 0 && !covered)
		ret = stele_verify_unique(check, &snapshot);
	stele_check_snapshot_free(&snapshot);
	return ret;
}

/* Has `x` all lists of `y`, so that it deletes no less? */
static bool has_lists(const struct stele_catalog_ref *x,
		      const struct stele_catalog_ref *y)
{
	for (uint32_t i = 0; i < STELE_REF_LISTS; i++)
		if (y->lists[i].offset && y->lists[i].offset != x->lists[i].offset)
			return false;
	return true;
}

/*
 * Does snapshot `other` have all samples of snapshot `index`? Then keys are unique in
 * the latter if they are in the former. `places` has one for each segment, zeroed.
 */
static bool is_covered(const struct stele_catalog *catalog, uint32_t index,
		       uint32_t other, uint32_t *places)
{
	struct stele_catalog_snapshot a, b;
	struct stele_catalog_ref x, y;
	bool covered = true;

	stele_catalog_snapshot(catalog, index, &a);
	stele_catalog_snapshot(catalog, other, &b);
	for (uint32_t i = 0; i < b.ref_count; i++) {
		stele_catalog_ref(catalog, b.first_ref + i, &y);
		places[y.segment] = b.first_ref + i + 1;
	}
	for (uint32_t i = 0; i < a.ref_count && covered; i++) {
		stele_catalog_ref(catalog, a.first_ref + i, &x);
		covered = places[x.segment] > 0;
		if (covered)
			stele_catalog_ref(catalog, places[x.segment] - 1, &y);
		covered = covered && has_lists(&x, &y);
	}
	for (uint32_t i = 0; i < b.ref_count; i++) {
		stele_catalog_ref(catalog, b.first_ref + i, &y);
		places[y.segment] = 0;
	}
	return covered;
}

/* By snapshot, malloced. Most are the base of a later one. */
static bool *find_covered(const struct stele_catalog *catalog)
{
	const uint32_t count = catalog->counts.snapshots;
	bool *covered = calloc((size_t)count + 1, sizeof(*covered));
	uint32_t *places = calloc((size_t)catalog->counts.segments + 1,
				  sizeof(*places));
	uint32_t other = count - 1;

	for (uint32_t i = other; covered && places && i-- > 0;) {
		covered[i] = is_covered(catalog, i, other, places);
		if (!covered[i])
			other = i;
	}
	if (!places) {
		free(covered);
		covered = NULL;
	}
	free(places);
	return covered;
}

static int check_snapshots(struct stele_check *check, int64_t snapshot)
{
	const struct stele_catalog *catalog = &check->image->catalog;
	bool *covered;
	int ret = 0;

	if (catalog->counts.snapshots == 0)
		return 0;
	if (snapshot >= 0)
		return check_snapshot(check, (uint32_t)snapshot, false);
	covered = find_covered(catalog);
	if (!covered)
		return -ENOMEM;
	for (uint32_t i = 0; i < catalog->counts.snapshots && ret == 0; i++)
		ret = check_snapshot(check, i, covered[i]);
	free(covered);
	return ret;
}

static bool is_free(const struct stele_catalog *catalog,
		    const struct stele_extents *gaps)
{
	if (catalog->counts.free != gaps->count)
		return false;
	for (uint32_t i = 0; i < gaps->count; i++) {
		struct stele_catalog_free f;

		stele_catalog_free(catalog, i, &f);
		if (f.offset != gaps->list[i].offset ||
		    f.size != gaps->list[i].size)
			return false;
	}
	return true;
}

/* All unused space below the last used byte is listed as free. */
static int check_space(struct stele_check *check)
{
	const struct stele_image *image = check->image;
	const struct stele_superblock *sb = &image->sb;
	struct stele_extents used = {0}, gaps = {0};
	int ret = stele_extents_add_catalog(&used, &image->catalog, sb);

	if (ret == 0)
		ret = stele_extents_gaps(&used, sb->high_water, &gaps);
	if (ret == 0 && stele_extents_end(&used) != sb->high_water)
		stele_check_report(check, -EUCLEAN, "superblock",
				   sb->high_water, 0,
				   "high-water mark, but the last used byte "
				   "ends at %" PRIu64,
				   stele_extents_end(&used));
	else if (ret == 0 && !is_free(&image->catalog, &gaps))
		stele_check_report(check, -EUCLEAN, "catalog",
				   sb->catalog_offset, sb->catalog_size,
				   "free extents do not match the unused space");
	stele_extents_release(&used);
	stele_extents_release(&gaps);
	return ret;
}

/* ---- all ------------------------------------------------------------------ */

/* Which segments must be checked, and how large are they? */
static void choose(struct stele_check *check, int64_t snapshot)
{
	const struct stele_image *image = check->image;
	struct stele_catalog_segment where;
	struct stele_superblock mirrored;

	check->bytes_total = STELE_SUPERBLOCK_COPIES * STELE_BLOCK_SIZE +
			     image->sb.catalog_size;
	if (image->sb.mirror_offset)
		check->bytes_total += STELE_BLOCK_SIZE;
	if (stele_superblock_mirrored(&image->sb, &mirrored))
		check->bytes_total += mirrored.catalog_size;
	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		struct stele_check_segment *segment = &check->segments[i];

		segment->wanted = snapshot < 0;
		for (uint32_t j = check->first_ref[i];
		     j < check->first_ref[i + 1]; j++)
			segment->wanted |= check->refs[j].snapshot == snapshot;
		stele_catalog_segment(&image->catalog, i, &where);
		if (!segment->wanted)
			continue;
		check->bytes_total += where.size;
		check->samples_total += where.sample_count;
	}
}

static bool is_tree(const struct stele_check *check, uint32_t index)
{
	struct stele_catalog_segment where;

	stele_catalog_segment(&check->image->catalog, index, &where);
	return stele_catalog_is_tree(&where);
}

/* No damage, but nobody expects it. */
static void note_empty(struct stele_check *check)
{
	const char *lost = stele_copies_lost(&check->image->copies);
	struct stele_log_held held;

	if (lost)
		stele_check_report(check, 0, "image", 0, check->image->sb.image_size,
				   "empty image: it has overwritten %s", lost);
	stele_log_hold(&held, NULL);
	stele_image_log_empty(check->image, STELE_LOG_WARNING, &held.log);
	stele_check_report(check, 0, "image", 0, check->image->sb.image_size, "%s",
			   held.last ? held.last : "");
	stele_log_end(&held, false);
}

static int verify_all(struct stele_check *check, int64_t snapshot)
{
	const struct stele_catalog_counts *counts =
		&check->image->catalog.counts;
	int ret;

	ret = stele_check_shared_init(check);
	if (ret < 0)
		return ret;
	choose(check, snapshot);
	ret = check_superblocks(check);
	if (ret == -EAGAIN)
		return ret;
	check_features(check);
	if (!counts->snapshots)
		note_empty(check);
	if (ret == 0 && snapshot < 0 && !check->image->fork)
		ret = check_space(check);
	for (uint32_t i = 0; i < counts->segments && ret == 0; i++)
		if (check->segments[i].wanted && !is_tree(check, i))
			ret = stele_verify_segment(check, i, snapshot);
	if (ret == 0 && snapshot < 0 && !check->image->fork)
		ret = stele_verify_posix(check);
	if (ret == 0)
		ret = check_snapshots(check, snapshot);
	return ret == 0 ? check->stopped : ret;
}

int stele_verify_image(struct stele_image *image, int64_t snapshot,
		       const struct stele_verify_opts *opts,
		       struct stele_verify_report *report)
{
	struct stele_check check = {
		.image = image, .opts = opts, .report = report,
	};
	int ret;

	if (snapshot >= (int64_t)image->catalog.counts.snapshots)
		return -ENOENT;
	pthread_mutex_init(&check.lock, NULL);
	ret = verify_all(&check, snapshot);
	stele_check_shared_release(&check);
	pthread_mutex_destroy(&check.lock);
	if (ret < 0)
		return ret;
	return report->damaged > 0;
}

/* Each copy that cannot be used, where it is, or the catalog that it leads to. */
static int check_copies(struct stele_check *check, uint64_t target_size)
{
	const struct stele_copy *copy = check->image->copies.copy;
	int ret = 0;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES && ret == 0; i++) {
		if (copy[i].error)
			stele_check_report(check, copy[i].error, "superblock",
					   copy[i].offset, STELE_BLOCK_SIZE, "%s",
					   copy[i].why);
		else if (copy[i].sb.state == STELE_STATE_READY &&
			 copy[i].sb.image_size <= target_size &&
			 (i < 2 || copy[i - 2].error ||
			  !stele_superblock_same(&copy[i].sb, &copy[i - 2].sb)))
			ret = check_catalog(check, &copy[i].sb);
	}
	return ret;
}

int stele_verify_lost(struct stele_device *dev, int error, const char *why,
		      const struct stele_verify_opts *opts,
		      struct stele_verify_report *report)
{
	struct stele_image image = {.dev = dev};
	struct stele_check check = {
		.image = &image, .opts = opts, .report = report,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	uint64_t missing, size;
	int ret = stele_device_size(dev, &size);

	if (!ret)
		ret = stele_copies_read(dev, &image.copies);
	if (ret)
		return ret;
	missing = stele_copies_missing(&image.copies, size);
	image.sb.generation = image.copies.generation_max;
	ret = check_copies(&check, size);
	if (ret == 0 && error == -ENODATA)
		stele_check_report(&check, error, "image", size, missing, "%s", why);
	else if (ret == 0)
		stele_check_report(&check, error, "image", 0, size, "%s", why);
	ret = ret ? ret : check.stopped;
	return ret ? ret : 1;
}
