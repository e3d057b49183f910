/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-faults.c - what goes wrong hits the one sample that it concerns
 *
 * Reads that fail, are short, late, lost, misdirected or flip a bit, below a
 * reader with many in flight. Depth is one where a rule counts operations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define SAMPLES 40u

struct outcome {
	uint64_t right, failed;
	int status; /* of the last that failed */
	uint64_t failed_id;
	uint64_t order[SAMPLES]; /* ids as they were collected */
	struct stele_reader_stats stats;
};

/* Read every sample once, with `rule` from now on. */
static struct outcome read_with(struct test_dataset *t, unsigned int depth,
				const struct stele_fault_rule *rule)
{
	struct outcome out = {0};
	struct stele_sample samples[SAMPLES];
	struct stele_fault_rule now = *rule;
	struct stele_reader *reader;
	uint64_t ids[SAMPLES];
	unsigned int seen = 0;
	int n;

	now.first += stele_fault_count(t->dev);
	now.ops = 1 << STELE_OP_READ;
	stele_fault_set_rules(t->dev, &now, 1);
	stele_fault_log_clear(t->dev);
	if (stele_reader_open(t->ds,
			      &STELE_OPTS(stele_reader_opts, .depth = depth),
			      &reader))
		bail("no reader");
	for (unsigned int i = 0; i < SAMPLES; i++)
		ids[i] = i;
	for (unsigned int next = 0; seen < SAMPLES; seen += (unsigned int)n) {
		n = stele_reader_submit(reader, ids + next, NULL,
					SAMPLES - next);
		next += n > 0 ? (unsigned int)n : 0;
		n = stele_reader_collect(reader, samples, SAMPLES, 1);
		if (n <= 0)
			bail("collect: %d", n);
		for (int i = 0; i < n; i++) {
			struct stele_sample *s = &samples[i];

			out.order[seen + (unsigned int)i] = s->id;
			if (s->status) {
				out.failed++;
				out.status = s->status;
				out.failed_id = s->id;
				out.right -= s->data || s->key || s->buffer;
			} else {
				out.right += test_is_sample(t, s->id, s);
			}
			stele_reader_release(reader, s);
			stele_reader_release(reader, s);
		}
	}
	out.stats.size = sizeof(out.stats);
	stele_reader_stats(reader, &out.stats);
	stele_reader_close(reader);
	stele_fault_set_rules(t->dev, NULL, 0);
	return out;
}

static void expect(const struct outcome *out, uint64_t failed, int status,
		   uint64_t reread, const char *what)
{
	is_uint(failed, out->failed, "%s: failed", what);
	is_uint(SAMPLES - failed, out->right, "%s: right", what);
	is_int(status, out->status, "%s: status", what);
	is_uint(reread, out->stats.reread, "%s: read again", what);
	is_uint(failed, out->stats.failed, "%s: counted", what);
	is_uint(SAMPLES, out->stats.samples, "%s: all", what);
}

/* The blocks of one sample. */
static struct stele_fault_rule on_sample(const struct test_dataset *t,
					 uint64_t id, enum stele_fault_kind kind)
{
	struct test_read read;

	test_reads_of(t, id, &read, 1);
	return (struct stele_fault_rule){
		.kind = kind, .offset = read.offset, .size = read.size};
}

static void test_failing(struct test_dataset *t, unsigned int depth)
{
	struct stele_fault_rule rule = on_sample(t, 11, STELE_FAULT_FAIL);
	struct outcome out;

	rule.error = EREMOTEIO;
	out = read_with(t, depth, &rule);
	expect(&out, 1, -EREMOTEIO, 0, "a failing read");
	is_uint(11, out.failed_id, "it is the one");
	is_uint(SAMPLES, out.stats.device_reads, "and was not tried again");
}

