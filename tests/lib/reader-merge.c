/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-merge.c - neighbours come with one read, and fail one by one
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define SAMPLES 3000u
#define BLOCK	512u
#define GAP	4096u

struct outcome {
	uint64_t reads, bytes, right, failed;
	int status;
};

static const struct test_plan small = {
	.samples = SAMPLES, .size_max = 400, .logical_block = BLOCK};

static struct outcome read_all(struct test_dataset *t, const uint64_t *ids,
			       const struct stele_reader_opts *opts)
{
	struct stele_sample samples[64];
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct outcome out = {0};
	struct stele_reader *reader;
	unsigned int next = 0;

	stele_fault_log_clear(t->dev);
	if (stele_reader_open(t->ds, opts, &reader))
		bail("no reader");
	while (next < SAMPLES || stele_reader_in_flight(reader)) {
		int n = stele_reader_submit(reader, ids + next, ids + next,
					    SAMPLES - next);

		next += n > 0 ? (unsigned int)n : 0;
		n = stele_reader_collect(reader, samples, 64, 1);
		if (n <= 0)
			bail("collect: %d", n);
		for (int i = 0; i < n; i++) {
			if (samples[i].status) {
				out.failed++;
				out.status = samples[i].status;
			} else {
				out.right += test_is_sample(t, samples[i].tag,
							    &samples[i]);
			}
			stele_reader_release(reader, &samples[i]);
		}
	}
	stele_reader_stats(reader, &stats);
	out.reads = stats.device_reads - stats.check_reads;
	out.bytes = stats.device_bytes - stats.check_bytes;
	stele_reader_close(reader);
	return out;
}

static void count(uint64_t *ids)
{
	for (unsigned int i = 0; i < SAMPLES; i++)
		ids[i] = i;
}

static void check_order(struct test_dataset *t,
			const struct stele_reader_opts *opts, const char *what)
{
	const struct stele_descriptor *d =
		&t->ds->snapshot.segments[0].descriptor;
	const uint64_t arena = opts->arena_size ? opts->arena_size : 256 << 10;
	const uint64_t piece = arena < 256 << 10 ? arena : 256 << 10;
	uint64_t ids[SAMPLES];
	struct outcome out;

	count(ids);
	out = read_all(t, ids, opts);
	is_uint(SAMPLES, out.right, "%s: all samples", what);
	ok(out.reads <= 2 * d->slots_size / piece + 2, "%s: in %ju reads", what,
	   (uintmax_t)out.reads);
	ok(out.bytes <= d->slots_size + out.reads * 2 * BLOCK,
	   "%s: each block once", what);
}

/* Every tenth sample; then they all, in no order. */
static void check_gaps(struct test_dataset *t)
{
	const struct stele_reader_opts opts = STELE_OPTS(stele_reader_opts,
							 .merge_gap = GAP);
	uint64_t ids[SAMPLES], state = 7;
	struct outcome out;

	for (unsigned int i = 0; i < SAMPLES; i++)
		ids[i] = i * 10 % SAMPLES;
	out = read_all(t, ids, &opts);
	is_uint(SAMPLES, out.right, "each tenth: all samples");
	ok(out.reads < SAMPLES / 20, "each tenth: in %ju reads",
	   (uintmax_t)out.reads);
	count(ids);
	for (unsigned int i = 0; i < SAMPLES; i++) {
		const unsigned int j = (unsigned int)(test_random(&state) % SAMPLES);
		const uint64_t id = ids[i];

		ids[i] = ids[j];
		ids[j] = id;
	}
	out = read_all(t, ids, &opts);
	is_uint(SAMPLES, out.right, "no order: all samples");
	ok(out.reads > SAMPLES / 2, "no order: hardly any together");
}

/* What shares a read with a sample that fails is none the worse. */
static void check_failures(uint32_t threads, enum stele_fault_kind kind,
			   int status)
{
	struct stele_fault_rule rule = {.kind = kind, .ops = 1 << STELE_OP_READ,
					.error = EIO, .size = 1, .arg = 3};
	const struct stele_reader_opts opts = STELE_OPTS(
		stele_reader_opts, .merge_gap = GAP, .check_threads = threads);
	struct stele_extent extent = {.size = sizeof(extent)};
	uint64_t ids[SAMPLES], touched = 0, at;
	struct test_dataset t;
	struct outcome out;

	test_dataset_open(&t, &small);
	stele_dataset_locate(t.ds, 1000, &extent);
	at = extent.offset / BLOCK * BLOCK;
	for (uint64_t id = 0; id < SAMPLES; id++) {
		stele_dataset_locate(t.ds, id, &extent);
		touched += extent.offset < at + BLOCK &&
			   extent.offset + extent.slot_size > at;
	}
	rule.offset = at;
	rule.size = BLOCK;
	stele_fault_set_rules(t.dev, &rule, 1);
	count(ids);
	out = read_all(&t, ids, &opts);
	ok(out.failed && out.failed <= touched,
	   "%u threads: %ju failed, %ju touch the block", threads,
	   (uintmax_t)out.failed, (uintmax_t)touched);
	is_uint(SAMPLES - out.failed, out.right, "all others are right");
	is_int(status, out.status, "status");
	test_dataset_close(&t);
}

int main(void)
{
	struct test_plan plan = small;
	struct test_dataset t;

	plan_lazy();
	test_dataset_open(&t, &plan);
	check_order(&t, &STELE_OPTS(stele_reader_opts, .merge_gap = GAP), "crc");
	check_order(&t,
		    &STELE_OPTS(stele_reader_opts, .merge_gap = GAP,
				.verify = STELE_VERIFY_DIGEST,
				.check_threads = 3),
		    "digests, three threads");
	check_order(&t,
		    &STELE_OPTS(stele_reader_opts, .merge_gap = GAP,
				.arena_size = 65536),
		    "little memory");
	check_gaps(&t);
	test_dataset_close(&t);
	plan.backend = "threads";
	test_dataset_open(&t, &plan);
	check_order(&t, &STELE_OPTS(stele_reader_opts, .merge_gap = GAP),
		    "a file");
	test_dataset_close(&t);
	check_failures(0, STELE_FAULT_FAIL, -EIO);
	check_failures(3, STELE_FAULT_FAIL, -EIO);
	return done();
}
