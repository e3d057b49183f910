/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c - view a descriptor: decode, accessors
 *
 * A descriptor may be read without anything that vouches for it (salvage), so
 * it is trusted only as far as it is consistent with itself. The caller of an
 * accessor keeps index < count.
 */
#include "format/segment_check.h"

#include "format/decode.h"
#include "format/features.h"
#include "format/filter.h"
#include "format/segment_layout.h"
#include "format/superblock.h"

void stele_descriptor_get(const struct stele_descriptor *d, uint64_t position,
			  void *data, size_t size)
{
	/* Never true once the counts match the stream. */
	if (!stele_stream_get(d->blocks, d->block_count, position, data, size))
		memset(data, 0, size);
}

uint64_t stele_descriptor_size(const struct stele_descriptor *d)
{
	return d->block_count * STELE_BLOCK_SIZE;
}

static void read_header(struct stele_descriptor *out,
			struct stele_disk_descriptor *disk)
{
	stele_descriptor_get(out, 0, disk, sizeof(*disk));
	out->id = le64_get(disk->id);
	out->offset = le64_get(disk->offset);
	out->size = le64_get(disk->size);
	out->sample_count = le64_get(disk->sample_count);
	out->payload_size = le64_get(disk->payload_size);
	out->records_size = le64_get(disk->records_size);
	out->slots_offset = le64_get(disk->slots_offset);
	out->slots_size = le64_get(disk->slots_size);
	out->boundary = le64_get(disk->boundary);
	out->granule = le32_get(disk->granule);
	out->order = le32_get(disk->order);
	out->field_count = le32_get(disk->field_count);
	out->run_count = le32_get(disk->run_count);
	out->section_count = le32_get(disk->section_count);
	out->filter_size = le32_get(disk->filter_size);
	memcpy(out->tree_root, disk->tree_root, sizeof(out->tree_root));
	memcpy(out->schema_digest, disk->schema_digest,
	       sizeof(out->schema_digest));
}

static int check_counts(const struct stele_descriptor *d,
			const struct stele_disk_descriptor *disk,
			const char **why)
{
	uint64_t end = descriptor_layout_of(d).end;

	if (d->sample_count > STELE_SAMPLES_MAX)
		return unclean(why, "descriptor: too many samples");
	if (d->field_count == 0 || d->field_count > STELE_FIELD_COUNT_MAX)
		return unclean(why, "descriptor: field count out of range");
	if (d->run_count > STELE_RUNS_MAX || d->run_count > d->sample_count ||
	    (d->run_count == 0) != (d->sample_count == 0))
		return unclean(why, "descriptor: run count out of range");
	if (d->section_count > STELE_SECTION_COUNT_MAX)
		return unclean(why, "descriptor: too many sections");
	if (d->filter_size > STELE_FILTER_SIZE_MAX)
		return unclean(why, "descriptor: filter out of range");
	if (le64_get(disk->stream_size) != end)
		return unclean(why, "descriptor: stream size against counts");
	if (stele_stream_blocks(end) != d->block_count)
		return unclean(why, "descriptor: size against stream size");
	if (!stele_stream_zero_from(d->blocks, d->block_count, end))
		return unclean(why, "descriptor: nonzero bytes after it");
	return 0;
}

/* `offset`: of the copy that was read. */
static int check_place(const struct stele_descriptor *d, uint64_t offset,
		       const char **why)
{
	const uint64_t own = stele_descriptor_size(d);

	if (!is_aligned(d->offset | d->size, STELE_BLOCK_SIZE) ||
	    d->offset < STELE_DATA_OFFSET ||
	    !range_ok(d->offset, d->size, STELE_IMAGE_SIZE_MAX))
		return unclean(why, "descriptor: segment out of bounds");
	if (d->size / 2 < own)
		return unclean(why, "descriptor: larger than its segment");
	if (offset != d->offset && offset != d->offset + d->size - own)
		return unclean(why, "descriptor: not at an end of its segment");
	if (d->boundary &&
	    (!is_power_of_two(d->boundary) || d->boundary < STELE_BLOCK_SIZE ||
	     !is_aligned(d->offset, d->boundary)))
		return unclean(why, "descriptor: bad boundary");
	return 0;
}

static int check_slots(const struct stele_descriptor *d, const char **why)
{
	const uint64_t own = stele_descriptor_size(d);

	if (d->granule != 16 && d->granule != 64 && d->granule != 512 &&
	    d->granule != 4096)
		return unclean(why, "descriptor: unknown granule");
	if (d->order > STELE_SLOT_ORDER_SOURCE)
		return unclean(why, "descriptor: unknown slot order");
	if (d->slots_offset < own || !is_aligned(d->slots_offset, d->granule) ||
	    !range_ok(d->slots_offset, d->slots_size, d->size - own))
		return unclean(why, "descriptor: slots out of bounds");
	return 0;
}

/* What is left when everything that the sums are made of is known good. */
static int check_sums(const struct stele_descriptor *d, const char **why)
{
	struct stele_record_shape shape;
	uint64_t tails;

	stele_descriptor_shape(d, &shape);
	if (d->records_size > d->slots_size)
		return unclean(why, "descriptor: records larger than slots");
	if (d->payload_size > d->records_size)
		return unclean(why, "descriptor: payload larger than records");
	if (!checked_mul(d->sample_count, stele_record_tail_fixed(&shape),
			 &tails) ||
	    d->records_size - d->payload_size < tails)
		return unclean(why, "descriptor: records without tails");
	return 0;
}

