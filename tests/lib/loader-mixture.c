/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-mixture.c - several datasets, and parts of them, by weight
 *
 * Each source has its share of an epoch, and its samples come once in each pass, across
 * epochs. Which one comes when is tests/format/mixture.c's to tell, what is no mixture
 * loader-options.c's.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device/device.h"
#include "tests/fixture/loader.h"
#include "tests/tap.h"

static void count_source(const struct test_load *load, uint32_t source,
			 uint64_t *ids, uint64_t *count)
{
	for (uint64_t i = 0; i < load->count; i++)
		if (load->sources[i] == source)
			ids[(*count)++] = load->ids[i];
}

/* Samples that came more or less often than once a pass; the last may be unfinished. */
static uint64_t uneven(const uint64_t *ids, uint64_t n, uint64_t first,
		       uint64_t count)
{
	uint64_t seen[100] = {0}, wrong = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (ids[i] < first || ids[i] >= first + count)
			return n;
		seen[ids[i] - first]++;
	}
	for (uint64_t i = 0; i < count; i++)
		wrong += seen[i] < n / count ||
			 seen[i] > (n + count - 1) / count;
	return wrong;
}

/* Weights 2:1:1 of 60, 40 and 25 samples: passes end in the middle of epochs. */
static void test_passes(const struct test_dataset *t, uint32_t world)
{
	struct stele_loader_source sources[3] = {
		{.ds = t[0].ds, .weight = 2},
		{.ds = t[1].ds, .weight = 1, .first = 10, .count = 40},
		{.ds = t[2].ds, .weight = 1},
	};
	static const uint64_t firsts[] = {0, 10, 0}, counts[] = {60, 40, 25};
	struct stele_loader_opts opts = {.batch_size = 5,
					 .world = world,
					 .seed = 17,
					 .epoch_size = 120};
	struct stele_loader *loaders[TEST_RANKS_MAX];
	struct test_load load = {0};
	uint64_t *ids = calloc(1200, sizeof(*ids));
	int ret = 0;

	test_loaders(sources, 3, opts, loaders);
	for (unsigned int epoch = 0; epoch < 10; epoch++)
		ret |= test_load_all(loaders, world, t, UINT64_MAX, &load);
	is_int(0, ret, "world %u: ten epochs", world);
	is_uint(1200, load.count, "of 120 draws");
	is_uint(0, load.wrong, "all right");
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t count = 0;

		count_source(&load, i, ids, &count);
		is_uint(i ? 300 : 600, count, "source %u: its share", i);
		is_uint(0, uneven(ids, count, firsts[i], counts[i]),
			"source %u: passes are exact", i);
	}
	test_load_release(&load);
	test_loaders_close(loaders, world);
	free(ids);
}

/* Sizes as weights: an epoch has every sample of every source once. */
static void test_union(const struct test_dataset *t, uint32_t as_completed)
{
	struct stele_loader_source sources[3] = {
		{.ds = t[0].ds}, {.ds = t[1].ds}, {.ds = t[2].ds}};
	struct stele_loader_opts opts = {
		.batch_size = 7, .world = 2, .as_completed = as_completed};
	struct stele_loader *loaders[2];
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct test_load load = {0};
	uint64_t all = t[0].count + t[1].count + t[2].count;
	uint64_t *ids = calloc(all, sizeof(*ids));

	test_loaders(sources, 3, opts, loaders);
	test_load_all(loaders, 2, t, UINT64_MAX, &load);
	is_uint(all, load.count, "an epoch of all");
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t count = 0;

		count_source(&load, i, ids, &count);
		is_uint(0, test_load_odd(ids, count, 0, t[i].count, 1),
			"source %u: each sample once", i);
	}
	stele_loader_reader_stats(loaders[0], &stats);
	ok(stats.samples >= all / 2, "readers' samples are summed");
	test_load_release(&load);
	test_loaders_close(loaders, 2);
	free(ids);
}

static void test_restore(const struct test_dataset *t)
{
	struct stele_loader_source sources[2] = {
		{.ds = t[0].ds, .weight = 1}, {.ds = t[1].ds, .weight = 3}};
	struct stele_loader_opts opts = {
		.batch_size = 6, .world = 1, .epoch = 2, .epoch_size = 200};
	struct stele_loader *a = test_loader(sources, 2, opts), *b;
	struct test_load whole = {0}, load = {0};
	uint8_t state[STELE_LOADER_STATE_SIZE];

	test_load(a, t, UINT64_MAX, &whole);
	stele_loader_close(a);
	a = test_loader(sources, 2, opts);
	test_load(a, t, 11, &load);
	stele_loader_save(a, state);
	opts.batch_size = 9;
	opts.epoch = 0;
	b = test_loader(sources, 2, opts);
	is_int(0, stele_loader_restore(b, state), "a mixture goes on");
	test_load(b, t, UINT64_MAX, &load);
	ok(load.count == whole.count &&
		   !memcmp(load.ids, whole.ids, 200 * sizeof(*load.ids)) &&
		   !memcmp(load.sources, whole.sources,
			   200 * sizeof(*load.sources)),
	   "in the same order");
	sources[1].weight = 2;
	stele_loader_close(b);
	b = test_loader(sources, 2, opts);
	is_int(-ESTALE, stele_loader_restore(b, state), "not by other weights");
	stele_loader_close(a);
	stele_loader_close(b);
	test_load_release(&whole);
	test_load_release(&load);
}

