/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_snapshots.c - the snapshots of a catalog, and what they refer to
 *
 * Notes and signatures belong to the snapshots in table order without gaps: each
 * snapshot begins where the previous one ended, and the last one ends where the table
 * does. So nothing is shared and nothing is left over. Refs may be shared: those of a
 * snapshot are consecutive, anywhere in the table, and each one is of some snapshot.
 */
#include "format/catalog_check.h"
#include "format/catalog_layout.h"
#include "format/decode.h"
#include "format/sections.h"

/* One bit for each segment that a snapshot names. */
struct seen {
	uint64_t words[STELE_SEGMENTS_MAX / 64];
};

/*
 * Sums over references from `first` on. A snapshot mostly has those of the previous one, and
 * one more: so 600 of them take 600 steps, not 180,000.
 */
struct sums {
	uint32_t first, count;
	uint64_t live, size; /* samples; bytes of their segments */
	struct seen seen;
};

/* How far the snapshots so far have used up the tables; of refs, how many they have. */
struct progress {
	uint64_t id, refs, notes, signatures;
	struct sums sums;
	struct seen used; /* by any of them that is not deleted */
	uint32_t passed;  /* of these, with smaller ids than the deleted one that is looked at */
};

static bool see(struct seen *seen, uint32_t index)
{
	uint64_t bit = UINT64_C(1) << index % 64;
	bool before = seen->words[index / 64] & bit;

	seen->words[index / 64] |= bit;
	return !before;
}

static int check_list(const struct stele_catalog *catalog,
		      const struct stele_superblock *sb,
		      const struct stele_catalog_list *list,
		      uint64_t sample_count, const char **why)
{
	uint64_t size;

	if (list->count == 0 ||
	    list->count > ceil_div(sample_count, STELE_DELETED_PER_WORD))
		return unclean(why, "catalog: size of a deleted list");
	if (list->owner == 0 || list->owner > sb->generation)
		return unclean(why, "catalog: deleted list of no generation");
	/* Small: samples are at most STELE_SAMPLES_MAX. */
	size = stele_deleted_blocks(list->count) * STELE_BLOCK_SIZE;
	if (!stele_catalog_extent_ok(list->offset, size, sb))
		return unclean(why, "catalog: deleted list out of bounds");
	if (!stele_catalog_extent_apart(catalog, sb, list->offset, size))
		return unclean(why, "catalog: deleted list on other data");
	return 0;
}

static int check_deleted(const struct stele_catalog *catalog,
			 const struct stele_superblock *sb,
			 const struct stele_catalog_ref *ref,
			 uint64_t sample_count, const char **why)
{
	uint64_t words = 0;
	uint32_t lists = 0;

	while (lists < STELE_REF_LISTS && ref->lists[lists].offset)
		lists++;
	for (uint32_t i = lists; i < STELE_REF_LISTS; i++)
		if (ref->lists[i].offset || ref->lists[i].count || ref->lists[i].owner)
			return unclean(why, "catalog: deleted without a list");
	if (lists && !(sb->feature_incompat & STELE_FEATURE_DELETED))
		return unclean(why, "catalog: deleted without the feature");
	for (uint32_t i = 0; i < lists; i++) {
		int ret = check_list(catalog, sb, &ref->lists[i], sample_count, why);

		if (ret < 0)
			return ret;
		words += ref->lists[i].count;
	}
	/* Each word deletes one sample at least. */
	if (ref->deleted_count < words || ref->deleted_count > sample_count ||
	    (!words && ref->deleted_count))
		return unclean(why, "catalog: deleted count out of range");
	return 0;
}

