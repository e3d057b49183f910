/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - the shape of the digests and of the tree above them
 *
 * Seven levels hold 127^7 > 2^48 samples, more than a segment may have.
 */
#include "format/sections.h"

#include "format/decode.h"

void stele_tree_shape(uint64_t sample_count, struct stele_tree_shape *out)
{
	uint64_t blocks = ceil_div(sample_count, STELE_DIGESTS_PER_BLOCK);
	uint32_t level = 0;

	memset(out, 0, sizeof(*out));
	if (sample_count == 0)
		return;
	out->blocks[0] = blocks;
	while (blocks > 1 && level + 1 < STELE_TREE_LEVELS_MAX) {
		blocks = ceil_div(blocks, STELE_DIGESTS_PER_BLOCK);
		level++;
		out->blocks[level] = blocks;
		out->first[level] = out->tree_blocks;
		out->tree_blocks += blocks;
	}
	out->level_count = level + 1;
}
