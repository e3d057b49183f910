/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-room.c - how many samples a reader takes, and when it says no
 *
 * Buffers of an arena that is too small for all: 0 means collect and release
 * first, and never anything that cannot end. A sample that the arena cannot hold
 * gets its own memory. The caller's own memory takes the place of a buffer.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define KIB 1024u

/* What was refused last, in one line of the dataset's log. */
static void check_said(struct test_dataset *t, const char *wanted)
{
	const char *end = memchr(t->log.text, '\n', t->log.size);

	ok(test_log_has(&t->log, wanted) &&
		   end == t->log.text + t->log.size - 1,
	   "says '%s'", wanted);
	t->log.size = 0;
	t->log.text[0] = '\0';
}

static void test_options(struct test_dataset *t)
{
	struct stele_reader *reader;
	struct {
		struct stele_reader_opts known;
		uint64_t unknown;
	} newer = {.known.size = sizeof(newer), .unknown = 1};

	t->log.size = 0;
	is_int(-EINVAL,
	       stele_reader_open(t->ds, &STELE_OPTS(stele_reader_opts, .verify = 4),
				 &reader),
	       "no such verification");
	check_said(t, "option 'verify' is 4: must be at most 3");
	is_int(-EINVAL,
	       stele_reader_open(t->ds,
				 &STELE_OPTS(stele_reader_opts, .depth = 4097),
				 &reader),
	       "too deep");
	check_said(t, "option 'depth' is 4097: must be at most 4096");
	is_int(-EINVAL,
	       stele_reader_open(t->ds,
				 &STELE_OPTS(stele_reader_opts,
					     .arena_size = UINT64_MAX),
				 &reader),
	       "too large an arena");
	check_said(t, "option 'arena_size' is 18446744073709551615: must be at most ");
	is_int(-E2BIG, stele_reader_open(t->ds, &newer.known, &reader),
	       "newer option");
	check_said(t, "option at byte 56 is set, but this version knows only 56");
	newer.known.size = 1;
	is_int(-EINVAL, stele_reader_open(t->ds, &newer.known, &reader),
	       "no size");
	check_said(t, "option 'size' is 1: must be the size of the options, 56 here");
	stele_reader_close(NULL);
}

/* All samples have slots of one size: 8 KiB of blocks each. */
static void test_arena(struct test_dataset *t)
{
	uint64_t ids[8] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct stele_reader *reader = test_reader_open(t, 32 * KIB, 16);
	struct stele_sample samples[8];

	is_uint(8 * KIB, stele_reader_buffer_size(reader, 0), "one sample");
	is_uint(0, stele_reader_buffer_size(reader, t->count), "no sample");
	is_int(4, stele_reader_submit(reader, ids, NULL, 8), "room for four");
	is_int(0, stele_reader_submit(reader, ids, NULL, 8), "no more");
	is_uint(4, stele_reader_in_flight(reader), "outstanding");
	is_int(4, stele_reader_collect(reader, samples, 8, 8), "all four");
	is_int(0, stele_reader_submit(reader, ids, NULL, 8),
	       "not released: still no room");
	is_int(0, stele_reader_collect(reader, samples + 4, 4, 4),
	       "nothing outstanding, nothing waited for");
	for (unsigned int i = 0; i < 4; i++)
		ok(test_is_sample(t, samples[i].id, &samples[i]),
		   "a sample keeps until it is released");
	stele_reader_release(reader, &samples[2]);
	stele_reader_release(reader, &samples[2]);
	is_int(1, stele_reader_submit(reader, ids, NULL, 8), "room for one");
	is_int(1, stele_reader_collect(reader, samples + 4, 4, 1), "that one");
	ok(test_is_sample(t, 0, &samples[4]), "into the buffer given back");
	ok(test_is_sample(t, samples[0].id, &samples[0]), "not into another");
	for (unsigned int i = 0; i < 5; i++)
		stele_reader_release(reader, &samples[i]);
	is_int(4, stele_reader_submit(reader, ids, NULL, 8), "room again");
	stele_reader_close(reader);
}

