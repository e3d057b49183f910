/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section.c - blocks of sections, and digests found in them
 */
#include "lib/image/section.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/digest.h"
#include "lib/image/stale.h"

/* Log which of the blocks is damaged. Return: the first error. */
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
			stele_log_error(&image->log,
					"block of a section (type %u) at %" PRIu64
					": %s",
					section->type, offset, why);
		offset += STELE_BLOCK_SIZE;
	}
	return ret;
}

int stele_section_read(const struct stele_image *image,
		       const struct stele_segment *segment,
		       const struct stele_section *section, uint64_t index,
		       uint64_t count, struct stele_disk_block *blocks)
{
	uint64_t offset;
	int ret;

	if (!range_ok(index, count, section->size / STELE_BLOCK_SIZE))
		return -ERANGE;
	/* The descriptor was checked: all of the section lies in the segment. */
	offset = segment->descriptor.offset + section->offset +
		 index * STELE_BLOCK_SIZE;
	ret = stele_device_read(image->dev, blocks, offset,
				count * STELE_BLOCK_SIZE);
	if (ret < 0) {
		stele_log_error(&image->log,
				"cannot read %" PRIu64
				" blocks of a section at %" PRIu64,
				count, offset);
		return ret;
	}
	ret = check_blocks(image, segment, section, blocks, count, offset);
	if (ret == -EMEDIUMTYPE) /* the image is ours, its block was */
		ret = -EBADMSG;
	return stele_image_judge(image, segment->descriptor.id,
				 segment->descriptor.offset, ret);
}

/* One block of a section that must be there. */
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

static const uint8_t *entry(const struct stele_disk_block *block,
			    uint64_t index)
{
	return block->payload +
	       index % STELE_DIGESTS_PER_BLOCK * STELE_DIGEST_SIZE;
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
		memcpy(digest, entry(block, number), STELE_DIGEST_SIZE);
	free(block);
	return ret;
}

static int log_level(const struct stele_image *image, uint64_t number,
		     unsigned int level)
{
	stele_log_error(&image->log,
			"digest of sample %" PRIu64
			" of its segment differs at level %u of the tree",
			number, level);
	return -EBADMSG;
}

/* Climb: is `digest` what each level says, and the root in the end? */
static int climb(const struct stele_image *image,
		 const struct stele_segment *segment, struct stele_hash *hash,
		 uint64_t number, uint8_t digest[32],
		 struct stele_disk_block *block)
{
	struct stele_tree_shape shape;
	uint64_t index = number;
	int ret;

	stele_tree_shape(segment->descriptor.sample_count, &shape);
	for (unsigned int level = 0; level < shape.level_count; level++) {
		uint32_t type = level ? STELE_BLOCK_TREE : STELE_BLOCK_DIGESTS;

		ret = read_block(image, segment, type,
				 shape.first[level] +
					 index / STELE_DIGESTS_PER_BLOCK,
				 block);
		if (ret < 0)
			return ret;
		if (memcmp(digest, entry(block, index), STELE_DIGEST_SIZE) != 0)
			return log_level(image, number, level);
		stele_hash_block(hash, block, digest);
		index /= STELE_DIGESTS_PER_BLOCK;
	}
	if (memcmp(digest, segment->descriptor.tree_root, STELE_DIGEST_SIZE))
		return log_level(image, number, shape.level_count);
	return 0;
}

int stele_segment_check_digest(const struct stele_image *image,
			       const struct stele_segment *segment,
			       struct stele_hash *hash, uint64_t number,
			       const uint8_t digest[32])
{
	struct stele_disk_block *block;
	uint8_t current[STELE_DIGEST_SIZE];
	int ret;

	if (number >= segment->descriptor.sample_count)
		return -ERANGE;
	block = stele_device_alloc(image->dev, STELE_BLOCK_SIZE);
	if (!block)
		return -ENOMEM;
	memcpy(current, digest, sizeof(current));
	ret = climb(image, segment, hash, number, current, block);
	free(block);
	return ret;
}
