/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - the shape of the digest tree over the sections of a segment
 *
 * Nine levels hold 127^8 > 2^50 blocks, more than a target may have.
 */
#include "format/sections.h"

#include "format/decode.h"

void stele_tree_shape(uint64_t leaf_blocks, struct stele_tree_shape *out)
{
	uint64_t blocks = leaf_blocks;
	uint32_t level = 0;

	memset(out, 0, sizeof(*out));
	if (blocks == 0)
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
