/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_order.c - which sample is read next, by whichever thread asks
 */
#include "bench_order.h"

#define BLOCKS_PER_THREAD 16u /* at least, of what there is to do */

static uint32_t block_size(uint64_t positions, uint32_t threads)
{
	uint64_t block = positions / ((uint64_t)BLOCKS_PER_THREAD * threads);

	if (threads == 1 || block > BENCH_BLOCK_MAX)
		return BENCH_BLOCK_MAX;
	return block ? (uint32_t)block : 1;
}

void bench_order_init(struct bench_order *order, uint64_t count, uint64_t total,
		      uint32_t threads, const struct stele_shuffle_opts *opts)
{
	*order = (struct bench_order){
		.count = count,
		.total = total ? total : UINT64_MAX,
		.block = block_size(total && total < count ? total : count,
				    threads),
		.opts = *opts,
	};
}

void bench_ids_init(struct bench_ids *ids, struct bench_order *order)
{
	ids->order = order;
	ids->shuffle = NULL;
	ids->next = ids->count = 0;
}

static int begin_epoch(struct bench_ids *ids, uint64_t epoch)
{
	struct stele_shuffle_opts opts = ids->order->opts;

	if (ids->shuffle && ids->epoch == epoch)
		return 0;
	stele_shuffle_close(ids->shuffle);
	ids->shuffle = NULL;
	ids->epoch = opts.epoch = epoch;
	return stele_shuffle_open(ids->order->count, &opts, &ids->shuffle);
}

int bench_ids_fill(struct bench_ids *ids)
{
	struct bench_order *order = ids->order;
	uint64_t position = __atomic_fetch_add(&order->next, order->block,
					       __ATOMIC_RELAXED);
	uint64_t left = position < order->total ? order->total - position : 0;
	int err;

	ids->next = 0;
	ids->count = left < order->block ? (unsigned int)left : order->block;
	for (unsigned int i = 0; i < ids->count; i++, position++) {
		err = begin_epoch(ids, position / order->count);
		if (err) {
			ids->count = 0;
			return err;
		}
		ids->ids[i] = stele_shuffle_at(ids->shuffle,
					       position % order->count);
	}
	return 0;
}

void bench_ids_release(struct bench_ids *ids)
{
	stele_shuffle_close(ids->shuffle);
	ids->shuffle = NULL;
}
