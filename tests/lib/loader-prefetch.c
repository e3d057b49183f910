/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-prefetch.c - how far a loader reads ahead, and that it never stands still
 *
 * With a caller that takes nothing it reads up to its prefetch size, to the sample, and
 * stops. A caller that holds batches gets the next one even so, whatever their size and
 * that of the prefetch. It may close at any moment.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define PAGE UINT64_C(4096)

static uint64_t buffer_size(const struct test_dataset *t, uint64_t id)
{
	struct test_read reads[64];
	unsigned int n = test_reads_of(t, id, reads, 64);
	uint64_t size = 0;

	while (n-- > 0)
		size += reads[n].size;
	return round_up(size, PAGE);
}

/* How many samples fit, and their bytes, in sequential order from `first` on. */
static uint64_t fitting(const struct test_dataset *t, uint64_t first,
			uint64_t bound, uint64_t *size)
{
	uint64_t id = first;

	*size = 0;
	while (*size + buffer_size(t, id % t->count) <= bound)
		*size += buffer_size(t, id++ % t->count);
	return id - first;
}

static struct stele_loader_stats stats_of(struct stele_loader *loader)
{
	struct stele_loader_stats stats = {.size = sizeof(stats)};

	stele_loader_stats(loader, &stats);
	return stats;
}

static uint64_t samples_read(struct stele_loader *loader)
{
	struct stele_reader_stats stats = {.size = sizeof(stats)};

	stele_loader_reader_stats(loader, &stats);
	return stats.samples;
}

/* Until so many are read: then it must be at rest. */
static struct stele_loader_stats settled(struct stele_loader *loader,
					 uint64_t samples)
{
	while (samples_read(loader) < samples)
		sched_yield();
	/* A wrong bound shows itself a little later. */
	usleep(2000);
	return stats_of(loader);
}

static void test_bound(const char *backend)
{
	struct test_plan plan = {
		.samples = 300, .size_max = 20000, .backend = backend};
	struct stele_loader_opts opts = {.batch_size = 4,
					 .shuffle = STELE_SHUFFLE_NONE,
					 .prefetch_size = 300000};
	struct stele_loader_source source;
	struct stele_loader_stats stats = {.size = sizeof(stats)};
	struct stele_batch held[3] = {
		{.size = sizeof(*held)}, {.size = sizeof(*held)}, {.size = sizeof(*held)}};
	struct stele_loader *loader;
	struct test_dataset t;
	uint64_t size, count;

	test_dataset_open(&t, &plan);
	source = (struct stele_loader_source){.ds = t.ds};
	loader = test_loader(&source, 1, opts);
	count = fitting(&t, 0, opts.prefetch_size, &size);
	stats = settled(loader, count);
	is_uint(count, samples_read(loader), "reads as many as fit");
	is_uint(size, stats.held_size, "and no byte more");
	for (unsigned int i = 0; i < 3; i++)
		if (stele_loader_next(loader, &held[i]) != 1)
			bail("no batch");
	stats = settled(loader, count);
	is_uint(count, samples_read(loader), "what is held counts");
	for (unsigned int i = 0; i < 3; i++)
		stele_loader_release(loader, &held[i]);
	count = 12 + fitting(&t, 12, opts.prefetch_size, &size);
	stats = settled(loader, count);
	is_uint(count, samples_read(loader), "what is released does not");
	is_uint(size, stats.held_size, "and makes room for as much");
	stele_loader_close(loader);
	test_dataset_close(&t);
}

static uint64_t wrong_samples(const struct test_dataset *t, const struct stele_batch *batch)
{
	uint64_t wrong = 0;

	for (uint32_t i = 0; i < batch->count; i++)
		wrong += !test_is_sample(t, batch->samples[i].id, &batch->samples[i]);
	return wrong;
}

/* Copies of what was released are left alone, and what belongs to another loader. */
static void test_copies(const struct test_dataset *t)
{
	const struct stele_loader_opts opts = {.batch_size = 4, .prefetch_size = 1};
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader *loader = test_loader(&source, 1, opts);
	struct stele_loader *other = test_loader(&source, 1, opts);
	struct stele_batch batch = {.size = sizeof(batch)}, copy, earlier = {0};
	uint64_t wrong = 0, count = 0;

	while (stele_loader_next(loader, &batch) == 1) {
		stele_loader_release(loader, &earlier);
		copy = batch;
		stele_loader_release(other, &copy);
		usleep(100);
		wrong += wrong_samples(t, &batch);
		count += batch.count;
		copy = earlier = batch;
		stele_loader_release(loader, &batch);
		stele_loader_release(loader, &copy);
	}
	is_uint(0, wrong, "a copy that is released takes no batch away");
	is_uint(t->count, count, "and the epoch is whole");
	stele_loader_close(other);
	stele_loader_close(loader);
}

