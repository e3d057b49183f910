/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-model.c - all options at random, against a model that reads nothing
 *
 * The model knows the order from format/ alone and divides it among ranks and batches,
 * with what fails and what stands in for it. All ranks of a job go step by step; now and
 * then some batches stay in hand, and the job goes on from a state, in place or at another
 * number of ranks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/epoch.h"
#include "format/mixture.h"
#include "lib/read/loader/shuffle.h"
#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define ROUNDS      60u
#define STEPS       24u /* of a round */
#define DATASETS    3u
#define SOURCES_MAX 4u
#define SAMPLES_MAX 64u
#define BATCH_MAX   200u
#define ATTEMPTS    8u

static uint64_t dice = 0x57e1e;

static uint64_t below(uint64_t limit)
{
	return test_random(&dice) % limit;
}

#define ONE_OF(list) ((list)[below(sizeof(list) / sizeof(*(list)))])

/* ---- a job ------------------------------------------------------------------------ */

struct job {
	struct test_dataset of[SOURCES_MAX]; /* of each source: a copy */
	struct stele_loader_source sources[SOURCES_MAX];
	uint64_t ids[SOURCES_MAX][SAMPLES_MAX];
	uint64_t samples[SOURCES_MAX];
	uint32_t source_count;
	struct stele_mixture mixture;
	struct stele_loader_opts opts;
	uint64_t salt, bad; /* so many of 256 ids fail */
	struct stele_loader *loaders[TEST_RANKS_MAX];
	struct stele_batch held[TEST_RANKS_MAX];
	/* Where it is. */
	uint64_t seed, epoch, start, step;
	uint64_t wrong;
};

static bool is_bad(const struct job *job, uint64_t id)
{
	return (id + 1) * job->salt >> 56 < job->bad;
}

static int refuse(void *user, struct stele_sample *sample)
{
	return is_bad(user, sample->id) ? -EILSEQ : 0;
}

static uint64_t steps_left(const struct job *job)
{
	uint64_t step = (uint64_t)job->opts.batch_size * job->opts.world;
	uint64_t left = job->mixture.size - job->start;

	if (job->opts.last == STELE_LAST_PAD)
		left += step - 1;
	return left / step - job->step;
}

/* ---- what should come ---------------------------------------------------------------- */

struct wanted {
	uint32_t source;
	uint64_t id;
};

static uint64_t id_at(const struct job *job, uint32_t source, uint64_t pass,
		      uint64_t place)
{
	static struct stele_epoch order;
	struct stele_epoch_shape shape;
	uint64_t member;

	stele_shuffle_shape(job->opts.shuffle, job->opts.block_size,
			    job->opts.block_count, NULL, &shape);
	stele_epoch_init(&order, &shape, job->samples[source], job->seed, pass,
			 source);
	member = stele_epoch_at(&order, place);
	return job->sources[source].ids ? job->ids[source][member]
					: job->sources[source].first + member;
}

/* Return: whether another one stands there; *lost: none does. */
static bool draw(struct job *job, uint64_t position, struct wanted *out,
		 bool *lost)
{
	uint64_t n, x, pass, place, offset, tried = 0;

	stele_mixture_at(&job->mixture, job->seed, job->epoch, position,
			 &out->source, &x);
	n = job->samples[out->source];
	stele_mixture_pass(&job->mixture, out->source, n, job->epoch, x, &pass,
			   &place);
	out->id = id_at(job, out->source, pass, place);
	*lost = is_bad(job, out->id);
	if (job->opts.on_error != STELE_ON_ERROR_SUBSTITUTE)
		return false;
	for (offset = n / 2; *lost && tried < ATTEMPTS && tried < n - 1;
	     offset++) {
		if (offset % n == 0)
			continue;
		tried++;
		out->id = id_at(job, out->source, pass, (place + offset) % n);
		*lost = is_bad(job, out->id);
	}
	return tried && !*lost;
}