/* What has nothing to do with the snapshots that have it. */
static int check_ref(const struct stele_catalog *catalog,
		     const struct stele_superblock *sb, uint32_t index,
		     const char **why)
{
	struct stele_catalog_segment segment;
	struct stele_catalog_ref ref;
	struct stele_disk_ref disk;
	int ret;

	stele_catalog_ref(catalog, index, &ref);
	if (ref.segment >= catalog->counts.segments)
		return unclean(why, "catalog: reference to no segment");
	stele_catalog_segment(catalog, ref.segment, &segment);
	if (stele_catalog_is_tree(&segment))
		return unclean(why, "catalog: reference to a tree");
	ret = check_deleted(catalog, sb, &ref, segment.sample_count, why);
	if (ret < 0)
		return ret;
	stele_catalog_get(catalog,
			  catalog_layout(&catalog->counts).refs +
				  index * sizeof(disk),
			  &disk, sizeof(disk));
	if (le32_get(disk.reserved))
		return unclean(why, "catalog: reference's reserved bytes");
	return 0;
}

static int add_ref(const struct stele_catalog *catalog, uint32_t index,
		   struct sums *sums, const char **why)
{
	struct stele_catalog_segment segment;
	struct stele_catalog_ref ref;

	stele_catalog_ref(catalog, index, &ref);
	if (!see(&sums->seen, ref.segment))
		return unclean(why, "catalog: segment twice in a snapshot");
	stele_catalog_segment(catalog, ref.segment, &segment);
	if (!checked_add(sums->live, segment.sample_count - ref.deleted_count,
			 &sums->live))
		return unclean(why, "catalog: samples overflow");
	/* Apart, and below the high-water mark: no overflow. */
	sums->size += segment.size;
	sums->count++;
	return 0;
}

static int check_refs(const struct stele_catalog *catalog,
		      const struct stele_catalog_snapshot *snapshot,
		      struct progress *progress, const char **why)
{
	struct sums *sums = &progress->sums;

	if (sums->first != snapshot->first_ref || sums->count > snapshot->ref_count)
		*sums = (struct sums){.first = snapshot->first_ref};
	while (sums->count < snapshot->ref_count) {
		int ret = add_ref(catalog, sums->first + sums->count, sums, why);

		if (ret < 0)
			return ret;
	}
	if (sums->live != snapshot->sample_count)
		return unclean(why, "catalog: sample count of a snapshot");
	if (snapshot->payload_size > (sums->live ? sums->size : 0))
		return unclean(why, "catalog: payload size of a snapshot");
	if (!snapshot->deleted_time)
		for (size_t i = 0; i < sizeof(sums->seen) / sizeof(uint64_t); i++)
			progress->used.words[i] |= sums->seen.words[i];
	return 0;
}

static int check_tables(const struct stele_catalog *catalog,
			const struct stele_disk_snapshot *disk,
			struct progress *progress, const char **why)
{
	const struct stele_catalog_counts *counts = &catalog->counts;

	if (!range_ok(le32_get(disk->first_ref), le32_get(disk->ref_count),
		      counts->refs))
		return unclean(why, "catalog: references of a snapshot");
	progress->refs += le32_get(disk->ref_count);
	if (progress->refs > STELE_REFS_MAX)
		return unclean(why, "catalog: too many references");
	if (le32_get(disk->note_offset) != progress->notes)
		return unclean(why, "catalog: note offset of a snapshot");
	progress->notes += le32_get(disk->note_size);
	if (progress->notes > counts->notes_size)
		return unclean(why, "catalog: note size of a snapshot");
	if (le32_get(disk->first_signature) != progress->signatures)
		return unclean(why, "catalog: first signature of a snapshot");
	progress->signatures += le32_get(disk->signature_count);
	if (progress->signatures > counts->signatures)
		return unclean(why, "catalog: signatures of a snapshot");
	return 0;
}

static int check_identity(const struct stele_catalog *catalog,
			  const struct stele_catalog_snapshot *snapshot,
			  struct progress *progress, const char **why)
{
	const char *name = snapshot->name;

	if (!text_ok(name, sizeof(snapshot->name)))
		return unclean(why, "catalog: snapshot name not zero-padded");
	if (!stele_name_ok(name, strlen(name)))
		return unclean(why, "catalog: bad name of a snapshot");
	if (snapshot->id <= progress->id)
		return unclean(why, "catalog: snapshot ids not ascending");
	if (snapshot->id >= catalog->next_snapshot_id)
		return unclean(why, "catalog: snapshot id beyond the next one");
	if (snapshot->parent >= snapshot->id)
		return unclean(why, "catalog: snapshot older than its parent");
	progress->id = snapshot->id;
	return 0;
}

