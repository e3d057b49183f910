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

enum stele_epoch_kind {
	STELE_EPOCH_FULL = 0,
	STELE_EPOCH_WINDOWED,
	STELE_EPOCH_SEQUENTIAL,
};

struct stele_epoch_shape {
	uint32_t kind;	       /* enum stele_epoch_kind */
	uint32_t block_count;  /* blocks of a window; windowed only */
	uint64_t block_size;   /* samples of a block; windowed only */
};

struct stele_epoch {
	uint64_t count;
	uint64_t seed, epoch, purpose;
	struct stele_epoch_shape shape;
	struct stele_permutation samples; /* full: of the ids */
};

/* `count` as of a permutation; a windowed shape has no zero. */
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