static void test_depth(struct test_dataset *t)
{
	uint64_t ids[8] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct stele_reader *reader = test_reader_open(t, 0, 2);
	struct stele_sample samples[8];
	size_t issued;

	stele_fault_log_clear(t->dev);
	is_int(4, stele_reader_submit(reader, ids, NULL, 8),
	       "depth 2: four tickets");
	stele_fault_log(t->dev, &issued);
	ok(issued >= 2 && issued <= 4, "issued as they complete");
	is_int(4, stele_reader_collect(reader, samples, 8, 8), "all four");
	is_int(4, stele_reader_submit(reader, ids + 4, NULL, 4),
	       "tickets come back when collected");
	stele_reader_close(reader);
}

static void test_bad_ids(struct test_dataset *t)
{
	uint64_t ids[5] = {3, t->count, 4, UINT64_MAX, 3};
	uint64_t tags[5] = {10, 11, 12, 13, 14};
	struct stele_reader *reader = test_reader_open(t, 64 * KIB, 8);
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_sample samples[5];
	uint64_t seen = 0;
	int bad = 0, good = 0;

	is_int(5, stele_reader_submit(reader, ids, tags, 5), "all are taken");
	is_int(5, stele_reader_collect(reader, samples, 5, 5), "and come back");
	for (unsigned int i = 0; i < 5; i++) {
		const struct stele_sample *s = &samples[i];

		seen |= UINT64_C(1) << s->tag;
		if (s->tag == 11 || s->tag == 13)
			bad += s->status == -ERANGE && !s->data &&
			       s->id == ids[s->tag - 10];
		else
			good += test_is_sample(t, ids[s->tag - 10], s);
	}
	is_hex(0x7c00, seen, "each tag once");
	is_int(2, bad, "no such id: a status");
	is_int(3, good, "the others, one of them twice");
	stele_reader_stats(reader, &stats);
	is_uint(2, stats.failed, "failed");
	is_uint(5, stats.samples, "samples");
	is_uint(3, stats.device_reads, "reads");
	stele_reader_close(reader);
}

/* One at a time, in memory of its own; what fits goes on beside it. */
static void test_too_large(struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 4 * KIB, 8);
	uint64_t ids[3] = {0, t->count, 1};
	struct stele_sample samples[3];

	stele_fault_log_clear(t->dev);
	is_int(2, stele_reader_submit(reader, ids, NULL, 3),
	       "of samples larger than the arena one is taken");
	is_int(0, stele_reader_submit(reader, ids + 2, NULL, 1), "no other");
	is_int(2, stele_reader_collect(reader, samples, 2, 2), "collected");
	ok(test_is_sample(t, 0, &samples[samples[0].id ? 1 : 0]),
	   "and what it should be");
	is_int(0, stele_reader_submit(reader, ids + 2, NULL, 1),
	       "not released: still no room");
	stele_reader_release(reader, &samples[0]);
	stele_reader_release(reader, &samples[1]);
	stele_reader_release(reader, &samples[0]);
	is_int(1, stele_reader_submit(reader, ids + 2, NULL, 1), "the next");
	is_int(1, stele_reader_collect(reader, samples, 2, 1), "collected");
	ok(test_is_sample(t, 1, &samples[0]), "and what it should be");
	ok(test_is_issued(t, (uint64_t[]){0, 1}, 2, true), "one read each");
	stele_reader_close(reader);
}

/* One sample, to `memory`. */
static int submit_into(struct stele_reader *reader, uint64_t id, uint64_t tag,
		       void *memory, uint64_t size)
{
	const struct stele_destination to = {id, tag, memory, size};

	return stele_reader_submit_into(reader, &to, 1);
}

