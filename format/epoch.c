/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch.c - position to id, by kind of order
 */
#include "format/epoch.h"

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
	stele_permutation_init(&order->samples, count, seed, epoch, purpose);
}

uint64_t stele_epoch_at(struct stele_epoch *order, uint64_t position)
{
	return order->shape.kind == STELE_EPOCH_SEQUENTIAL
		       ? position
		       : stele_permutation_at(&order->samples, position);
}

uint64_t stele_epoch_position(struct stele_epoch *order, uint64_t id)
{
	return order->shape.kind == STELE_EPOCH_SEQUENTIAL
		       ? id
		       : stele_permutation_position(&order->samples, id);
}
