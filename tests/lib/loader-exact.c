/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-exact.c - each sample once an epoch, in one order, however it is divided
 *
 * Over numbers of samples, batch sizes, ranks, ways to end an epoch and kinds of order:
 * what all ranks get together is the order of stele_shuffle_at(), in as many batches for
 * each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define SEED 42u

static const char *what_of(const struct stele_loader_opts *opts, uint64_t count)
{
	static char what[128];

	snprintf(what, sizeof(what), "%ju samples, batch %u, world %u, %s, kind %u%s",
		 (uintmax_t)count, opts->batch_size, opts->world,
		 opts->last == STELE_LAST_DROP ? "drop" : "pad", opts->shuffle,
		 opts->as_completed ? ", as completed" : "");
	return what;
}

/* How many ids stand elsewhere than the order says. */
static uint64_t out_of_order(const struct stele_loader_opts *opts,
			     uint64_t epoch, uint64_t count,
			     const struct test_load *load)
{
	struct stele_shuffle *shuffle;
	uint64_t wrong = 0;

	if (stele_shuffle_open(count,
			       &STELE_OPTS(stele_shuffle_opts, .seed = SEED,
					   .epoch = epoch,
					   .kind = opts->shuffle,
					   .block_size = opts->block_size,
					   .block_count = opts->block_count),
			       &shuffle))
		bail("no order");
	for (uint64_t i = 0; i < load->count; i++)
		wrong += stele_shuffle_at(shuffle, i) != load->ids[i];
	for (uint64_t i = 0; i < load->padded; i++)
		wrong += stele_shuffle_at(shuffle, i % count) !=
			 load->padding[i];
	stele_shuffle_close(shuffle);
	return wrong;
}

/* Three epochs of all ranks. */
static void check(const struct test_dataset *t, struct stele_loader_opts opts,
		  uint64_t count)
{
	struct stele_loader_source source = {.ds = t->ds, .count = count};
	struct stele_loader *loaders[TEST_RANKS_MAX];
	const uint64_t step = opts.batch_size * opts.world;
	const bool drop = opts.last == STELE_LAST_DROP;
	const uint64_t steps = drop ? count / step : (count + step - 1) / step;
	const char *what = what_of(&opts, count);
	uint64_t wrong = 0;

	opts.seed = SEED;
	opts.epoch = 7;
	test_loaders(&source, 1, opts, loaders);
	for (uint64_t epoch = 7; epoch < 10; epoch++) {
		struct test_load load = {0};

		wrong += stele_loader_remaining(loaders[0]) != steps;
		wrong += test_load_all(loaders, opts.world, t, UINT64_MAX,
				       &load) != 0;
		wrong += load.wrong + load.skipped;
		wrong += load.batches != steps * opts.world;
		wrong += load.count != (drop ? steps * step : count);
		wrong += load.padded != steps * step - load.count;
		if (!drop)
			wrong += test_load_odd(load.ids, load.count, 0, count,
					       1);
		if (!opts.as_completed)
			wrong += out_of_order(&opts, epoch, count, &load);
		test_load_release(&load);
	}
	is_uint(0, wrong, "%s", what);
	test_loaders_close(loaders, opts.world);
}

static void check_divisions(const struct test_dataset *t)
{
	static const uint64_t counts[] = {1, 2, 7, 64, 97};
	static const uint32_t batches[] = {1, 3, 8, 100};
	static const uint32_t worlds[] = {1, 2, 5};

	for (unsigned int i = 0; i < 5 * 4 * 3 * 2; i++) {
		struct stele_loader_opts opts = {
			.batch_size = batches[i / 5 % 4],
			.world = worlds[i / 20 % 3],
			.last = i / 60,
			.as_completed = i % 3 == 2,
		};

		check(t, opts, counts[i % 5]);
	}
}

