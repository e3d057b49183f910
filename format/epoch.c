/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.c - position to id, by kind of order
 *
 * A windowed order has four steps, each invertible: the position
 * is permuted within its window; that gives the place of a block and a sample within it;
 * the place is permuted to a block; the result is rotated. One block may be short; everything
 * after its place is shifted by what it lacks.
 */
#include "format/epoch.h"

#include <string.h>

static uint64_t place_first(const struct stele_epoch *order, uint64_t place)
{
	uint64_t lacks = order->shape.block_size - order->short_size;

	return place * order->shape.block_size -
	       (place > order->short_place ? lacks : 0);
}

static uint64_t place_of(const struct stele_epoch *order, uint64_t at)
{
	uint64_t first = order->short_place * order->shape.block_size;

	if (at < first)
		return at / order->shape.block_size;
	if (at - first < order->short_size)
		return order->short_place;
	return (at - order->short_size) / order->shape.block_size + 1;
}

static uint64_t window_of(const struct stele_epoch *order, uint64_t place)
{
	uint64_t larger = order->window_larger * (order->window_blocks + 1);

	if (place < larger)
		return place / (order->window_blocks + 1);
	return order->window_larger + (place - larger) / order->window_blocks;
}

/* The place at which a window begins. */
static uint64_t window_place(const struct stele_epoch *order, uint64_t window)
{
	return window * order->window_blocks +
	       (window < order->window_larger ? window : order->window_larger);
}

static void enter(struct stele_epoch *order, uint64_t window)
{
	uint64_t place, end;

	if (window == order->window)
		return;
	place = window_place(order, window);
	end = window_place(order, window + 1);
	order->window = window;
	order->window_first = place;
	order->window_size = end - place;
	order->first = place_first(order, place);
	order->size = place_first(order, end) - order->first;
	if (order->window_size <= STELE_EPOCH_BLOCKS_KEPT)
		memset(order->blocks, 0,
		       order->window_size * sizeof(*order->blocks));
	stele_permutation_init(&order->inside, order->size, order->stream,
			       window, STELE_PURPOSE_WINDOW);
}

/* Windows differ by a block at most, so that none is a few blocks that were left over. */
static void cut(struct stele_epoch *order)
{
	const struct stele_epoch_shape *shape = &order->shape;
	uint64_t windows;

	order->block_total = (order->count - 1) / shape->block_size + 1;
	windows = (order->block_total - 1) / shape->block_count + 1;
	order->window_blocks = order->block_total / windows;
	order->window_larger = order->block_total % windows;
	order->rotation =
		stele_scale(stele_permutation_stream(order->stream, 0,
						     STELE_PURPOSE_ROTATION),
			    order->count);
	stele_permutation_init(&order->order, order->block_total, order->stream,
			       0, STELE_PURPOSE_BLOCKS);
	order->short_size = order->count % shape->block_size;
	order->short_place = order->block_total;
	if (order->short_size)
		order->short_place =
			stele_permutation_position(&order->order,
						   order->block_total - 1);
	order->window = UINT64_MAX;
}

void stele_epoch_init(struct stele_epoch *order,
		      const struct stele_epoch_shape *shape, uint64_t count,
		      uint64_t seed, uint64_t epoch, uint64_t purpose)
{
	*order = (struct stele_epoch){
		.count = count,
		.seed = seed,
		.epoch = epoch,
		.purpose = purpose,
		.shape = *shape,
	};
	if (shape->kind == STELE_EPOCH_FULL)
		stele_permutation_init(&order->order, count, seed, epoch,
				       purpose);
	if (shape->kind != STELE_EPOCH_WINDOWED)
		return;
	order->stream = stele_permutation_stream(seed, epoch, purpose);
	cut(order);
	enter(order, 0);
}

/* Each block of a window is met again and again; few blocks permute slowest. */
static uint64_t block_at(struct stele_epoch *order, uint64_t place)
{
	uint64_t *known;

	if (order->window_size > STELE_EPOCH_BLOCKS_KEPT)
		return stele_permutation_at(&order->order, place);
	known = &order->blocks[place - order->window_first];
	if (!*known)
		*known = 1 + stele_permutation_at(&order->order, place);
	return *known - 1;
}

static uint64_t windowed_at(struct stele_epoch *order, uint64_t position)
{
	uint64_t at, place, rotated;

	if (position - order->first >= order->size)
		enter(order, window_of(order, place_of(order, position)));
	at = order->first +
	     stele_permutation_at(&order->inside, position - order->first);
	place = place_of(order, at);
	rotated = block_at(order, place) * order->shape.block_size +
		  (at - place_first(order, place)) + order->rotation;
	return rotated < order->count ? rotated : rotated - order->count;
}

static uint64_t windowed_position(struct stele_epoch *order, uint64_t id)
{
	uint64_t rotated = id - order->rotation +
			   (id < order->rotation ? order->count : 0);
	uint64_t block = rotated / order->shape.block_size;
	uint64_t place = stele_permutation_position(&order->order, block);
	uint64_t at = place_first(order, place) + rotated -
		      block * order->shape.block_size;

	enter(order, window_of(order, place));
	return order->first +
	       stele_permutation_position(&order->inside, at - order->first);
}

uint64_t stele_epoch_at(struct stele_epoch *order, uint64_t position)
{
	switch (order->shape.kind) {
	case STELE_EPOCH_FULL:
		return stele_permutation_at(&order->order, position);
	case STELE_EPOCH_WINDOWED:
		return windowed_at(order, position);
	default:
		return position;
	}
}

uint64_t stele_epoch_position(struct stele_epoch *order, uint64_t id)
{
	switch (order->shape.kind) {
	case STELE_EPOCH_FULL:
		return stele_permutation_position(&order->order, id);
	case STELE_EPOCH_WINDOWED:
		return windowed_position(order, id);
	default:
		return id;
	}
}