static void test_into(struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 4 * KIB, 1);
	struct stele_sample sample;
	uint64_t size = stele_reader_buffer_size(reader, 9);
	char *memory = aligned_alloc(4096, 3 * size);

	is_int(-EINVAL,
	       submit_into(reader, 9, 1, memory + 512, size),
	       "misaligned");
	is_int(-EINVAL, submit_into(reader, 9, 1, NULL, size),
	       "nowhere");
	is_int(-ENOBUFS,
	       submit_into(reader, 9, 1, memory, size - 1),
	       "too small");
	is_int(-ERANGE,
	       submit_into(reader, t->count, 1, memory, size),
	       "no such id");
	is_int(1, submit_into(reader, 9, 1, memory, size), "taken");
	is_int(1, submit_into(reader, 8, 2, memory + size, size),
	       "another");
	is_int(0, submit_into(reader, 7, 3, memory + 2 * size, size),
	       "no room: collect first");
	is_int(1, stele_reader_collect(reader, &sample, 1, 1), "one");
	ok(test_is_sample(t, sample.id, &sample), "is what it should be");
	ok((const char *)sample.data >= memory &&
		   (const char *)sample.data < memory + 2 * size,
	   "and lies in the caller's memory");
	stele_reader_release(reader, &sample);
	is_int(1, stele_reader_collect(reader, &sample, 1, 1), "the other");
	ok(test_is_sample(t, sample.id, &sample), "too");
	stele_reader_close(reader);
	free(memory);
}

static void test_many_into(struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 4 * KIB, 1);
	uint64_t size = (stele_reader_buffer_size(reader, 9) + 4095) / 4096 * 4096;
	char *memory = aligned_alloc(4096, 3 * size);
	struct stele_destination to[] = {{9, 1, memory, size},
					 {9, 2, memory + size, size},
					 {9, 3, memory + 2 * size, size}};
	struct stele_sample samples[2];

	to[1].memory_size = 0;
	is_int(1, stele_reader_submit_into(reader, to, 3), "up to one too small");
	is_int(-ENOBUFS, stele_reader_submit_into(reader, to + 1, 2), "which it says");
	to[1].memory_size = size;
	is_int(1, stele_reader_submit_into(reader, to + 1, 2), "and up to the room");
	is_int(2, stele_reader_collect(reader, samples, 2, 2), "both");
	ok(test_is_sample(t, 9, &samples[0]) && test_is_sample(t, 9, &samples[1]) &&
		   samples[0].tag + samples[1].tag == 3,
	   "are what they should be");
	stele_reader_close(reader);
	free(memory);
}

/* A flipped bit is healed where the caller wants the sample. */
static void test_into_again(struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 4 * KIB, 1);
	uint64_t size = stele_reader_buffer_size(reader, 9);
	char *memory = aligned_alloc(4096, size);
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FLIP,
					.first = stele_fault_count(t->dev),
					.count = 1,
					.arg = 99};
	struct stele_sample sample;

	stele_fault_set_rules(t->dev, &rule, 1);
	is_int(1, submit_into(reader, 9, 1, memory, size), "taken");
	is_int(1, stele_reader_collect(reader, &sample, 1, 1), "one");
	ok(test_is_sample(t, 9, &sample), "read again");
	ok((const char *)sample.data >= memory &&
		   (const char *)sample.data < memory + size,
	   "and lies in the caller's memory");
	stele_fault_set_rules(t->dev, NULL, 0);
	stele_reader_close(reader);
	free(memory);
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

#define FOREVER -1

/* Samples by poll alone: never one call of collect that waits. */
static void test_poll(struct test_dataset *t)
{
	uint64_t ids[40], bad = t->count;
	struct stele_reader *reader = test_reader_open(t, 64 * KIB, 4);
	struct stele_sample samples[3];
	unsigned int next = 0, collected = 0, right = 0;
	int fd = stele_reader_fd(reader), n;

	ok(fd >= 0, "a descriptor");
	is_int(fd, stele_reader_fd(reader), "always the same");
	ok(!readable(fd, 0), "nothing submitted, nothing readable");
	is_int(1, stele_reader_submit(reader, &bad, NULL, 1), "no such id");
	ok(readable(fd, 0), "a sample that failed at once is readable");
	is_int(1, stele_reader_collect(reader, samples, 3, 0), "collected");
	ok(!readable(fd, 0), "and not any more");
	test_random_ids(t, ids, 40, 3);
	while (collected < 40) {
		n = stele_reader_submit(reader, ids + next, NULL, 40 - next);
		next += (unsigned int)n;
		if (!readable(fd, FOREVER))
			break;
		n = stele_reader_collect(reader, samples, 3, 0);
		for (int i = 0; i < n; i++) {
			right += test_is_sample(t, samples[i].id, &samples[i]);
			stele_reader_release(reader, &samples[i]);
		}
		collected += (unsigned int)n;
	}
	is_uint(40, right, "forty samples by poll");
	ok(!readable(fd, 0), "all collected, nothing readable");
	stele_reader_close(reader);
}

