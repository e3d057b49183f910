/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_space.c - nothing that a catalog places overlaps anything else
 *
 * Segments and free extents are each sorted; everything else is looked
 * up among them by binary search. An extent's bounds are checked before any
 * sum is made of them. What may be shared: stele-format(5), "Catalog".
 */
#include "format/catalog_check.h"
#include "format/catalog_layout.h"
#include "format/decode.h"
#include "format/erofs.h"
#include "format/segment.h"

struct extent {
	uint64_t offset, end;
};

typedef struct extent extent_fn(const struct stele_catalog *catalog,
				uint32_t index);

static struct extent segment_extent(const struct stele_catalog *catalog,
				    uint32_t index)
{
	struct stele_catalog_segment s;

	stele_catalog_segment(catalog, index, &s);
	return (struct extent){s.offset, s.offset + s.size};
}

static struct extent free_extent(const struct stele_catalog *catalog,
				 uint32_t index)
{
	struct stele_catalog_free f;

	stele_catalog_free(catalog, index, &f);
	return (struct extent){f.offset, f.offset + f.size};
}

static bool apart(struct extent a, struct extent b)
{
	return a.end <= b.offset || b.end <= a.offset;
}

/* Is an extent apart from all of a table in ascending order? */
static bool apart_from_all(const struct stele_catalog *catalog, extent_fn *get,
			   uint32_t count, struct extent extent)
{
	uint32_t low = 0, high = count;

	/* Find the first entry that ends after the start of the extent. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (get(catalog, middle).end <= extent.offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low == count || apart(get(catalog, low), extent);
}

bool stele_catalog_extent_ok(uint64_t offset, uint64_t size,
			     const struct stele_superblock *sb)
{
	return is_aligned(offset | size, STELE_BLOCK_SIZE) && size > 0 &&
	       offset >= STELE_DATA_OFFSET &&
	       range_ok(offset, size, sb->high_water);
}

bool stele_catalog_extent_apart(const struct stele_catalog *catalog,
				const struct stele_superblock *sb,
				uint64_t offset, uint64_t size)
{
	const struct extent extent = {offset, offset + size};
	const struct extent own = {sb->catalog_offset,
				   sb->catalog_offset + sb->catalog_size};

	return apart(extent, own) &&
	       apart_from_all(catalog, segment_extent, catalog->counts.segments,
			      extent) &&
	       apart_from_all(catalog, free_extent, catalog->counts.free,
			      extent);
}

static int check_part(const struct stele_catalog_segment *part,
		      const struct stele_superblock *sb, const char **why)
{
	if (!(sb->feature_ro_compat & STELE_FEATURE_POSIX))
		return unclean(why, "catalog: tree without the feature");
	if (part->part < STELE_PART_FILES || part->part > STELE_PART_ROOT)
		return unclean(why, "catalog: unknown part of a tree");
	if (!part->of != (part->part == STELE_PART_ROOT))
		return unclean(why, "catalog: part of a tree of nothing");
	if (part->inode_count > part->size / STELE_EROFS_NID_SIZE)
		return unclean(why, "catalog: more inodes than fit a part");
	return 0;
}

static int check_segment(const struct stele_catalog_segment *segment,
			 const struct stele_superblock *sb, const char **why)
{
	if (segment->id == 0 || segment->id == STELE_OWNER_ANY)
		return unclean(why, "catalog: segment id out of range");
	if (!stele_catalog_extent_ok(segment->offset, segment->size, sb))
		return unclean(why, "catalog: segment out of bounds");
	if (stele_catalog_is_tree(segment))
		return check_part(segment, sb, why);
	if (segment->part != STELE_PART_NONE || segment->of)
		return unclean(why, "catalog: samples as a part of a tree");
	if (!is_aligned(segment->descriptor_size, STELE_BLOCK_SIZE) ||
	    segment->descriptor_size > STELE_DESCRIPTOR_SIZE_MAX ||
	    segment->descriptor_size > segment->size / 2)
		return unclean(why, "catalog: descriptor size out of range");
	if (segment->sample_count > STELE_SAMPLES_MAX ||
	    segment->sample_count > segment->size / STELE_GRANULE_MIN)
		return unclean(why, "catalog: more samples than fit a segment");
	return 0;
}

static bool reserved_ok(const struct stele_catalog *catalog, uint32_t index)
{
	struct stele_disk_catalog_segment disk;

	stele_catalog_get(catalog,
			  catalog_layout(&catalog->counts).segments +
				  index * sizeof(disk),
			  &disk, sizeof(disk));
	return bytes_zero(disk.reserved, sizeof(disk.reserved));
}

static int check_segments(const struct stele_catalog *catalog,
			  const struct stele_superblock *sb, const char **why)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < catalog->counts.segments; i++) {
		struct stele_catalog_segment segment;
		int ret;

		stele_catalog_segment(catalog, i, &segment);
		ret = check_segment(&segment, sb, why);
		if (ret < 0)
			return ret;
		if (segment.offset < end)
			return unclean(why, "catalog: segments out of order");
		end = segment.offset + segment.size;
		if (!reserved_ok(catalog, i))
			return unclean(why,
				       "catalog: segment's reserved bytes");
	}
	if (!stele_catalog_ids_unique(catalog))
		return unclean(why, "catalog: duplicate segment id");
	return 0;
}

static int check_free(const struct stele_catalog *catalog,
		      const struct stele_superblock *sb, const char **why)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < catalog->counts.free; i++) {
		struct stele_catalog_free f;

		stele_catalog_free(catalog, i, &f);
		if (!stele_catalog_extent_ok(f.offset, f.size, sb))
			return unclean(why,
				       "catalog: free extent out of bounds");
		if (f.offset <= end)
			return unclean(why,
				       "catalog: free extents out of order");
		end = f.offset + f.size;
		if (!apart_from_all(catalog, segment_extent,
				    catalog->counts.segments,
				    free_extent(catalog, i)))
			return unclean(why,
				       "catalog: free extent in a segment");
	}
	return 0;
}

int stele_catalog_check_space(const struct stele_catalog *catalog,
			      const struct stele_superblock *sb,
			      const char **why)
{
	const struct extent own = {sb->catalog_offset,
				   sb->catalog_offset + sb->catalog_size};
	int ret;

	ret = check_segments(catalog, sb, why);
	if (ret == 0)
		ret = check_free(catalog, sb, why);
	if (ret < 0)
		return ret;
	if (!apart_from_all(catalog, segment_extent, catalog->counts.segments,
			    own))
		return unclean(why, "catalog: lies in a segment");
	if (!apart_from_all(catalog, free_extent, catalog->counts.free, own))
		return unclean(why, "catalog: lies in a free extent");
	return 0;
}
