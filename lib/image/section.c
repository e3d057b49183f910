/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section.c - blocks of sections
 */
#include "lib/image/section.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/proof.h"
#include "lib/image/record_stream.h"
#include "lib/image/stale.h"

const char *stele_section_name(uint32_t type)
{
	static const char *const names[] = {
		[STELE_BLOCK_KEYS] = "keys",
		[STELE_BLOCK_ORDER] = "order",
		[STELE_BLOCK_COLUMN] = "column",
		[STELE_BLOCK_DIGESTS] = "digests",
		[STELE_BLOCK_TREE] = "tree",
		[STELE_BLOCK_NAMES] = "names",
	};

	if (type < sizeof(names) / sizeof(names[0]) && names[type])
		return names[type];
	return "section";
}

static int judge(const struct stele_image *image,
		 const struct stele_segment *segment, int error)
{
	if (error == -EMEDIUMTYPE) /* the image is ours, its block was */
		error = -EBADMSG;
	return stele_image_judge(image, segment->descriptor.id,
				 segment->descriptor.offset, error);
}

/* Log which blocks are damaged, unless the snapshot is gone. Return: the first error. */
static int check_blocks(const struct stele_image *image,
			const struct stele_segment *segment,
			const struct stele_section *section,
			const struct stele_disk_block *blocks, uint64_t count,
			uint64_t offset)
{
	const char *why = "";
	int ret = 0;

	for (uint64_t i = 0; i < count && ret == 0; i++) {
		ret = stele_block_check(&blocks[i], section->type, offset,
					segment->descriptor.id, &why);
		if (ret < 0)
			ret = judge(image, segment, ret);
		if (ret < 0 && ret != -ESTALE)
			stele_log_error(&image->log,
					"%s of segment %016" PRIx64 " at %" PRIu64 ": %s",
					stele_section_name(section->type),
					segment->descriptor.id, offset, why);
		offset += STELE_BLOCK_SIZE;
	}
	return ret;
}

static uint64_t offset_of(const struct stele_segment *segment,
			  const struct stele_section *section, uint64_t index)
{
	return segment->descriptor.offset + section->offset +
	       index * STELE_BLOCK_SIZE;
}

int stele_section_examine(const struct stele_image *image,
			  const struct stele_segment *segment,
			  const struct stele_section *section, uint64_t index,
			  uint64_t count, const struct stele_disk_block *blocks)
{
	return check_blocks(image, segment, section, blocks, count,
			    offset_of(segment, section, index));
}

int stele_section_fetch(const struct stele_image *image,
			const struct stele_segment *segment,
			const struct stele_section *section, uint64_t index,
			uint64_t count, struct stele_disk_block *blocks)
{
	uint64_t offset;
	int ret;

	if (!range_ok(index, count, section->size / STELE_BLOCK_SIZE))
		return -ERANGE;
	/* The descriptor was checked: all of the section lies in the segment. */
	offset = offset_of(segment, section, index);
	ret = stele_device_read(image->dev, blocks, offset,
				count * STELE_BLOCK_SIZE);
	if (ret < 0) {
		stele_log_error(&image->log,
				"cannot read the %s of segment %016" PRIx64 ", %" PRIu64
				" bytes at %" PRIu64 ": %s",
				stele_section_name(section->type),
				segment->descriptor.id, count * STELE_BLOCK_SIZE,
				offset, stele_strerror(ret));
		return ret;
	}
	return stele_section_examine(image, segment, section, index, count, blocks);
}

/* Without samples there is no tree: class names are proven by the schema digest. */
int stele_section_prove(const struct stele_image *image,
			const struct stele_segment *segment,
			const struct stele_section *section, uint64_t index,
			uint64_t count, const struct stele_disk_block *blocks)
{
	const uint64_t leaf =
		stele_descriptor_leaf(&segment->descriptor, section) + index;

	if (!image->prover || section->type == STELE_BLOCK_TREE ||
	    !segment->descriptor.sample_count)
		return 0;
	return judge(image, segment,
		     stele_prover_check(image->prover, segment, leaf, blocks,
					count));
}

int stele_section_check(const struct stele_image *image,
			const struct stele_segment *segment,
			const struct stele_section *section, uint64_t index,
			uint64_t count, const struct stele_disk_block *blocks)
{
	int ret = stele_section_examine(image, segment, section, index, count, blocks);

	return ret < 0 ? ret :
			 stele_section_prove(image, segment, section, index, count, blocks);
}

int stele_section_read(const struct stele_image *image,
		       const struct stele_segment *segment,
		       const struct stele_section *section, uint64_t index,
		       uint64_t count, struct stele_disk_block *blocks)
{
	int ret = stele_section_fetch(image, segment, section, index, count,
				      blocks);

	return ret < 0 ? ret :
			 stele_section_prove(image, segment, section, index, count, blocks);
}

/* One block of a section that must exist. Return: as read; -EUCLEAN (it does not). */
static int read_block(const struct stele_image *image,
		      const struct stele_segment *segment, uint32_t type,
		      uint64_t index, struct stele_disk_block *block)
{
	struct stele_section section;

	if (stele_descriptor_find_section(&segment->descriptor, type,
					  STELE_NO_FIELD, &section) < 0)
		return -EUCLEAN;
	return stele_section_read(image, segment, &section, index, 1, block);
}

int stele_segment_check_key(const struct stele_image *image,
			    const struct stele_segment *segment,
			    uint64_t number, const char *key, size_t key_size)
{
	struct stele_record record;
	uint64_t slot, size, tail, begin, end;
	const char *why;
	uint8_t *memory;
	int ret;

	stele_segment_slot(segment, number, &slot, &size);
	tail = size < STELE_RECORD_TAIL_MAX ? size : STELE_RECORD_TAIL_MAX;
	begin = round_down(slot + size - tail, STELE_BLOCK_SIZE);
	end = round_up(slot + size, STELE_BLOCK_SIZE);
	memory = stele_device_alloc(image->dev, end - begin);
	if (!memory)
		return -ENOMEM;
	ret = stele_device_read(image->dev, memory, begin, end - begin);
	if (ret == 0 &&
	    stele_record_decode_tail(memory + (slot + size - tail - begin),
				     tail, size, &segment->shape, &record,
				     &why) < 0)
		ret = -EBADMSG;
	if (ret == 0 && (record.key_size != key_size ||
			 memcmp(record.key, key, key_size) != 0))
		ret = -EUCLEAN;
	free(memory);
	return ret;
}

int stele_segment_digest(const struct stele_image *image,
			 const struct stele_segment *segment, uint64_t number,
			 uint8_t digest[32])
{
	struct stele_disk_block *block;
	int ret;

	if (number >= segment->descriptor.sample_count)
		return -ERANGE;
	block = stele_device_alloc(image->dev, STELE_BLOCK_SIZE);
	if (!block)
		return -ENOMEM;
	ret = read_block(image, segment, STELE_BLOCK_DIGESTS,
				       number / STELE_DIGESTS_PER_BLOCK, block);
	if (ret == 0)
		memcpy(digest, stele_digest_entry(block, number),
		       STELE_DIGEST_SIZE);
	free(block);
	return ret;
}
