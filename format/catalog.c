/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.c - view a catalog: decode, accessors
 *
 * Decoding ends with tables that fit the stream and agree with each other, so
 * that an accessor reads without a check. The caller keeps index < count.
 */
#include "format/catalog.h"

#include "format/catalog_check.h"
#include "format/catalog_layout.h"
#include "format/crc32c.h"
#include "format/decode.h"

void stele_catalog_get(const struct stele_catalog *catalog, uint64_t position,
		       void *data, size_t size)
{
	/* Never true once the counts match the stream. */
	if (!stele_stream_get(catalog->blocks, catalog->block_count, position,
			      data, size))
		memset(data, 0, size);
}

static int check_counts(const struct stele_catalog_counts *counts,
			const struct stele_superblock *sb, const char **why)
{
	if (counts->segments > STELE_SEGMENTS_MAX)
		return unclean(why, "catalog: too many segments");
	if (counts->snapshots > STELE_SNAPSHOTS_MAX ||
	    counts->deleted > STELE_SNAPSHOTS_MAX - counts->snapshots)
		return unclean(why, "catalog: too many snapshots");
	if (counts->deleted && !(sb->feature_incompat & STELE_FEATURE_UNDELETE))
		return unclean(why, "catalog: deleted snapshots without the feature");
	if (counts->refs > STELE_REFS_MAX)
		return unclean(why, "catalog: too many references");
	if (counts->free > STELE_FREE_MAX)
		return unclean(why, "catalog: too many free extents");
	if (counts->signatures > STELE_SIGNATURES_MAX)
		return unclean(why, "catalog: too many signatures");
	if (counts->signatures &&
	    !(sb->feature_compat & STELE_FEATURE_SIGNATURES))
		return unclean(why, "catalog: signatures without the feature");
	if (counts->notes_size > STELE_NOTES_SIZE_MAX)
		return unclean(why, "catalog: notes too long");
	return 0;
}

static int read_header(struct stele_catalog *out,
		       const struct stele_superblock *sb, const char **why)
{
	struct stele_disk_catalog disk;
	uint64_t size;
	int ret;

	stele_catalog_get(out, 0, &disk, sizeof(disk));
	out->counts = (struct stele_catalog_counts){
		.segments = le32_get(disk.segment_count),
		.snapshots = le32_get(disk.snapshot_count),
		.refs = le32_get(disk.ref_count),
		.free = le32_get(disk.free_count),
		.signatures = le32_get(disk.signature_count),
		.notes_size = le32_get(disk.notes_size),
		.deleted = le32_get(disk.deleted_count),
	};
	out->next_snapshot_id = le64_get(disk.next_snapshot_id);
	ret = check_counts(&out->counts, sb, why);
	if (ret < 0)
		return ret;
	size = catalog_layout(&out->counts).end;
	if (le64_get(disk.stream_size) != size)
		return unclean(why, "catalog: stream size against counts");
	if (stele_stream_blocks(size) != out->block_count)
		return unclean(why, "catalog: size against stream size");
	if (!stele_stream_zero_from(out->blocks, out->block_count, size))
		return unclean(why, "catalog: nonzero bytes after it");
	if (!bytes_zero(disk.reserved, sizeof(disk.reserved)))
		return unclean(why, "catalog: reserved bytes not zero");
	return 0;
}

int stele_catalog_decode(const void *blocks, uint64_t size,
			 const struct stele_superblock *sb,
			 struct stele_catalog *out, const char **why)
{
	int ret;

	if (size == 0 || size != sb->catalog_size ||
	    !is_aligned(size, STELE_BLOCK_SIZE))
		return unclean(why, "catalog: size differs from the superblock");
	if (stele_crc32c(0, blocks, size) != sb->catalog_crc)
		return refuse(why, -EBADMSG,
			      "catalog: checksum differs from the superblock");
	*out = (struct stele_catalog){
		.blocks = blocks,
		.block_count = size / STELE_BLOCK_SIZE,
	};
	ret = stele_blocks_check(out->blocks, out->block_count,
				 STELE_BLOCK_CATALOG, sb->catalog_offset,
				 sb->generation, why);
	if (ret == 0)
		ret = read_header(out, sb, why);
	if (ret == 0)
		ret = stele_catalog_check_space(out, sb, why);
	if (ret == 0)
		ret = stele_catalog_check_snapshots(out, sb, why);
	return ret;
}

void stele_catalog_segment(const struct stele_catalog *catalog, uint32_t index,
			   struct stele_catalog_segment *out)
{
	struct stele_disk_catalog_segment disk;
	uint64_t count;