static int by_source(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Samples `first` to `end` of a batch. */
static uint64_t compare(const struct job *job, const struct stele_batch *batch,
			struct wanted *wanted, uint32_t first, uint32_t end)
{
	struct wanted seen[BATCH_MAX];
	uint64_t wrong = 0;

	for (uint32_t i = first; i < end; i++) {
		const struct stele_sample *s = &batch->samples[i];

		seen[i] = (struct wanted){batch->sources[i], s->id};
		wrong += s->status ||
			 !test_is_sample(&job->of[seen[i].source], s->id, s);
	}
	if (job->opts.as_completed) {
		qsort(seen + first, end - first, sizeof(*seen), by_source);
		qsort(wanted + first, end - first, sizeof(*wanted), by_source);
	}
	for (uint32_t i = first; i < end; i++)
		wrong += by_source(&seen[i], &wanted[i]) != 0;
	return wrong;
}

/* Is this what the next step has for a rank? */
static void check_batch(struct job *job, uint32_t rank, int ret,
			const struct stele_batch *batch)
{
	const struct stele_loader_opts *opts = &job->opts;
	uint64_t step = (uint64_t)opts->batch_size * opts->world;
	uint32_t count = 0, padded = 0, lost = 0, replaced = 0;
	struct wanted wanted[BATCH_MAX];

	for (uint32_t i = 0; i < opts->batch_size; i++) {
		uint64_t at = job->start + job->step * step + rank +
			      (uint64_t)i * opts->world;
		bool none;

		replaced += draw(job, at % job->mixture.size, &wanted[count],
				 &none);
		lost += none;
		count += !none;
		padded += !none && at >= job->mixture.size;
	}
	if (lost && opts->on_error == STELE_ON_ERROR_RAISE) {
		job->wrong += ret != -EILSEQ;
		return;
	}
	if (ret != 1 || batch->count != count || batch->padded != padded) {
		job->wrong++;
		return;
	}
	job->wrong += batch->skipped != lost + replaced ||
		      batch->skip_error != (lost ? -EILSEQ : 0) ||
		      batch->epoch != job->epoch || batch->index != job->step;
	job->wrong += compare(job, batch, wanted, 0, count - padded);
	job->wrong += compare(job, batch, wanted, count - padded, count);
}

/* ---- steps ------------------------------------------------------------------------------ */

/* Of all ranks; some keep theirs until the next time. */
static void go_on(struct job *job)
{
	bool more = steps_left(job) > 0;

	for (uint32_t r = 0; r < job->opts.world; r++) {
		struct stele_batch batch = {.size = sizeof(batch)};
		int ret;

		job->wrong += stele_loader_remaining(job->loaders[r]) !=
			      steps_left(job);
		ret = stele_loader_next(job->loaders[r], &batch);
		if (!more)
			job->wrong += ret != 0;
		else
			check_batch(job, r, ret, &batch);
		stele_loader_release(job->loaders[r], &job->held[r]);
		if (below(2))
			job->held[r] = batch;
		else
			stele_loader_release(job->loaders[r], &batch);
	}
	job->step++;
	if (!more) {
		job->epoch++;
		job->start = job->step = 0;
	}
}

static void divide(struct job *job)
{
	static const uint64_t prefetches[] = {1, 6000, 60000, 1 << 20};
	static const uint64_t bads[] = {0, 0, 12, 60, 128, 240};
	static const uint32_t batches[] = {1, 2, 3, 7, 16, BATCH_MAX};
	struct stele_loader_opts *opts = &job->opts;

	opts->batch_size = ONE_OF(batches);
	opts->world = 1 + (uint32_t)below(5);
	opts->last = (uint32_t)below(2);
	opts->on_error = (uint32_t)below(3);
	opts->as_completed = (uint32_t)below(2);
	opts->prefetch_size = ONE_OF(prefetches);
	opts->depth = (uint32_t)below(4);
	opts->threads = 1 + (uint32_t)below(3);
	job->salt = test_random(&dice) | 1;
	job->bad = ONE_OF(bads);
	opts->transform = job->bad || below(2) ? refuse : NULL;
	opts->transform_user = job;
	test_loaders(job->sources, job->source_count, *opts, job->loaders);
}

static void stop(struct job *job)
{
	test_loaders_close(job->loaders, job->opts.world);
	memset(job->held, 0, sizeof(job->held));
}

/* The place, at the end of an epoch too; never behind it. */
static uint64_t position_of(const struct job *job)
{
	uint64_t step = (uint64_t)job->opts.batch_size * job->opts.world;
	uint64_t position = job->start + job->step * step;

	return position < job->mixture.size ? position : job->mixture.size;
}

static void restore(struct job *job)
{
	uint8_t state[STELE_LOADER_STATE_SIZE], again[STELE_LOADER_STATE_SIZE];

	stele_loader_save(job->loaders[job->opts.world - 1], state);
	job->start = position_of(job);
	job->step = 0;
	if (below(2)) {
		stop(job);
		job->opts.seed = test_random(&dice);
		job->opts.epoch = below(9);
		divide(job);
	}
	for (uint32_t r = 0; r < job->opts.world; r++) {
		job->wrong += stele_loader_restore(job->loaders[r], state) != 0;
		stele_loader_save(job->loaders[r], again);
		job->wrong += memcmp(state, again, sizeof(state)) != 0;
	}
}

/* ---- rounds -------------------------------------------------------------------------------- */

static void pick_source(struct job *job, const struct test_dataset *datasets,
			uint32_t i)
{
	static const double weights[] = {0,      0,     1,      2.5,
					 1e-300, 1e300, 5e-324, 0.1};
	const struct test_dataset *t = &datasets[below(DATASETS)];
	struct stele_loader_source *source = &job->sources[i];
	uint64_t kind = below(3), count;

	job->of[i] = *t;
	*source = (struct stele_loader_source){.ds = t->ds,
					       .weight = ONE_OF(weights)};
	if (kind) {
		source->first = below(t->count);
		count = t->count - source->first;
		source->count = below(2) ? 1 + below(count) : 0;
		count = source->count ? source->count : count;
	} else {
		count = t->count;
	}
	job->samples[i] = count;
	if (kind < 2)
		return;
	/* A list: that range, in another order. */
	for (uint64_t k = 0; k < count; k++) {
		uint64_t other = below(k + 1);

		job->ids[i][k] = job->ids[i][other];
		job->ids[i][other] = source->first + k;
	}
	*source = (struct stele_loader_source){.ds = t->ds,
					       .weight = source->weight,
					       .ids = job->ids[i],
					       .id_count = count};
}

static void begin(struct job *job, const struct test_dataset *datasets)
{
	const uint64_t epochs[] = {0,          1,
				   UINT32_MAX, UINT64_C(1) << 32,
				   UINT64_MAX, test_random(&dice)};
	uint64_t all = 0;
	double weights[SOURCES_MAX];

	*job = (struct job){.source_count = 1 + (uint32_t)below(SOURCES_MAX)};
	for (uint32_t i = 0; i < job->source_count; i++) {
		pick_source(job, datasets, i);
		weights[i] = job->sources[i].weight;
		all += job->samples[i];
	}
	job->opts = (struct stele_loader_opts){
		.seed = test_random(&dice),
		.epoch = ONE_OF(epochs),
		.shuffle = (uint32_t)below(3),
		.block_size = 1 + below(9),
		.block_count = 1 + (uint32_t)below(5),
		.epoch_size = below(2) ? job->source_count + below(150) : 0,
	};
	job->seed = job->opts.seed;
	job->epoch = job->opts.epoch;
	stele_mixture_init(&job->mixture, job->samples, weights,
			   job->source_count,
			   job->opts.epoch_size ? job->opts.epoch_size : all);
	divide(job);
}

int main(void)
{
	struct test_plan plans[DATASETS] = {{.samples = 60,
					     .size_max = 900,
					     .delete_every = 7},
					    {.samples = 25, .size_max = 40000},
					    {.samples = 1, .size_max = 5000}};
	struct test_dataset datasets[DATASETS];
	static struct job job;

	plan_lazy();
	for (unsigned int i = 0; i < DATASETS; i++)
		test_dataset_open(&datasets[i], &plans[i]);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		begin(&job, datasets);
		for (unsigned int i = 0; i < STEPS; i++) {
			if (!below(6))
				restore(&job);
			go_on(&job);
		}
		stop(&job);
		is_uint(0, job.wrong, "round %u", round);
	}
	for (unsigned int i = 0; i < DATASETS; i++)
		test_dataset_close(&datasets[i]);
	return done();
}