/* Without a bound a small dataset is read ahead whole. */
static void test_unbounded(const struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader_opts opts = {.batch_size = 3,
					 .prefetch_size = UINT64_MAX};
	struct stele_loader *loader = test_loader(&source, 1, opts);
	uint64_t samples = 0;

	for (int i = 0; i < 10000 && samples < t->count; i++) {
		usleep(1000);
		samples = samples_read(loader);
	}
	ok(samples >= t->count, "no bound: %ju of %ju samples are there",
	   (uintmax_t)samples, (uintmax_t)t->count);
	stele_loader_close(loader);
}

/* The bound holds at each moment, in both ways to order, over whole epochs. */
static void test_always(const struct test_dataset *t, uint32_t as_completed)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader_opts opts = {.batch_size = 3,
					 .world = 2,
					 .prefetch_size = 400000,
					 .as_completed = as_completed};
	struct stele_loader *loader = test_loader(&source, 1, opts);
	struct stele_batch batch = {.size = sizeof(batch)};
	uint64_t over = 0, most = 0;

	for (unsigned int i = 0; i < 200; i++) {
		struct stele_loader_stats stats = stats_of(loader);

		over += stats.held_size > opts.prefetch_size;
		most = stats.held_size > most ? stats.held_size : most;
		if (stele_loader_next(loader, &batch) == 1)
			stele_loader_release(loader, &batch);
	}
	is_uint(0, over, "never over the bound");
	ok(most > opts.prefetch_size / 2, "and near to it: %ju",
	   (uintmax_t)most);
	stele_loader_close(loader);
}

/* All batches of an epoch are held: each next one comes, from memory of its own. */
static void test_hoarder(const struct test_dataset *t, uint64_t prefetch_size,
			 uint32_t batch_size)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader_opts opts = {.batch_size = batch_size,
					 .prefetch_size = prefetch_size};
	struct stele_loader *loader = test_loader(&source, 1, opts);
	uint64_t count = stele_loader_remaining(loader), wrong = 0;
	struct stele_batch *held = calloc(count, sizeof(*held));

	for (uint64_t i = 0; i < count; i++) {
		held[i].size = sizeof(*held);
		wrong += stele_loader_next(loader, &held[i]) != 1;
	}
	is_uint(0, wrong, "%ju batches of %u in hand", (uintmax_t)count,
		batch_size);
	for (uint64_t i = 0; i < count; i++) {
		wrong += wrong_samples(t, &held[i]);
		stele_loader_release(loader, &held[i]);
	}
	is_uint(0, wrong, "all keep");
	is_int(0, stele_loader_next(loader, &held[0]), "and the epoch ends");
	is_int(1, stele_loader_next(loader, &held[0]), "another one begins");
	stele_loader_close(loader);
	free(held);
}

/* More samples in the batch that is due than a reader takes at once. */
static void test_shallow(const struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds};
	struct stele_loader_opts opts = {.batch_size = (uint32_t)t->count,
					 .depth = 1,
					 .prefetch_size = 1};
	struct stele_loader *loader = test_loader(&source, 1, opts);
	struct test_load load = {0};
	uint64_t size = 0;

	for (uint64_t id = 0; id < t->count; id++)
		size += buffer_size(t, id);
	for (unsigned int i = 0; i < 3; i++)
		is_int(0, test_load(loader, t, UINT64_MAX, &load), "depth 1");
	ok(stats_of(loader).held_size <= size, "one batch is held, no more");
	is_uint(0, load.wrong, "samples are right");
	test_load_release(&load);
	stele_loader_close(loader);
}

/* Two sources, one with samples larger than any arena: neither waits for the other. */
static void test_large(const struct test_dataset *t)
{
	struct test_plan plan = {.samples = 12, .size_max = 3000000};
	struct stele_loader_opts opts = {.batch_size = 2,
					 .prefetch_size = 100000};
	struct stele_loader_source sources[2];
	struct test_dataset both[2];
	struct stele_loader *loader;
	struct test_load load = {0};

	test_dataset_open(&both[1], &plan);
	both[0] = *t;
	sources[0] = (struct stele_loader_source){.ds = t->ds, .weight = 1};
	sources[1] = (struct stele_loader_source){.ds = both[1].ds, .weight = 2};
	loader = test_loader(sources, 2, opts);
	test_load(loader, both, 40, &load);
	is_uint(80, load.count, "samples larger than the prefetch");
	is_uint(0, load.wrong, "are whole");
	test_load_release(&load);
	stele_loader_close(loader);
	test_dataset_close(&both[1]);
}

