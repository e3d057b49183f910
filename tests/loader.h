/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h - what a loader hands out, gathered and checked
 *
 * One rank or all ranks of a job, to the end of an epoch or for some batches. The bytes
 * of each sample are compared with what the test dataset should hold.
 */
#ifndef STELE_TESTS_LOADER_H
#define STELE_TESTS_LOADER_H

#include "tests/dataset.h"

#define TEST_RANKS_MAX 8u

/* What came, in the order in which it came; what pads apart from the rest. */
struct test_load {
	uint64_t *ids, *padding;
	uint32_t *sources; /* as ids */
	uint64_t count, padded, skipped;
	uint64_t batches, room;
	uint64_t wrong; /* samples with other bytes; batches of the wrong form */
	bool unchecked; /* set by the test: a transform changes the bytes */
};

/* Opens or bails; `opts` as far as the test cares. */
struct stele_loader *test_loader(const struct stele_loader_source *sources,
				 uint32_t count, struct stele_loader_opts opts);
/* Ranks 0 ... world-1 of one job. */
void test_loaders(const struct stele_loader_source *sources, uint32_t count,
		  struct stele_loader_opts opts, struct stele_loader **out);
void test_loaders_close(struct stele_loader **loaders, uint32_t world);

/*
 * Up to `batches` more, each released at once. `t` has one for each source. Return: what
 * next() said last: 1, 0 at the end of the epoch, or an error.
 */
int test_load(struct stele_loader *loader, const struct test_dataset *t,
	      uint64_t batches, struct test_load *load);
void test_load_release(struct test_load *load);

/*
 * All ranks, step by step, until the epoch ends or after `batches`: what a rank has of a
 * step stands at its positions, so `load` is in global order. Checks that all end
 * together. Return: as test_load().
 */
int test_load_all(struct stele_loader **loaders, uint32_t world,
		  const struct test_dataset *t, uint64_t batches,
		  struct test_load *load);

/* How many of 0 ... count-1 are not there exactly `times`, or do not belong there. */
uint64_t test_load_odd(const uint64_t *ids, uint64_t n, uint64_t first,
		       uint64_t count, uint64_t times);

#endif