	stele_catalog_get(catalog,
			  catalog_layout(&catalog->counts).segments +
				  index * sizeof(disk),
			  &disk, sizeof(disk));
	count = le64_get(disk.count);
	*out = (struct stele_catalog_segment){
		.id = le64_get(disk.id),
		.offset = le64_get(disk.offset),
		.size = le64_get(disk.size),
		.descriptor_size = le64_get(disk.descriptor_size),
		.unused_since = (int64_t)le64_get(disk.unused_since),
		.of = le64_get(disk.of),
		.part = le32_get(disk.part),
	};
	if (stele_catalog_is_tree(out))
		out->inode_count = count;
	else
		out->sample_count = count;
}

void stele_catalog_snapshot(const struct stele_catalog *catalog, uint32_t index,
			    struct stele_catalog_snapshot *out)
{
	struct stele_disk_snapshot disk;

	stele_catalog_get(catalog,
			  catalog_layout(&catalog->counts).snapshots +
				  index * sizeof(disk),
			  &disk, sizeof(disk));
	*out = (struct stele_catalog_snapshot){
		.id = le64_get(disk.id),
		.parent = le64_get(disk.parent),
		.time = (int64_t)le64_get(disk.time),
		.source_time = (int64_t)le64_get(disk.source_time),
		.sample_count = le64_get(disk.sample_count),
		.payload_size = le64_get(disk.payload_size),
		.first_ref = le32_get(disk.first_ref),
		.ref_count = le32_get(disk.ref_count),
		.note_offset = le32_get(disk.note_offset),
		.note_size = le32_get(disk.note_size),
		.first_signature = le32_get(disk.first_signature),
		.signature_count = le32_get(disk.signature_count),
		.deleted_time = (int64_t)le64_get(disk.deleted_time),
	};
	memcpy(out->name, disk.name, sizeof(out->name));
	memcpy(out->digest, disk.digest, sizeof(out->digest));
}

bool stele_catalog_find_snapshot(const struct stele_catalog *catalog, uint64_t id,
				 struct stele_catalog_snapshot *out)
{
	uint32_t low = 0, high = catalog->counts.snapshots;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		stele_catalog_snapshot(catalog, middle, out);
		if (out->id == id)
			return true;
		if (out->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

void stele_catalog_ref(const struct stele_catalog *catalog, uint32_t index,
		       struct stele_catalog_ref *out)
{
	struct stele_disk_ref disk;

	stele_catalog_get(catalog,
			  catalog_layout(&catalog->counts).refs +
				  index * sizeof(disk),
			  &disk, sizeof(disk));
	out->segment = le32_get(disk.segment);
	out->deleted_count = le64_get(disk.deleted_count);
	for (uint32_t i = 0; i < STELE_REF_LISTS; i++)
		out->lists[i] = (struct stele_catalog_list){
			.offset = le64_get(disk.lists[i].offset),
			.count = le64_get(disk.lists[i].count),
			.owner = le64_get(disk.lists[i].owner),
		};
}

void stele_catalog_free(const struct stele_catalog *catalog, uint32_t index,
			struct stele_catalog_free *out)
{
	struct stele_disk_free disk;

	stele_catalog_get(catalog,
			  catalog_layout(&catalog->counts).free +
				  index * sizeof(disk),
			  &disk, sizeof(disk));
	*out = (struct stele_catalog_free){
		.offset = le64_get(disk.offset),
		.size = le64_get(disk.size),
	};
}

void stele_catalog_note(const struct stele_catalog *catalog, uint32_t index,
			char *text)
{
	struct stele_catalog_snapshot snapshot;

	stele_catalog_snapshot(catalog, index, &snapshot);
	stele_catalog_get(catalog,
			  catalog_layout(&catalog->counts).notes +
				  snapshot.note_offset,
			  text, snapshot.note_size);
}

void stele_catalog_signatures(const struct stele_catalog *catalog,
			      uint32_t index, void *data)
{
	struct stele_catalog_snapshot snapshot;

	stele_catalog_snapshot(catalog, index, &snapshot);
	stele_catalog_get(catalog,
			  catalog_layout(&catalog->counts).signatures +
				  (uint64_t)snapshot.first_signature *
					  STELE_SIGNATURE_SIZE,
			  data,
			  (size_t)snapshot.signature_count *
				  STELE_SIGNATURE_SIZE);
}

static bool name_byte_ok(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool stele_name_ok(const char *name, size_t size)
{
	if (size == 0 || size >= STELE_SNAPSHOT_NAME_SIZE || name[0] == '.' ||
	    name[0] == '-')
		return false;
	for (size_t i = 0; i < size; i++)
		if (!name_byte_ok(name[i]))
			return false;
	return true;
}