static int check_all(const struct stele_descriptor *d, uint64_t offset,
		     const struct stele_disk_descriptor *disk, const char **why)
{
	int ret;

	ret = check_counts(d, disk, why);
	if (ret == 0)
		ret = check_place(d, offset, why);
	if (ret == 0)
		ret = check_slots(d, why);
	if (ret == 0)
		ret = stele_descriptor_check_fields(d, why);
	if (ret == 0)
		ret = stele_descriptor_check_runs(d, why);
	if (ret == 0)
		ret = check_sums(d, why);
	if (ret == 0)
		ret = stele_descriptor_check_sections(d, why);
	if (ret < 0)
		return ret;
	if (d->filter_size &&
	    d->filter_size != stele_filter_size(d->sample_count))
		return unclean(why, "descriptor: filter against samples");
	if (!bytes_zero(disk->reserved1, sizeof(disk->reserved1)))
		return unclean(why, "descriptor: reserved bytes not zero");
	return 0;
}

int stele_descriptor_decode(const void *blocks, uint64_t size, uint64_t offset,
			    uint64_t id, struct stele_descriptor *out,
			    const char **why)
{
	struct stele_disk_descriptor disk;
	int ret;

	if (size == 0 || size > STELE_DESCRIPTOR_SIZE_MAX ||
	    !is_aligned(size, STELE_BLOCK_SIZE))
		return unclean(why, "descriptor: size out of range");
	*out = (struct stele_descriptor){
		.blocks = blocks,
		.block_count = size / STELE_BLOCK_SIZE,
	};
	/* In a salvage the first block says which segment it is. */
	if (id == STELE_OWNER_ANY)
		id = le64_get(out->blocks->owner);
	ret = stele_blocks_check(out->blocks, out->block_count,
				 STELE_BLOCK_DESCRIPTOR, offset, id, why);
	if (ret < 0)
		return ret;
	read_header(out, &disk);
	if (out->id != id || id == 0 || id == STELE_OWNER_ANY)
		return unclean(why, "descriptor: belongs to another segment");
	return check_all(out, offset, &disk, why);
}

void stele_descriptor_field(const struct stele_descriptor *descriptor,
			    uint32_t index, struct stele_descriptor_field *out)
{
	struct stele_disk_field disk;

	stele_descriptor_get(descriptor,
			     descriptor_layout_of(descriptor).fields +
				     index * sizeof(disk),
			     &disk, sizeof(disk));
	memcpy(out->name, disk.name, sizeof(out->name));
	out->type = le32_get(disk.type);
	out->dtype = le32_get(disk.dtype);
	out->rank = le32_get(disk.rank);
	for (uint32_t i = 0; i < STELE_FIELD_RANK_MAX; i++)
		out->dims[i] = le32_get(disk.dims[i]);
}

uint64_t stele_descriptor_features(const struct stele_descriptor *descriptor,
				   const struct stele_descriptor_field *fields)
{
	uint64_t features = descriptor->boundary ? STELE_FEATURE_BOUNDARY : 0;

	for (uint32_t i = 0; i < descriptor->field_count; i++)
		if (fields[i].type == STELE_FIELD_TENSOR)
			features |= STELE_FEATURE_TENSOR;
	return features;
}

void stele_descriptor_run(const struct stele_descriptor *descriptor,
			  uint32_t index, struct stele_run *out)
{
	struct stele_disk_run disk;

	stele_descriptor_get(descriptor,
			     descriptor_layout_of(descriptor).runs +
				     index * sizeof(disk),
			     &disk, sizeof(disk));
	out->first = le64_get(disk.first);
	out->offset = le64_get(disk.offset);
	out->slot_size = le64_get(disk.slot_size);
}

void stele_descriptor_section(const struct stele_descriptor *descriptor,
			      uint32_t index, struct stele_section *out)
{
	struct stele_disk_section disk;

	stele_descriptor_get(descriptor,
			     descriptor_layout_of(descriptor).sections +
				     index * sizeof(disk),
			     &disk, sizeof(disk));
	out->type = le32_get(disk.type);
	out->field = le32_get(disk.field);
	out->offset = le64_get(disk.offset);
	out->size = le64_get(disk.size);
	out->count = le64_get(disk.count);
	out->stream_size = le64_get(disk.stream_size);
}

void stele_descriptor_filter(const struct stele_descriptor *descriptor,
			     uint8_t *out)
{
	stele_descriptor_get(descriptor,
			     descriptor_layout_of(descriptor).filter, out,
			     descriptor->filter_size);
}

int stele_descriptor_find_section(const struct stele_descriptor *descriptor,
				  uint32_t type, uint32_t field,
				  struct stele_section *out)
{
	for (uint32_t i = 0; i < descriptor->section_count; i++) {
		stele_descriptor_section(descriptor, i, out);
		if (out->type == type && out->field == field)
			return 0;
	}
	return -ENOENT;
}

void stele_descriptor_shape(const struct stele_descriptor *descriptor,
			    struct stele_record_shape *out)
{
	*out = (struct stele_record_shape){0};
	for (uint32_t i = 0; i < descriptor->field_count; i++) {
		struct stele_descriptor_field field;

		stele_descriptor_field(descriptor, i, &field);
		if (stele_field_is_scalar(field.type))
			out->scalar_count++;
		else
			out->bytes_count++;
	}
}