/* After any number of batches, with one in hand. */
static void test_close(const char *backend)
{
	struct test_plan plan = {
		.samples = 300, .size_max = 20000, .backend = backend};
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_DELAY, .ops = 1 << STELE_OP_READ, .arg = 5};
	struct stele_loader_source source;
	struct stele_batch batch = {.size = sizeof(batch)};
	struct test_dataset t;

	test_dataset_open(&t, &plan);
	source = (struct stele_loader_source){.ds = t.ds};
	stele_fault_set_rules(t.dev, &rule, 1);
	for (unsigned int batches = 0; batches < 20; batches++) {
		struct stele_loader *loader = test_loader(
			&source, 1,
			(struct stele_loader_opts){.batch_size = 3});

		for (unsigned int i = 0; i < batches; i++)
			stele_loader_next(loader, &batch);
		stele_loader_close(loader);
	}
	ok(true, "closed after any number of batches");
	test_dataset_close(&t);
}

static bool readable(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) == 1;
}

static void test_fd(const struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds, .count = 20};
	struct stele_loader *loader =
		test_loader(&source, 1,
			    (struct stele_loader_opts){.batch_size = 10,
						       .prefetch_size = 1});
	int fd = stele_loader_fd(loader), again;
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	uint8_t state[STELE_LOADER_STATE_SIZE];
	struct stele_batch batch = {.size = sizeof(batch)};
	struct stele_batch second = {.size = sizeof(second)};

	again = stele_loader_fd(loader);
	ok(fd >= 0 && fd == again, "one descriptor");
	stele_loader_save(loader, state);
	is_int(1, poll(&poll_fd, 1, -1), "the first batch");
	is_int(1, stele_loader_next(loader, &batch), "is there");
	is_int(1, poll(&poll_fd, 1, -1), "so is the second");
	is_int(1, stele_loader_next(loader, &second), "and the last");
	ok(readable(fd), "the end of the epoch can be had at once");
	is_int(0, stele_loader_next(loader, &second), "which it is");
	is_int(1, poll(&poll_fd, 1, -1), "the next epoch");
	is_int(1, stele_loader_next(loader, &second), "begins");
	is_int(1, poll(&poll_fd, 1, -1), "another");
	stele_loader_restore(loader, state);
	is_int(1, poll(&poll_fd, 1, -1), "after a restore");
	is_int(1, stele_loader_next(loader, &second), "again");
	is_uint(0, second.index, "the first one");
	stele_loader_close(loader);
}

/* Nothing is ready while nothing may be read. */
static int block(void *user, struct stele_sample *sample)
{
	char byte;

	(void)sample;
	return read(*(int *)user, &byte, 1) == 1 ? 0 : -EIO;
}

static void test_fd_waits(const struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds};
	int ends[2];
	struct stele_loader_opts opts = {.batch_size = 2,
					 .threads = 1,
					 .transform = block,
					 .transform_user = &ends[0]};
	struct stele_loader *loader;
	struct stele_batch batch = {.size = sizeof(batch)};
	struct pollfd poll_fd = {.events = POLLIN};

	if (pipe(ends))
		sysbail("pipe");
	loader = test_loader(&source, 1, opts);
	poll_fd.fd = stele_loader_fd(loader);
	ok(!readable(poll_fd.fd), "nothing yet");
	if (write(ends[1], "12", 2) != 2)
		sysbail("write");
	is_int(1, poll(&poll_fd, 1, -1), "a batch");
	is_int(1, stele_loader_next(loader, &batch), "is there");
	ok(!readable(poll_fd.fd), "but one");
	close(ends[1]);
	stele_loader_close(loader);
	close(ends[0]);
}

int main(void)
{
	struct test_plan plan = {.samples = 100, .size_max = 60000};
	struct test_dataset t;

	plan_lazy();
	test_bound(NULL);
	test_bound("uring");
	test_dataset_open(&t, &plan);
	test_unbounded(&t);
	test_always(&t, 0);
	test_always(&t, 1);
	test_hoarder(&t, 1, 1);
	test_hoarder(&t, 200000, 7);
	test_hoarder(&t, 100 << 20, 40);
	test_copies(&t);
	test_shallow(&t);
	test_large(&t);
	test_fd(&t);
	test_fd_waits(&t);
	test_dataset_close(&t);
	test_close(NULL);
	test_close("uring");
	test_close("threads");
	return done();
}