/* Deleted just if it is one of the last; then its id is none of another one. */
static int check_deleted_time(const struct stele_catalog *catalog, uint32_t index,
			      const struct stele_catalog_snapshot *snapshot,
			      struct progress *progress, const char **why)
{
	const uint32_t count = catalog->counts.snapshots;
	struct stele_catalog_snapshot other = {0};

	if (index < count)
		return snapshot->deleted_time ?
			       unclean(why, "catalog: snapshot with a time of deletion") :
			       0;
	if (snapshot->deleted_time < 1)
		return unclean(why, "catalog: deleted snapshot without a time");
	for (; progress->passed < count; progress->passed++) {
		stele_catalog_snapshot(catalog, progress->passed, &other);
		if (other.id >= snapshot->id)
			break;
	}
	return other.id == snapshot->id ?
		       unclean(why, "catalog: deleted snapshot with the id of another") :
		       0;
}

static int check_snapshot(const struct stele_catalog *catalog,
			  uint32_t index, struct progress *progress,
			  const char **why)
{
	struct stele_catalog_snapshot snapshot;
	struct stele_disk_snapshot disk;
	int ret;

	stele_catalog_snapshot(catalog, index, &snapshot);
	stele_catalog_get(catalog,
			  catalog_layout(&catalog->counts).snapshots +
				  index * sizeof(disk),
			  &disk, sizeof(disk));
	if (index == catalog->counts.snapshots)
		progress->id = 0; /* the deleted ones begin */
	ret = check_identity(catalog, &snapshot, progress, why);
	if (ret == 0)
		ret = check_deleted_time(catalog, index, &snapshot, progress, why);
	if (ret == 0)
		ret = check_tables(catalog, &disk, progress, why);
	if (ret == 0)
		ret = check_refs(catalog, &snapshot, progress, why);
	if (ret < 0)
		return ret;
	if (!bytes_zero(disk.reserved, sizeof(disk.reserved)))
		return unclean(why, "catalog: snapshot's reserved bytes");
	return 0;
}

/* What none but deleted snapshots name says since when; what one names does not. */
static int check_unused(const struct stele_catalog *catalog,
			struct progress *progress, const char **why)
{
	for (uint32_t i = 0; i < catalog->counts.segments; i++) {
		struct stele_catalog_segment segment;

		stele_catalog_segment(catalog, i, &segment);
		if (segment.unused_since < 0)
			return unclean(why, "catalog: unused before 1970");
		if (stele_catalog_is_tree(&segment))
			continue;
		if (see(&progress->used, i)) {
			if (!segment.unused_since)
				return unclean(why,
					       "catalog: unused, but no time since");
		} else if (segment.unused_since) {
			return unclean(why, "catalog: unused, but referred to");
		}
	}
	return 0;
}

int stele_catalog_check_snapshots(const struct stele_catalog *catalog,
				  const struct stele_superblock *sb,
				  const char **why)
{
	const struct stele_catalog_counts *counts = &catalog->counts;
	struct progress progress = {0};
	int ret = 0;

	if (catalog->next_snapshot_id == 0)
		return unclean(why, "catalog: no next snapshot id");
	for (uint32_t i = 0; i < counts->refs && ret == 0; i++)
		ret = check_ref(catalog, sb, i, why);
	for (uint32_t i = 0; i < counts->snapshots + counts->deleted && ret == 0; i++)
		ret = check_snapshot(catalog, i, &progress, why);
	if (ret < 0)
		return ret;
	if (!stele_catalog_refs_used(catalog))
		return unclean(why, "catalog: references of no snapshot");
	if (progress.notes != counts->notes_size)
		return unclean(why, "catalog: notes of no snapshot");
	if (progress.signatures != counts->signatures)
		return unclean(why, "catalog: signatures of no snapshot");
	if (!stele_catalog_names_unique(catalog))
		return unclean(why, "catalog: duplicate snapshot name");
	ret = check_unused(catalog, &progress, why);
	return ret < 0 ? ret : stele_catalog_check_parts(catalog, why);
}