static void check_kinds(const struct test_dataset *t)
{
	struct stele_loader_opts opts = {.batch_size = 4, .world = 3};

	for (opts.shuffle = 0; opts.shuffle <= STELE_SHUFFLE_NONE;
	     opts.shuffle++) {
		opts.block_size = opts.shuffle == STELE_SHUFFLE_WINDOWED ? 4 : 0;
		opts.block_count = opts.block_size;
		check(t, opts, t->count);
		opts.as_completed = !opts.as_completed;
	}
}

/* What a device hands out of order does not show, unless asked for. */
static void check_late_reads(const char *backend)
{
	struct test_plan plan = {
		.samples = 200, .size_max = 9000, .backend = backend};
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_DELAY, .ops = 1 << STELE_OP_READ, .arg = 9};
	struct stele_loader_opts opts = {.batch_size = 16,
					 .world = 2,
					 .prefetch_size = 1 << 20,
					 .depth = 16};
	struct test_dataset t;

	test_dataset_open(&t, &plan);
	for (unsigned int i = 0; i < 2; i++) {
		stele_fault_set_rules(t.dev, &rule, 1);
		opts.as_completed = i;
		check(&t, opts, t.count);
	}
	test_dataset_close(&t);
}

static void check_options(const struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds};
	static const struct stele_loader_opts bad[] = {
		{.rank = 1},
		{.rank = 2, .world = 2},
		{.last = 2},
		{.on_error = 3},
		{.shuffle = 3},
		{.as_completed = 2},
		{.verify = 4},
		{.batch_size = UINT32_MAX},
		{.threads = UINT32_MAX},
		{.epoch_size = UINT64_MAX},
		{.depth = UINT32_MAX},
		{.shuffle = 1, .block_size = UINT64_MAX},
	};
	struct {
		struct stele_loader_opts known;
		uint64_t unknown;
	} newer = {.known.size = sizeof(newer), .unknown = 1};
	struct stele_loader *loader;
	struct test_log log;

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct stele_loader_opts opts = bad[i];

		test_log_init(&log);
		opts.size = sizeof(opts);
		opts.log = log.log.fn;
		opts.log_user = log.log.user;
		is_int(-EINVAL, stele_loader_open(&source, 1, &opts, &loader),
		       "bad option %u", i);
		ok(log.size && memchr(log.text, '\n', log.size) ==
				       log.text + log.size - 1,
		   "one line says why");
	}
	is_int(-EINVAL, stele_loader_open(&source, 0, NULL, &loader),
	       "no source");
	is_int(-EINVAL, stele_loader_open(NULL, 1, NULL, &loader),
	       "no sources at all");
	test_log_init(&log);
	newer.known.log = log.log.fn;
	newer.known.log_user = log.log.user;
	is_int(-E2BIG, stele_loader_open(&source, 1, &newer.known, &loader),
	       "a newer option");
	ok(test_log_has(&log, "option at byte "), "is told by its place");
	stele_loader_close(NULL);
}

/* Fewer samples than a step: with DROP, an epoch without batches, and no hang. */
static void check_empty_epochs(const struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds, .count = 5};
	struct stele_loader *loader =
		test_loader(&source, 1,
			    (struct stele_loader_opts){
				    .batch_size = 3, .world = 2, .last = STELE_LAST_DROP});
	struct stele_batch batch = {.size = sizeof(batch)};

	is_uint(0, stele_loader_remaining(loader), "no whole step");
	is_int(0, stele_loader_next(loader, &batch), "so the epoch ends");
	is_int(0, stele_loader_next(loader, &batch), "each does");
	stele_loader_close(loader);
}

int main(void)
{
	struct test_plan plan = {.samples = 97, .size_max = 300};
	struct test_dataset t;

	plan_lazy();
	test_dataset_open(&t, &plan);
	check_options(&t);
	check_divisions(&t);
	check_kinds(&t);
	check_empty_epochs(&t);
	test_dataset_close(&t);
	check_late_reads(NULL);
	check_late_reads("uring");
	check_late_reads("threads");
	return done();
}
