/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-depth.c - a reader finds its depth, and reads the right bytes meanwhile
 *
 * Over a device whose completions come late and out of order. What depth is
 * found depends on the machine; that it is looked for, and how, does not.
 */
#include "lib/read/fetch.h"
#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define BATCH	    512u
#define BATCHES_MAX 400000u /* then something is wrong */
#define ROUNDS	    256u    /* the same; as many as are kept */

#define BIT(phase) (1u << STELE_DEPTH_##phase)

static struct test_dataset t;
static uint64_t wrong, seed;

static void open_delayed(const char *backend)
{
	const struct test_plan plan = {
		.samples = 400, .size_max = 9000, .backend = backend};
	const struct stele_fault_rule late = {
		.kind = STELE_FAULT_DELAY, .ops = 1 << STELE_OP_READ, .arg = 24};

	test_dataset_open(&t, &plan);
	stele_fault_set_rules(t.dev, &late, 1);
}

static void read_batch(struct stele_reader *reader, unsigned int count)
{
	uint64_t ids[BATCH];

	test_random_ids(&t, ids, count, ++seed);
	wrong += test_read_all(&t, reader, ids, count);
	stele_fault_log_clear(t.dev);
}

/* Read until this phase was seen: a bit set of all that were, and of how many starved. */
static unsigned int read_until(struct stele_reader *reader, unsigned int wanted,
			       unsigned int *starved)
{
	struct stele_depth_round rounds[ROUNDS];
	unsigned int seen = 0;

	*starved = 0;
	/* In rounds, not batches: how many of these fit in one the machine decides. */
	for (unsigned int count = 0;
	     count < ROUNDS && !(seen & wanted) && *starved < ROUNDS / 2;) {
		read_batch(reader, BATCH);
		count = stele_reader_history(reader, rounds, ROUNDS);
		*starved = 0;
		for (unsigned int i = 0; i < count; i++) {
			seen |= 1u << rounds[i].phase;
			*starved += rounds[i].starved;
		}
	}
	return seen;
}

static void check_automatic(const char *backend)
{
	const char *name = backend ? backend : "memory";
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_reader *reader;
	unsigned int seen, starved;

	open_delayed(backend);
	reader = test_reader_open(&t, 0, 0);
	seen = read_until(reader, BIT(CRUISE), &starved);
	ok(seen & BIT(STARTUP), "%s: it begins with doubling", name);
	/* A device that is quicker than we compare is never kept busy. */
	if (starved >= ROUNDS / 2)
		diag("%s: quicker than this test", name);
	else
		ok(seen & BIT(CRUISE), "and comes to rest");
	stele_reader_stats(reader, &stats);
	ok(stats.window >= 1 && stats.window <= 1024, "a window that can be");
	is_uint(0, wrong, "every byte is right");
	stele_reader_close(reader);
	test_dataset_close(&t);
}

static void check_pinned(void)
{
	struct stele_depth_round rounds[ROUNDS];
	struct stele_reader_stats stats = {.size = sizeof(stats)};
	struct stele_reader *reader;
	unsigned int others = 0, starved, count;

	open_delayed(NULL);
	reader = test_reader_open(&t, 0, 5);
	is_hex(BIT(PINNED), read_until(reader, BIT(PINNED), &starved),
	       "pinned, and only that");
	count = stele_reader_history(reader, rounds, ROUNDS);
	for (unsigned int i = 0; i < count; i++)
		others += !(rounds[i].window >= 5 && rounds[i].window <= 5);
	is_uint(0, others, "at 5, in each round");
	stele_reader_stats(reader, &stats);
	is_uint(5, stats.window, "as the stats say");
	stele_reader_close(reader);
	test_dataset_close(&t);
}

/* Three at a time, whatever the window. */
static void check_starved(void)
{
	struct stele_depth_round rounds[ROUNDS];
	struct stele_reader *reader;
	unsigned int count = 0, others = 0;

	open_delayed(NULL);
	reader = test_reader_open(&t, 0, 0);
	for (unsigned int i = 0; i < BATCHES_MAX && count < 3; i++) {
		read_batch(reader, 3);
		count = stele_reader_history(reader, rounds, ROUNDS);
	}
	for (unsigned int i = 0; i < count; i++)
		others += !rounds[i].starved ||
			  rounds[i].phase != STELE_DEPTH_STARTUP;
	ok(count >= 3, "three at a time: rounds");
	is_uint(0, others, "starved, all of them, and nothing is concluded");
	is_uint(0, wrong, "every byte is right");
	stele_reader_close(reader);
	test_dataset_close(&t);
}

int main(void)
{
	plan_lazy();
	check_automatic(NULL);
	check_automatic("uring");
	check_automatic("threads");
	check_pinned();
	check_starved();
	return done();
}