static void test_list(const struct test_dataset *t)
{
	uint64_t ids[] = {30, 2, 59, 7, 11};
	struct stele_loader_source list = {
		.ds = t->ds, .ids = ids, .id_count = 5};
	struct test_load load = {0};
	struct stele_loader *loader;
	uint64_t wrong = 0;

	loader = test_loader(&list, 1, (struct stele_loader_opts){0});
	memset(ids, 0, sizeof(ids)); /* it was copied */
	test_load(loader, t, UINT64_MAX, &load);
	is_uint(5, load.count, "a list of five");
	for (uint64_t i = 0; i < load.count; i++)
		wrong |= load.ids[i] < 60 ? UINT64_C(1) << load.ids[i] : 1;
	is_hex(UINT64_C(1) << 30 | 1 << 2 | UINT64_C(1) << 59 | 1 << 7 | 1 << 11,
	       wrong, "these five");
	test_load_release(&load);
	stele_loader_close(loader);
}

/* Many sources share what one alone would have in flight. */
static void test_many(const struct test_dataset *t)
{
	struct stele_loader_source sources[256];
	struct stele_loader_opts opts =
		STELE_OPTS(stele_loader_opts, .batch_size = 256);
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_loader *loader;
	struct stele_batch batch = {.size = sizeof(batch)};

	for (unsigned int i = 0; i < 256; i++)
		sources[i] = (struct stele_loader_source){.ds = t->ds,
							  .weight = 1};
	if (stele_loader_open(sources, 256, &opts, &loader))
		bail("no loader");
	for (unsigned int i = 0; i < 20; i++) {
		if (stele_loader_next(loader, &batch) != 1)
			bail("no batch");
		stele_loader_release(loader, &batch);
	}
	stele_loader_reader_stats(loader, &stats);
	ok(stats.window <= 1024, "256 sources: windows of %u reads",
	   stats.window);
	ok(stats.depth_peak <= 1024, "256 sources: %u at once",
	   stats.depth_peak);
	stele_loader_close(loader);
}

static unsigned int count_descriptors(void)
{
	unsigned int count = 0;
	DIR *dir = opendir("/proc/self/fd");

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

/* Of files, also in different images: one ring for all, entered for many at a time. */
static void test_rings(struct test_dataset *t)
{
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_loader_opts opts = {.batch_size = 256, .prefetch_size = 16 << 20};
	struct stele_loader_source sources[256];
	struct test_dataset opened[256];
	struct test_load load = {0};
	struct stele_loader *loader;
	unsigned int before;

	for (unsigned int i = 0; i < 256; i++) {
		opened[i] = t[i % 2];
		if (i < 4 && stele_dataset_open(t[i % 2].path, NULL, &opened[i].ds))
			bail("no dataset of %s", t[i % 2].path);
		opened[i].ds = opened[i % 4].ds;
		sources[i] = (struct stele_loader_source){.ds = opened[i].ds};
	}
	before = count_descriptors();
	loader = test_loader(sources, 256, opts);
	ok(count_descriptors() <= before + 8, "256 sources: %u descriptors",
	   count_descriptors() - before);
	is_int(0, test_load(loader, opened, UINT64_MAX, &load), "to the end");
	is_uint(128 * (t[0].count + t[1].count), load.count, "with all samples");
	is_uint(0, load.wrong, "each as it should be");
	stele_loader_reader_stats(loader, &stats);
	ok(stats.enters < load.count / 4, "%u calls of the kernel for %u samples",
	   (unsigned int)stats.enters, (unsigned int)load.count);
	stele_loader_close(loader);
	test_load_release(&load);
	for (unsigned int i = 0; i < 4; i++)
		is_int(0, stele_dataset_close(opened[i].ds), "closed");
}

int main(void)
{
	struct test_plan files[2] = {{.samples = 60, .size_max = 900, .backend = "uring"},
				     {.samples = 90, .size_max = 9000, .backend = "uring"}};
	struct test_plan plans[3] = {{.samples = 60, .size_max = 900},
				     {.samples = 90, .size_max = 5000},
				     {.samples = 25, .size_max = 40000}};
	struct test_dataset t[3];

	plan_lazy();
	for (unsigned int i = 0; i < 3; i++)
		test_dataset_open(&t[i], &plans[i]);
	test_passes(t, 1);
	test_passes(t, 4);
	test_union(t, 0);
	test_union(t, 1);
	test_restore(t);
	test_list(&t[0]);
	test_many(&t[1]);
	for (unsigned int i = 0; i < 3; i++)
		test_dataset_close(&t[i]);
	if (test_backend_usable("uring")) {
		for (unsigned int i = 0; i < 2; i++)
			test_dataset_open(&t[i], &files[i]);
		test_rings(t);
		for (unsigned int i = 0; i < 2; i++)
			test_dataset_close(&t[i]);
	}
	return done();
}
