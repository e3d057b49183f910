/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted.c - lists of numbers that a snapshot deletes from a segment
 *
 * 508 numbers fill a payload exactly, so that a list is a plain stream of
 * le64.
 */
#include "format/sections.h"

#include "format/decode.h"

_Static_assert(STELE_DELETED_PER_BLOCK * sizeof(le64) == STELE_BLOCK_PAYLOAD,
	       "a deleted list is not a plain stream");

uint64_t stele_deleted_blocks(uint64_t count)
{
	return ceil_div(count, STELE_DELETED_PER_BLOCK);
}

uint64_t stele_deleted_get(const struct stele_disk_block *blocks,
			   uint64_t index)
{
	const struct stele_disk_block *block =
		&blocks[index / STELE_DELETED_PER_BLOCK];
	const le64 *numbers = (const le64 *)block->payload;

	return le64_get(numbers[index % STELE_DELETED_PER_BLOCK]);
}

void stele_deleted_put(struct stele_disk_block *blocks, uint64_t index,
		       uint64_t number)
{
	struct stele_disk_block *block =
		&blocks[index / STELE_DELETED_PER_BLOCK];
	le64 *numbers = (le64 *)block->payload;

	numbers[index % STELE_DELETED_PER_BLOCK] = le64_put(number);
}

int stele_deleted_check(const struct stele_disk_block *blocks, uint64_t count,
			uint64_t sample_count, const char **why)
{
	uint64_t least = 0; /* that the next one may be */

	for (uint64_t i = 0; i < count; i++) {
		const le64 *numbers =
			(const le64 *)blocks[i / STELE_DELETED_PER_BLOCK].payload;
		uint64_t number = le64_get(numbers[i % STELE_DELETED_PER_BLOCK]);

		if (number >= sample_count)
			return unclean(why, "deleted: number out of range");
		if (number < least)
			return unclean(why, "deleted: not ascending");
		least = number + 1;
	}
	if (!stele_stream_zero_from(blocks, stele_deleted_blocks(count),
				    count * sizeof(le64)))
		return unclean(why, "deleted: nonzero bytes after the list");
	return 0;
}
