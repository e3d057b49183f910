/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - see loader.h
 */
#include "tests/loader.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

struct stele_loader *test_loader(const struct stele_loader_source *sources,
				 uint32_t count, struct stele_loader_opts opts)
{
	struct stele_loader *loader;
	int err;

	opts.size = sizeof(opts);
	if (!opts.prefetch_size)
		opts.prefetch_size = 128 << 10;
	err = stele_loader_open(sources, count, &opts, &loader);
	if (err)
		bail("no loader: %s", strerror(-err));
	return loader;
}

void test_loaders(const struct stele_loader_source *sources, uint32_t count,
		  struct stele_loader_opts opts, struct stele_loader **out)
{
	for (opts.rank = 0; opts.rank < opts.world; opts.rank++)
		out[opts.rank] = test_loader(sources, count, opts);
}

void test_loaders_close(struct stele_loader **loaders, uint32_t world)
{
	for (uint32_t i = 0; i < world; i++)
		stele_loader_close(loaders[i]);
}

static void make_room(struct test_load *load, uint64_t more)
{
	uint64_t needed = load->count + load->padded + more;

	if (needed <= load->room)
		return;
	load->room = 2 * needed + 64;
	load->ids = realloc(load->ids, load->room * sizeof(*load->ids));
	load->padding =
		realloc(load->padding, load->room * sizeof(*load->padding));
	load->sources =
		realloc(load->sources, load->room * sizeof(*load->sources));
	if (!load->ids || !load->padding || !load->sources)
		bail("no memory");
}

static void add_sample(struct test_load *load, const struct stele_batch *batch,
		       uint32_t place, const struct test_dataset *t)
{
	const struct stele_sample *s = &batch->samples[place];
	uint32_t source = batch->sources[place];

	make_room(load, 1);
	if (source >= batch->source_count || s->status || s->tag ||
	    (!load->unchecked && !test_is_sample(&t[source], s->id, s)))
		load->wrong++;
	if (place >= batch->count - batch->padded) {
		load->padding[load->padded++] = s->id;
		return;
	}
	load->sources[load->count] = source;
	load->ids[load->count++] = s->id;
}

static void add_counts(struct test_load *load, const struct stele_batch *batch)
{
	load->batches++;
	load->skipped += batch->skipped;
	load->wrong += batch->padded > batch->count;
}

int test_load(struct stele_loader *loader, const struct test_dataset *t,
	      uint64_t batches, struct test_load *load)
{
	struct stele_batch batch;
	int ret = 1;

	while (batches-- > 0 && (ret = stele_loader_next(loader, &batch)) > 0) {
		add_counts(load, &batch);
		for (uint32_t i = 0; i < batch.count; i++)
			add_sample(load, &batch, i, t);
		stele_loader_release(loader, &batch);
		stele_loader_release(loader, &batch);
	}
	return ret;
}

void test_load_release(struct test_load *load)
{
	free(load->ids);
	free(load->padding);
	free(load->sources);
	*load = (struct test_load){0};
}

/* Position by position: rank r has each world-th. */
static void add_step(struct test_load *load, const struct stele_batch *batches,
		     uint32_t world, const struct test_dataset *t)
{
	bool more = true;

	for (uint32_t i = 0; more; i++) {
		more = false;
		for (uint32_t r = 0; r < world; r++)
			if (i < batches[r].count) {
				add_sample(load, &batches[r], i, t);
				more = true;
			}
	}
}

int test_load_all(struct stele_loader **loaders, uint32_t world,
		  const struct test_dataset *t, uint64_t batches,
		  struct test_load *load)
{
	struct stele_batch step[TEST_RANKS_MAX];
	int ret = 1;

	while (batches-- > 0 && ret > 0) {
		for (uint32_t r = 1; r < world; r++)
			load->wrong += stele_loader_remaining(loaders[r]) !=
				       stele_loader_remaining(loaders[0]);
		for (uint32_t r = 0; r < world; r++) {
			int this_one = stele_loader_next(loaders[r], &step[r]);

			load->wrong += r > 0 && this_one != ret;
			ret = this_one;
		}
		if (ret <= 0)
			break;
		add_step(load, step, world, t);
		for (uint32_t r = 0; r < world; r++) {
			add_counts(load, &step[r]);
			load->wrong += step[r].index != step[0].index ||
				       step[r].epoch != step[0].epoch;
		}
		for (uint32_t r = 0; r < world; r++)
			stele_loader_release(loaders[r], &step[r]);
	}
	return ret;
}

uint64_t test_load_odd(const uint64_t *ids, uint64_t n, uint64_t first,
		       uint64_t count, uint64_t times)
{
	uint64_t *seen = calloc(count, sizeof(*seen));
	uint64_t odd = 0;

	if (!seen)
		bail("no memory");
	for (uint64_t i = 0; i < n; i++) {
		if (ids[i] < first || ids[i] - first >= count)
			odd++;
		else
			seen[ids[i] - first]++;
	}
	for (uint64_t i = 0; i < count; i++)
		odd += seen[i] != times;
	free(seen);
	return odd;
}