/* Twice as many samples as the queue is deep: nobody but collect issues those. */
static void test_poll_only(struct test_dataset *t)
{
	uint64_t ids[8] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct stele_reader *reader = test_reader_open(t, 0, 4);
	struct stele_sample samples[8];
	int fd = stele_reader_fd(reader), collected = 0;

	is_int(8, stele_reader_submit(reader, ids, NULL, 8), "submit once");
	while (collected < 8 && readable(fd, FOREVER))
		collected += stele_reader_collect(reader, samples, 8, 0);
	is_int(8, collected, "then poll and collect alone");
	stele_reader_close(reader);
}

/* A checksum that is wrong once: the sample comes, though nobody waits in collect. */
static void test_poll_again(struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 0, 4);
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FLIP,
					.first = stele_fault_count(t->dev),
					.count = 1,
					.arg = 99};
	struct stele_sample sample;
	uint64_t id = 7;
	int fd = stele_reader_fd(reader), collected = 0;

	stele_fault_set_rules(t->dev, &rule, 1);
	is_int(1, stele_reader_submit(reader, &id, NULL, 1), "a bad read");
	while (!collected && readable(fd, FOREVER))
		collected = stele_reader_collect(reader, &sample, 1, 0);
	ok(test_is_sample(t, id, &sample), "and a good one, by poll");
	stele_fault_set_rules(t->dev, NULL, 0);
	stele_reader_close(reader);
}

/* What failed holds no buffer, released or not. */
static void test_failed_buffers(struct test_dataset *t)
{
	struct stele_reader *reader = test_reader_open(t, 32 * KIB, 16);
	uint64_t ids[4] = {0, 1, 2, 3};
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL, .error = EIO};
	struct stele_sample samples[4];
	int failed = 0, n;

	stele_fault_set_rules(t->dev, &rule, 1);
	for (unsigned int i = 0; i < 3; i++) {
		n = stele_reader_submit(reader, ids, NULL, 4);
		n = stele_reader_collect(reader, samples, 4, (unsigned int)n);
		while (n-- > 0)
			failed += samples[n].status == -EIO;
	}
	stele_fault_set_rules(t->dev, NULL, 0);
	is_int(12, failed, "three times four samples fail");
	is_int(4, stele_reader_submit(reader, ids, NULL, 4), "room for four");
	stele_reader_close(reader);
}

static void check(const char *backend)
{
	/* One sample of a page each: slots of 8192 bytes. */
	struct test_plan plan = {.samples = 60,
				 .size_max = 8100,
				 .granule = 4096,
				 .backend = backend};
	struct test_dataset t;
	uint64_t first = 0, *numbers;

	diag("%s", backend ? backend : "memory");
	test_dataset_open(&t, &plan);
	/* Leave out those of one page: ids ascend by size. */
	while (t.ds->snapshot.segments[0].runs[1].first > first)
		first++;
	numbers = calloc(first + 1, sizeof(*numbers));
	for (uint64_t i = 0; i < first; i++)
		numbers[i] = i;
	stele_deleted_make(numbers, first, &t.ds->snapshot.segments[0].deleted);
	free(numbers);
	t.count -= first;
	t.ds->snapshot.sample_count = t.count;
	memmove(t.live, t.live + first, t.count * sizeof(*t.live));
	test_options(&t);
	test_arena(&t);
	test_depth(&t);
	test_bad_ids(&t);
	test_too_large(&t);
	test_into(&t);
	test_many_into(&t);
	test_into_again(&t);
	test_poll(&t);
	test_poll_only(&t);
	test_poll_again(&t);
	test_failed_buffers(&t);
	test_dataset_close(&t);
}

int main(void)
{
	plan_lazy();
	check(NULL);
	check("uring");
	check("threads");
	return done();
}
