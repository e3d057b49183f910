/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted.c - lists of numbers that a snapshot deletes from a segment
 *
 * Half of the samples or a few: either way a list takes about as much as a reader
 * must look at. 254 words fill a payload exactly, so a list is a plain stream.
 */
#include "format/sections.h"

#include "format/decode.h"

_Static_assert(STELE_DELETED_PER_BLOCK * sizeof(struct stele_disk_word) ==
		       STELE_BLOCK_PAYLOAD,
	       "a deleted list is not a plain stream");

uint64_t stele_deleted_blocks(uint64_t count)
{
	return ceil_div(count, STELE_DELETED_PER_BLOCK);
}

void stele_deleted_get(const struct stele_disk_block *blocks, uint64_t at,
		       uint64_t *index, uint64_t *bits)
{
	const struct stele_disk_block *block = &blocks[at / STELE_DELETED_PER_BLOCK];
	const struct stele_disk_word *word =
		(const struct stele_disk_word *)block->payload +
		at % STELE_DELETED_PER_BLOCK;

	*index = le64_get(word->index);
	*bits = le64_get(word->bits);
}

void stele_deleted_put(struct stele_disk_block *blocks, uint64_t at,
		       uint64_t index, uint64_t bits)
{
	struct stele_disk_block *block = &blocks[at / STELE_DELETED_PER_BLOCK];
	struct stele_disk_word *word = (struct stele_disk_word *)block->payload +
				       at % STELE_DELETED_PER_BLOCK;

	word->index = le64_put(index);
	word->bits = le64_put(bits);
}

int stele_deleted_check(const struct stele_disk_block *blocks, uint64_t count,
			uint64_t sample_count, const char **why)
{
	const uint64_t last = sample_count / STELE_DELETED_PER_WORD;
	uint64_t least = 0; /* that the next index may be */

	for (uint64_t i = 0; i < count; i++) {
		uint64_t index, bits;

		stele_deleted_get(blocks, i, &index, &bits);
		if (index > last ||
		    (index == last && bits >> sample_count % STELE_DELETED_PER_WORD))
			return unclean(why, "deleted: number out of range");
		if (index < least)
			return unclean(why, "deleted: not ascending");
		if (!bits)
			return unclean(why, "deleted: empty word");
		least = index + 1;
	}
	if (!stele_stream_zero_from(blocks, stele_deleted_blocks(count),
				    count * sizeof(struct stele_disk_word)))
		return unclean(why, "deleted: nonzero bytes after the list");
	return 0;
}
