/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.h - the order of one epoch over one dataset: position <-> id, in O(1)
 *
 * Full: the permutation. Sequential: 0, 1, 2 ... Windowed: blocks of consecutive ids are
 * permuted, as many as a window holds are gathered from all over the id space, and
 * the window is permuted. Ids are sorted by size, so a window must never be one
 * contiguous range. As with the permutation, this is a frozen spec: stele-format(5),
 * "Epochs".
 */
#ifndef STELE_FORMAT_EPOCH_H
#define STELE_FORMAT_EPOCH_H

#include "format/permutation.h"

#define STELE_EPOCH_BLOCKS_KEPT 256u

enum stele_epoch_kind {
	STELE_EPOCH_FULL = 0,
	STELE_EPOCH_WINDOWED,
	STELE_EPOCH_SEQUENTIAL,
};

struct stele_epoch_shape {
	uint32_t kind;        /* enum stele_epoch_kind */
	uint32_t block_count; /* most blocks of a window; windowed only */
	uint64_t block_size;  /* samples of a block; windowed only */
};

/* Blocks stand in places, in the order in which the epoch has them. */
struct stele_epoch {
	uint64_t count;
	uint64_t seed, epoch, purpose;
	struct stele_epoch_shape shape;
	struct stele_permutation
		order; /* full: of the ids; windowed: of the blocks */
	/* What follows is of a windowed order. */
	uint64_t stream;   /* the seed of all that is in it */
	uint64_t rotation; /* id at which block 0 begins */
	uint64_t block_total;
	uint64_t
		short_place; /* of the block that is short; block_total: none is */
	uint64_t short_size;
	uint64_t
		window_blocks; /* of each window, but the first `larger` have one more */
	uint64_t window_larger;
	/* The window that it was in. */
	uint64_t window;
	uint64_t first, size; /* positions of it */
	struct stele_permutation inside;
	uint64_t window_first, window_size; /* places of it */
	/* By place in it, 1 + the block there; 0: not asked for yet. Unused if it has more. */
	uint64_t blocks[STELE_EPOCH_BLOCKS_KEPT];
};

/*
 * `count` as of a permutation; a windowed shape has no zero, and its window no more than
 * STELE_PERMUTATION_COUNT_MAX samples.
 */
void stele_epoch_init(struct stele_epoch *order,
		      const struct stele_epoch_shape *shape, uint64_t count,
		      uint64_t seed, uint64_t epoch, uint64_t purpose);
/*
 * Not const: a windowed order keeps the window that it was in. `position` < count.
 * Return: id < count.
 */
uint64_t stele_epoch_at(struct stele_epoch *order, uint64_t position);
uint64_t stele_epoch_position(struct stele_epoch *order, uint64_t id);

#endif
