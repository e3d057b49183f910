/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-stats.c - what a reader counts, and memory that it is told of
 *
 * Latencies are compared with clocks of the test's own; nothing here depends on how
 * fast a machine is. A sample larger than the arena comes in parts that are all in
 * flight together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define SAMPLES 60u
#define SLEEP_NS 20000000u

static void test_counts(struct test_dataset *t, const char *backend)
{
	struct stele_reader *reader = test_reader_open(t, 0, 8);
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	uint64_t ids[SAMPLES];

	test_random_ids(t, ids, SAMPLES, 3);
	stele_reader_stats(reader, &stats);
	is_uint(0, stats.samples + stats.device_reads + stats.depth_peak +
			   stats.p50_ns + stats.device_p50_ns,
		"nothing yet");
	is_uint(0, test_read_all(t, reader, ids, SAMPLES), "%s: bytes", backend);
	stele_reader_stats(reader, &stats);
	is_uint(SAMPLES, stats.samples, "samples");
	is_uint(0, stats.depth, "none in flight");
	is_uint(8, stats.depth_peak, "as many as there may be");
	is_uint(8, stats.window, "window");
	is_uint(SAMPLES,
		stele_histogram_count(stele_reader_latency(
			reader, STELE_LATENCY_SAMPLE)),
		"latencies of samples");
	is_uint(stats.device_reads,
		stele_histogram_count(stele_reader_latency(
			reader, STELE_LATENCY_DEVICE)),
		"latencies of reads");
	ok(!stele_reader_latency(reader, (enum stele_latency)2), "of nothing");
	ok(stats.p50_ns <= stats.p90_ns && stats.p90_ns <= stats.p99_ns &&
		   stats.p99_ns <= stats.p999_ns &&
		   stats.p999_ns <= stats.max_ns,
	   "quantiles ascend");
	ok(stats.mean_ns > 0 && stats.mean_ns <= (double)stats.max_ns, "mean");
	ok(stats.device_p50_ns <= stats.max_ns && stats.device_mean_ns > 0,
	   "no read takes longer than its sample");
	ok(stats.huge_pages <= 2, "huge pages: %u", stats.huge_pages);
	ok(stats.tier[0], "tier: %s", stats.tier);
	stele_reader_close(reader);
}

/* From submit to collect, however long the caller does something else. */
static void test_latency(struct test_dataset *t)
{
	const struct timespec pause = {.tv_nsec = SLEEP_NS};
	struct stele_reader *reader = test_reader_open(t, 0, 4);
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_sample sample;
	uint64_t id = 5;

	is_int(1, stele_reader_submit(reader, &id, NULL, 1), "submit");
	nanosleep(&pause, NULL);
	is_int(1, stele_reader_collect(reader, &sample, 1, 1), "collect");
	stele_reader_stats(reader, &stats);
	ok(stats.max_ns >= SLEEP_NS, "the time between: %ju ns",
	   (uintmax_t)stats.max_ns);
	stele_reader_close(reader);
}

static void test_retries(struct test_dataset *t)
{
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.error = EINTR,
					.first = stele_fault_count(t->dev),
					.count = 3};
	struct stele_reader *reader = test_reader_open(t, 0, 1);
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	uint64_t ids[4] = {1, 2, 3, 4};

	stele_fault_set_rules(t->dev, &rule, 1);
	is_uint(0, test_read_all(t, reader, ids, 4), "interrupted");
	stele_fault_set_rules(t->dev, NULL, 0);
	stele_reader_stats(reader, &stats);
	is_uint(3, stats.retries, "retries");
	is_uint(4, stats.device_reads, "are not reads");
	is_uint(0, stats.reread + stats.failed, "nor failures");
	stele_reader_close(reader);
}

/* What the backend says of the memory's registration is what comes. */
static void test_register(struct test_dataset *t, const char *backend)
{
	struct stele_reader *reader = test_reader_open(t, 4096, 4);
	uint64_t size = stele_reader_buffer_size(reader, 9);
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_sample sample;
	char *memory = aligned_alloc(4096, (size + 4095) / 4096 * 8192);
	const struct stele_destination to = {9, 1, memory, size};
	int rc;

	is_int(-EINVAL, stele_reader_register(reader, NULL, 4096), "nowhere");
	is_int(-EINVAL, stele_reader_register(reader, memory + 512, 4096),
	       "misaligned");
	is_int(-EINVAL, stele_reader_register(reader, memory, 0), "no bytes");
	rc = stele_reader_register(reader, memory,
				   (size + 4095) / 4096 * 8192);
	ok(rc == (strcmp(backend, "uring") ? -EOPNOTSUPP : 0) || rc == -ENOMEM,
	   "%s: registered, or not: %d", backend, rc);
	is_int(1, stele_reader_submit_into(reader, &to, 1),
	       "read into it");
	is_int(1, stele_reader_collect(reader, &sample, 1, 1), "collect");
	ok(test_is_sample(t, 9, &sample) &&
		   (const char *)sample.data >= memory &&
		   (const char *)sample.data < memory + size,
	   "lies there");
	stele_reader_stats(reader, &stats);
	if (!strcmp(backend, "uring") && !rc)
		ok(stats.registered == 1 && stats.enters >= 1,
		   "the ring knew of it");
	else
		is_uint(0, stats.registered, "no ring knew of it");
	stele_reader_close(reader);
	free(memory);
}

/* In parts, together in flight, and the small ones beside it. */
static void test_large(const char *backend)
{
	struct test_plan plan = {
		.samples = 12, .size_max = 5000000, .backend = backend};
	struct test_read reads[64];
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_reader *reader;
	struct test_dataset t;
	uint64_t ids[3];
	unsigned int parts;

	test_dataset_open(&t, &plan);
	ids[0] = t.count - 1; /* the largest */
	ids[1] = 0;
	ids[2] = t.count - 2;
	parts = test_reads_of(&t, ids[0], reads, 64);
	reader = test_reader_open(&t, 1u << 20, 32);
	is_uint(0, test_read_all(&t, reader, ids, 3), "larger than the arena");
	ok(test_is_issued(&t, ids, 3, true), "as many reads as it has parts");
	stele_reader_stats(reader, &stats);
	ok(parts >= 4 && stats.depth_peak >= parts, "%u in flight together",
	   parts);
	stele_reader_close(reader);
	test_dataset_close(&t);
}

/* As many samples as are on their way, and as many again: no more wait. */
static void test_room(struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 0, 0);
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	static uint64_t ids[8192];
	int taken;

	test_random_ids(t, ids, 8192, 4);
	stele_reader_stats(reader, &stats);
	taken = stele_reader_submit(reader, ids, NULL, 8192);
	ok(taken > 0 && (unsigned int)taken == 2 * stats.window,
	   "a window of %u: %d are taken", stats.window, taken);
	stele_reader_close(reader);
}

static void check(const char *backend)
{
	struct test_plan plan = {.samples = SAMPLES,
				 .size_max = 20000,
				 .granule = 4096,
				 .backend = backend};
	struct test_dataset t;

	test_dataset_open(&t, &plan);
	test_counts(&t, backend ? backend : "memory");
	test_latency(&t);
	test_retries(&t);
	test_register(&t, backend ? backend : "memory");
	test_room(&t);
	test_dataset_close(&t);
	test_large(backend);
}

int main(void)
{
	plan_lazy();
	check(NULL);
	check("uring");
	check("threads");
	return done();
}
