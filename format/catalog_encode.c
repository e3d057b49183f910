/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_encode.c - write a catalog into zeroed blocks
 *
 * The caller gives all counts first, which fixes the position of each table; the
 * entries may then come in any order.
 */
#include "format/catalog_layout.h"
#include "format/decode.h"

uint64_t stele_catalog_stream_size(const struct stele_catalog_counts *counts)
{
	return catalog_layout(counts).end;
}

static void put(struct stele_disk_block *blocks,
		const struct stele_catalog_counts *counts, uint64_t position,
		const void *data, size_t size)
{
	uint64_t end = stele_catalog_stream_size(counts);

	stele_stream_put(blocks, stele_stream_blocks(end), position, data,
			 size);
}

void stele_catalog_begin(struct stele_disk_block *blocks,
			 const struct stele_catalog_counts *counts,
			 uint64_t next_snapshot_id)
{
	const struct stele_disk_catalog disk = {
		.stream_size = le64_put(stele_catalog_stream_size(counts)),
		.segment_count = le32_put(counts->segments),
		.snapshot_count = le32_put(counts->snapshots),
		.ref_count = le32_put(counts->refs),
		.free_count = le32_put(counts->free),
		.signature_count = le32_put(counts->signatures),
		.notes_size = le32_put(counts->notes_size),
		.next_snapshot_id = le64_put(next_snapshot_id),
		.deleted_count = le32_put(counts->deleted),
	};

	put(blocks, counts, 0, &disk, sizeof(disk));
}

void stele_catalog_put_segment(struct stele_disk_block *blocks,
			       const struct stele_catalog_counts *counts,
			       uint32_t index,
			       const struct stele_catalog_segment *segment)
{
	const struct stele_disk_catalog_segment disk = {
		.id = le64_put(segment->id),
		.offset = le64_put(segment->offset),
		.size = le64_put(segment->size),
		.descriptor_size = le64_put(segment->descriptor_size),
		.count = le64_put(stele_catalog_is_tree(segment) ? segment->inode_count :
								   segment->sample_count),
		.unused_since = le64_put((uint64_t)segment->unused_since),
		.of = le64_put(segment->of),
		.part = le32_put(segment->part),
	};

	put(blocks, counts,
	    catalog_layout(counts).segments + index * sizeof(disk), &disk,
	    sizeof(disk));
}

void stele_catalog_put_snapshot(struct stele_disk_block *blocks,
				const struct stele_catalog_counts *counts,
				uint32_t index,
				const struct stele_catalog_snapshot *snapshot)
{
	struct stele_disk_snapshot disk = {
		.id = le64_put(snapshot->id),
		.parent = le64_put(snapshot->parent),
		.time = le64_put((uint64_t)snapshot->time),
		.source_time = le64_put((uint64_t)snapshot->source_time),
		.sample_count = le64_put(snapshot->sample_count),
		.payload_size = le64_put(snapshot->payload_size),
		.first_ref = le32_put(snapshot->first_ref),
		.ref_count = le32_put(snapshot->ref_count),
		.note_offset = le32_put(snapshot->note_offset),
		.note_size = le32_put(snapshot->note_size),
		.first_signature = le32_put(snapshot->first_signature),
		.signature_count = le32_put(snapshot->signature_count),
		.deleted_time = le64_put((uint64_t)snapshot->deleted_time),
	};

	text_put(disk.name, sizeof(disk.name), snapshot->name);
	memcpy(disk.digest, snapshot->digest, sizeof(disk.digest));
	put(blocks, counts,
	    catalog_layout(counts).snapshots + index * sizeof(disk), &disk,
	    sizeof(disk));
}

void stele_catalog_put_ref(struct stele_disk_block *blocks,
			   const struct stele_catalog_counts *counts,
			   uint32_t index, const struct stele_catalog_ref *ref)
{
	struct stele_disk_ref disk = {
		.segment = le32_put(ref->segment),
		.deleted_count = le64_put(ref->deleted_count),
	};

	for (uint32_t i = 0; i < STELE_REF_LISTS; i++)
		disk.lists[i] = (struct stele_disk_list){
			.offset = le64_put(ref->lists[i].offset),
			.count = le64_put(ref->lists[i].count),
			.owner = le64_put(ref->lists[i].owner),
		};
	put(blocks, counts, catalog_layout(counts).refs + index * sizeof(disk),
	    &disk, sizeof(disk));
}

void stele_catalog_put_free(struct stele_disk_block *blocks,
			    const struct stele_catalog_counts *counts,
			    uint32_t index,
			    const struct stele_catalog_free *extent)
{
	const struct stele_disk_free disk = {
		.offset = le64_put(extent->offset),
		.size = le64_put(extent->size),
	};

	put(blocks, counts, catalog_layout(counts).free + index * sizeof(disk),
	    &disk, sizeof(disk));
}

void stele_catalog_put_notes(struct stele_disk_block *blocks,
			     const struct stele_catalog_counts *counts,
			     const char *text)
{
	put(blocks, counts, catalog_layout(counts).notes, text,
	    counts->notes_size);
}

void stele_catalog_put_signatures(struct stele_disk_block *blocks,
				  const struct stele_catalog_counts *counts,
				  const void *data)
{
	put(blocks, counts, catalog_layout(counts).signatures, data,
	    (size_t)counts->signatures * STELE_SIGNATURE_SIZE);
}

void stele_catalog_end(struct stele_disk_block *blocks,
		       const struct stele_catalog_counts *counts,
		       uint64_t offset, uint64_t generation)
{
	uint64_t end = stele_catalog_stream_size(counts);

	stele_blocks_seal(blocks, stele_stream_blocks(end), STELE_BLOCK_CATALOG,
			  offset, generation);
}
