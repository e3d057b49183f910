/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-broken.c - a ring that breaks takes no memory with it
 *
 * Nobody can tell then when the kernel is done with what was in flight: the
 * memory of a reader stays mapped after it was closed. It goes if nothing broke.
 */
#include <errno.h>

#include "tests/fixture/dataset.h"
#include "tests/device/mapped.h"
#include "tests/tap.h"

#define SAMPLES 40u

/* It is meant to leak. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *
__lsan_default_suppressions(void)
{
	return "leak:stele_reader_open";
}

/* Read until the queue breaks, or to the end. Return: what collect said last. */
static int read_some(struct test_dataset *t, struct stele_reader *reader,
		     const void **memory)
{
	uint64_t ids[SAMPLES], next = 0;
	struct stele_sample sample;
	int n = 0;

	test_random_ids(t, ids, SAMPLES, 11);
	for (unsigned int i = 0; i < SAMPLES && n >= 0; i += (unsigned int)n) {
		n = stele_reader_submit(reader, ids + next, NULL,
					(unsigned int)(SAMPLES - next));
		next += (uint64_t)n;
		n = stele_reader_collect(reader, &sample, 1, 1);
		if (n == 1) {
			*memory = sample.buffer;
			stele_reader_release(reader, &sample);
		}
	}
	return n;
}

static void check(const char *backend, uint32_t threads)
{
	struct test_plan plan = {.samples = SAMPLES,
				 .size_max = 20000,
				 .granule = 4096,
				 .backend = backend};
	struct stele_fault_rule rule = {.kind = STELE_FAULT_BREAK};
	const char *name = backend ? backend : "memory";
	struct stele_sample sample;

	for (unsigned int broken = 0; broken < 2; broken++) {
		const void *memory = NULL;
		struct stele_reader *reader;
		struct test_dataset t;
		int last;

		test_dataset_open(&t, &plan);
		if (stele_reader_open(t.ds,
				      &STELE_OPTS(stele_reader_opts, .depth = 4,
						  .check_threads = threads),
				      &reader))
			bail("no reader");
		rule.first = stele_fault_count(t.dev) + 20;
		stele_fault_set_rules(t.dev, &rule, broken);
		last = read_some(&t, reader, &memory);
		is_int(broken ? -EIO : 1, last, "%s, %u threads: the last word",
		       name, threads);
		if (broken)
			is_int(-EIO, stele_reader_collect(reader, &sample, 1, 1),
			       "and again");
		ok(is_mapped(memory), "memory, while it is open");
		stele_reader_close(reader);
		ok(is_mapped(memory) == broken, "after close: %s",
		   broken ? "still there" : "gone");
		test_dataset_close(&t);
	}
}

int main(void)
{
	plan_lazy();
	check(NULL, 0);
	check("uring", 0);
	check("uring", 2);
	return done();
}
