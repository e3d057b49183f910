/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_encode.c - write a descriptor into zeroed blocks
 *
 * The counts in *d fix where each table lies; entries may come in any order.
 * Both copies have the same payload and differ in the headers of their blocks.
 */
#include "format/decode.h"
#include "format/segment_layout.h"

uint64_t stele_descriptor_stream_size(uint32_t field_count, uint32_t run_count,
				      uint32_t section_count,
				      uint32_t filter_size)
{
	return descriptor_layout(field_count, run_count, section_count,
				 filter_size)
		.end;
}

static uint64_t block_count(const struct stele_descriptor *d)
{
	return stele_stream_blocks(descriptor_layout_of(d).end);
}

static void put(struct stele_disk_block *blocks,
		const struct stele_descriptor *d, uint64_t position,
		const void *data, size_t size)
{
	stele_stream_put(blocks, block_count(d), position, data, size);
}

void stele_descriptor_put_header(struct stele_disk_block *blocks,
				 const struct stele_descriptor *d)
{
	struct stele_disk_descriptor disk = {
		.id = le64_put(d->id),
		.stream_size = le64_put(descriptor_layout_of(d).end),
		.offset = le64_put(d->offset),
		.size = le64_put(d->size),
		.sample_count = le64_put(d->sample_count),
		.payload_size = le64_put(d->payload_size),
		.records_size = le64_put(d->records_size),
		.slots_offset = le64_put(d->slots_offset),
		.slots_size = le64_put(d->slots_size),
		.boundary = le64_put(d->boundary),
		.granule = le32_put(d->granule),
		.order = le32_put(d->order),
		.field_count = le32_put(d->field_count),
		.run_count = le32_put(d->run_count),
		.section_count = le32_put(d->section_count),
		.filter_size = le32_put(d->filter_size),
	};

	memcpy(disk.tree_root, d->tree_root, sizeof(disk.tree_root));
	memcpy(disk.schema_digest, d->schema_digest,
	       sizeof(disk.schema_digest));
	put(blocks, d, 0, &disk, sizeof(disk));
}

void stele_field_encode(const struct stele_descriptor_field *field,
			struct stele_disk_field *out)
{
	memset(out, 0, sizeof(*out));
	text_put(out->name, sizeof(out->name), field->name);
	out->type = le32_put(field->type);
	out->dtype = le32_put(field->dtype);
	out->rank = le32_put(field->rank);
	for (uint32_t i = 0; i < STELE_FIELD_RANK_MAX; i++)
		out->dims[i] = le32_put(field->dims[i]);
}

void stele_descriptor_put_field(struct stele_disk_block *blocks,
				const struct stele_descriptor *d,
				uint32_t index,
				const struct stele_descriptor_field *field)
{
	struct stele_disk_field disk;

	stele_field_encode(field, &disk);
	put(blocks, d, descriptor_layout_of(d).fields + index * sizeof(disk),
	    &disk, sizeof(disk));
}

void stele_descriptor_put_run(struct stele_disk_block *blocks,
			      const struct stele_descriptor *d, uint32_t index,
			      const struct stele_run *run)
{
	const struct stele_disk_run disk = {
		.first = le64_put(run->first),
		.offset = le64_put(run->offset),
		.slot_size = le64_put(run->slot_size),
	};

	put(blocks, d, descriptor_layout_of(d).runs + index * sizeof(disk),
	    &disk, sizeof(disk));
}

void stele_descriptor_put_section(struct stele_disk_block *blocks,
				  const struct stele_descriptor *d,
				  uint32_t index,
				  const struct stele_section *section)
{
	const struct stele_disk_section disk = {
		.type = le32_put(section->type),
		.field = le32_put(section->field),
		.offset = le64_put(section->offset),
		.size = le64_put(section->size),
		.count = le64_put(section->count),
		.stream_size = le64_put(section->stream_size),
	};

	put(blocks, d, descriptor_layout_of(d).sections + index * sizeof(disk),
	    &disk, sizeof(disk));
}

void stele_descriptor_put_filter(struct stele_disk_block *blocks,
				 const struct stele_descriptor *d,
				 const uint8_t *filter)
{
	put(blocks, d, descriptor_layout_of(d).filter, filter, d->filter_size);
}

void stele_descriptor_seal(struct stele_disk_block *blocks,
			   const struct stele_descriptor *d, uint64_t offset)
{
	stele_blocks_seal(blocks, block_count(d), STELE_BLOCK_DESCRIPTOR,
			  offset, d->id);
}
