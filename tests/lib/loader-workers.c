/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-workers.c - loaders that share the batches of a rank have those of one loader
 *
 * Over batch sizes, ranks, ways to end an epoch and numbers of workers: batches that are
 * taken from the workers in turn are those of one loader, in its order, to the end of the
 * epoch and in the next one. After whole rounds their states are its state, and go on
 * there with any other number of workers.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define COUNT	    53u
#define WORKERS_MAX 6u
#define BATCH_MAX   64u

/* Of one batch. */
struct seen {
	uint64_t epoch, index;
	uint32_t count, padded;
	uint64_t ids[BATCH_MAX];
};

/* Return: as stele_loader_next(). */
static int take(struct stele_loader *loader, struct seen *seen)
{
	struct stele_batch batch = {.size = sizeof(batch)};
	const int ret = stele_loader_next(loader, &batch);

	memset(seen, 0, sizeof(*seen));
	if (ret <= 0)
		return ret;
	*seen = (struct seen){.epoch = batch.epoch, .index = batch.index,
			      .count = batch.count, .padded = batch.padded};
	for (uint32_t i = 0; i < batch.count; i++)
		seen->ids[i] = batch.samples[i].id;
	stele_loader_release(loader, &batch);
	return ret;
}

static void open_workers(const struct stele_loader_source *source, struct stele_loader_opts opts,
			 uint32_t workers, struct stele_loader **out)
{
	opts.workers = workers;
	for (opts.worker = 0; opts.worker < workers; opts.worker++)
		out[opts.worker] = test_loader(source, 1, opts);
}

static uint64_t remaining(struct stele_loader **loaders, uint32_t workers)
{
	uint64_t all = 0;

	for (uint32_t w = 0; w < workers; w++)
		all += stele_loader_remaining(loaders[w]);
	return all;
}

static uint64_t other_states(struct stele_loader **loaders, uint32_t workers,
			     const struct stele_loader *alone)
{
	uint8_t state[STELE_LOADER_STATE_SIZE], wanted[STELE_LOADER_STATE_SIZE];
	uint64_t wrong = 0;

	stele_loader_save(alone, wanted);
	for (uint32_t w = 0; w < workers; w++) {
		stele_loader_save(loaders[w], state);
		wrong += memcmp(state, wanted, sizeof(state)) != 0;
	}
	return wrong;
}

/* To the end of this epoch, which all of them come to. How much differs from one loader. */
static uint64_t compare(struct stele_loader **loaders, uint32_t workers, uint32_t first,
			struct stele_loader *alone)
{
	struct seen one, other;
	uint64_t wrong = remaining(loaders, workers) != stele_loader_remaining(alone);
	uint32_t turn = first;

	while (take(alone, &one) > 0) {
		wrong += take(loaders[turn], &other) != 1 || memcmp(&one, &other, sizeof(one));
		turn = (turn + 1) % workers;
		if (!turn)
			wrong += other_states(loaders, workers, alone);
	}
	for (uint32_t w = 0; w < workers; w++)
		wrong += take(loaders[w], &other) != 0;
	return wrong + other_states(loaders, workers, alone);
}

/* Where these are after whole rounds, others go on. */
static uint64_t go_on(const struct stele_loader_source *source,
		      const struct stele_loader_opts *opts, uint32_t workers, uint64_t rounds)
{
	struct stele_loader *loaders[WORKERS_MAX], *others[WORKERS_MAX];
	const uint32_t count = WORKERS_MAX - workers + 1;
	struct stele_loader *alone = test_loader(source, 1, *opts);
	uint8_t state[STELE_LOADER_STATE_SIZE];
	struct seen seen;
	uint64_t wrong = 0;

	open_workers(source, *opts, workers, loaders);
	open_workers(source, *opts, count, others);
	for (uint64_t i = 0; i < rounds * workers; i++)
		wrong += take(loaders[i % workers], &seen) != 1 || take(alone, &seen) != 1;
	stele_loader_save(loaders[workers - 1], state);
	wrong += stele_loader_restore(alone, state) != 0;
	for (uint32_t w = 0; w < count; w++)
		wrong += stele_loader_restore(others[w], state) != 0;
	wrong += compare(others, count, 0, alone);
	stele_loader_close(alone);
	test_loaders_close(loaders, workers);
	test_loaders_close(others, count);
	return wrong;
}

static void check(const struct stele_loader_source *source, struct stele_loader_opts opts)
{
	const uint64_t step = (uint64_t)opts.batch_size * opts.world;
	uint64_t wrong = 0;

	opts.seed = 3;
	for (uint32_t workers = 1; workers <= WORKERS_MAX; workers++) {
		struct stele_loader *alone = test_loader(source, 1, opts);
		struct stele_loader *loaders[WORKERS_MAX];

		open_workers(source, opts, workers, loaders);
		for (int epoch = 0; epoch < 3; epoch++)
			wrong += compare(loaders, workers, 0, alone);
		test_loaders_close(loaders, workers);
		stele_loader_close(alone);
		for (uint64_t rounds = 0; rounds <= COUNT / step / workers; rounds += 2)
			wrong += go_on(source, &opts, workers, rounds);
	}
	is_uint(0, wrong, "batch %u, rank %u of %u, %s", opts.batch_size, opts.rank, opts.world,
		opts.last == STELE_LAST_DROP ? "drop" : "pad");
}

static void test_refused(const struct stele_loader_source *source)
{
	struct stele_loader *loader;

	is_int(-EINVAL, stele_loader_open(source, 1,
					  &STELE_OPTS(stele_loader_opts, .worker = 2, .workers = 2),
					  &loader), "a worker that is none of them");
	is_int(-EINVAL, stele_loader_open(source, 1, &STELE_OPTS(stele_loader_opts, .worker = 1),
					  &loader), "nor is one of none");
}

int main(void)
{
	static const uint32_t batches[] = {1, 4, 7, 60};
	static const uint32_t worlds[] = {1, 3};
	const struct test_plan plan = {.samples = COUNT, .size_max = 3000};
	struct stele_loader_source source;
	struct test_dataset t;

	plan_lazy();
	test_dataset_open(&t, &plan);
	source = (struct stele_loader_source){.ds = t.ds};
	for (unsigned int i = 0; i < 4 * 2 * 2; i++) {
		struct stele_loader_opts opts = {
			.batch_size = batches[i % 4],
			.world = worlds[i / 4 % 2],
			.last = i / 8,
		};

		opts.rank = opts.world / 2;
		check(&source, opts);
	}
	test_refused(&source);
	test_dataset_close(&t);
	return done();
}
