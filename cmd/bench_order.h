/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_order.h - which sample is read next, by whichever thread asks
 *
 * All threads take blocks of positions from one counter, so that each position is
 * done once, and no thread has to wait for another in the end. Position p is
 * that of epoch p / count. Ids are computed a block at a time, before they are
 * wanted: that must not be what is measured.
 */
#ifndef STELE_CMD_BENCH_ORDER_H
#define STELE_CMD_BENCH_ORDER_H

#include <stdint.h>

#include "stele.h"

#define BENCH_BLOCK_MAX 256u /* positions */

struct bench_order {
	uint64_t count; /* samples of the dataset */
	uint64_t total; /* positions to do; UINT64_MAX: no end */
	uint64_t next;	/* position; atomic */
	uint32_t block;
	struct stele_shuffle_opts opts; /* but for the epoch */
};

/* `total` 0: no end. Threads share what there is in blocks that suit their number. */
void bench_order_init(struct bench_order *order, uint64_t count, uint64_t total,
		      uint32_t threads, const struct stele_shuffle_opts *opts);

/* Of one thread. */
struct bench_ids {
	struct bench_order *order;
	struct stele_shuffle *shuffle; /* of `epoch` */
	uint64_t epoch;
	unsigned int next, count; /* of ids[], those not yet used */
	uint64_t ids[BENCH_BLOCK_MAX];
};

void bench_ids_init(struct bench_ids *ids, struct bench_order *order);
/*
 * Take a block, when all of the last one are used.
 * Return: 0, with ids->count 0 at the end; negative errno.
 */
int bench_ids_fill(struct bench_ids *ids);
void bench_ids_release(struct bench_ids *ids);

#endif