static void test_flips(struct test_dataset *t, unsigned int depth)
{
	struct stele_fault_rule rule = on_sample(t, 23, STELE_FAULT_FLIP);
	struct stele_extent extent = {.size = sizeof(extent)};
	struct outcome out;

	stele_dataset_locate(t->ds, 23, &extent);
	rule.arg = extent.offset % t->dev->limits.logical_block * 8 + 77;
	rule.count = 1;
	out = read_with(t, depth, &rule);
	expect(&out, 0, 0, 1, "a bit flips once");
	is_uint(SAMPLES + 1, out.stats.device_reads, "one read more");
	ok(test_log_has(&t->log, "only when it was read again"), "a warning");
	rule.count = 0;
	out = read_with(t, depth, &rule);
	expect(&out, 1, -EBADMSG, 1, "a bit is always wrong");
	is_uint(23, out.failed_id, "it is the one");
	is_uint(SAMPLES + 1, out.stats.device_reads - out.stats.check_reads,
		"two reads, not three");
	ok(out.stats.check_reads > 0, "and those that ask whether it is gone");
	ok(test_log_has(&t->log, "1 sample 23 at offset"), "logged");
}

static void test_astray(struct test_dataset *t, unsigned int depth)
{
	struct stele_fault_rule rule = on_sample(t, 5, STELE_FAULT_MISDIRECT);
	struct test_read read;
	struct outcome out;

	/* To a whole, sound sample of another number. */
	test_reads_of(t, 6, &read, 1);
	rule.arg = read.offset - rule.offset;
	out = read_with(t, depth, &rule);
	expect(&out, 1, -EBADMSG, 1, "misdirected");
	is_uint(5, out.failed_id, "it is the one");
	rule = on_sample(t, 9, STELE_FAULT_LOSE);
	rule.count = 1;
	out = read_with(t, depth, &rule);
	expect(&out, 0, 0, 1, "a read that brought nothing");
	rule = on_sample(t, 9, STELE_FAULT_SHORTEN);
	rule.count = 1;
	rule.arg = 4096;
	out = read_with(t, depth, &rule);
	expect(&out, 0, 0, 0, "a short read goes on");
}

/* The first read completes after three later ones: collected after them. */
static void test_order(struct test_dataset *t)
{
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_DELAY, .count = 1, .arg = 3};
	struct outcome out = read_with(t, 32, &rule);
	unsigned int place = 0;

	expect(&out, 0, 0, 0, "a late read");
	while (place < SAMPLES && out.order[place] != 0)
		place++;
	ok(place >= 3, "collected behind %u others", place);
}

static void check(const char *backend, unsigned int depth)
{
	/* Blocks of a file may be 512 or 4096: no slot shares one. */
	struct test_plan plan = {.samples = SAMPLES,
				 .size_max = 20000,
				 .granule = 4096,
				 .backend = backend};
	struct test_dataset t;

	diag("%s, depth %u", backend ? backend : "memory", depth);
	test_dataset_open(&t, &plan);
	test_failing(&t, depth);
	test_flips(&t, depth);
	test_astray(&t, depth);
	/* Only in memory do later reads complete in the order of their start. */
	if (depth > 1 && !backend)
		test_order(&t);
	test_dataset_close(&t);
}

/* Of a sample in many parts one fails: the sample does, once. */
static void test_parts(void)
{
	struct test_plan plan = {
		.samples = SAMPLES, .size_max = 2500000, .granule = 4096};
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL, .error = EIO};
	struct test_read reads[64];
	struct test_dataset t;
	struct outcome out;
	uint64_t id = 0;

	test_dataset_open(&t, &plan);
	while (test_reads_of(&t, id, reads, 64) < 4)
		id++;
	for (unsigned int part = 0; part < 4; part++) {
		rule.offset = reads[part].offset;
		rule.size = reads[part].size;
		out = read_with(&t, part % 2 ? 2 : 64, &rule);
		expect(&out, 1, -EIO, 1, "a part that fails");
		is_uint(id, out.failed_id, "it is the one");
	}
	/* As of a request that the kernel had joined with a bad one. */
	rule.count = 1;
	out = read_with(&t, 3, &rule);
	expect(&out, 0, 0, 1, "a part that fails, but not by itself");
	rule.kind = STELE_FAULT_FLIP;
	rule.arg = 12345;
	rule.count = 1;
	out = read_with(&t, 3, &rule);
	expect(&out, 0, 0, 1, "a part that flips a bit once");
	test_dataset_close(&t);
}

int main(void)
{
	static const char *const backends[] = {NULL, "uring", "threads"};

	plan_lazy();
	for (unsigned int i = 0; i < 3; i++) {
		check(backends[i], 1);
		check(backends[i], 16);
	}
	test_parts();
	return done();
}
