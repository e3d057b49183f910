/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader-stress.c - 20,000 random reads, held for a while, released at random
 *
 * Samples from nothing to several MiB through an arena that holds a few of the
 * large ones: every byte is compared, when the sample comes and again when it
 * is given back, so that no buffer is handed out twice.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define HELD_MAX 64u
#define BATCH	 8u

struct run {
	struct test_dataset t;
	struct stele_reader *reader;
	struct stele_sample held[HELD_MAX];
	unsigned int held_count;
	uint64_t wanted, submitted, collected, wrong, refused, stuck;
	uint64_t state;
};

static void release_one(struct run *r)
{
	unsigned int i = (unsigned int)(test_random(&r->state) % r->held_count);

	r->wrong += !test_is_sample(&r->t, r->held[i].id, &r->held[i]);
	stele_reader_release(r->reader, &r->held[i]);
	r->held[i] = r->held[--r->held_count];
}

static void submit_some(struct run *r)
{
	uint64_t ids[BATCH];
	unsigned int count = 0;
	int n;

	for (; count < BATCH && r->submitted + count < r->wanted; count++) {
		/* The large ones, which are last in a segment, are rare. */
		uint64_t half = r->t.count / 2;
		uint64_t x = test_random(&r->state) % half;

		ids[count] = x * x / half * x / half +
			     test_random(&r->state) % 2 * half;
	}
	n = stele_reader_submit(r->reader, ids, NULL, count);
	r->submitted += (unsigned int)n;
	r->refused += (unsigned int)n < count;
	if (count && !n && !r->held_count &&
	    !stele_reader_in_flight(r->reader))
		r->stuck++;
}

static void collect_some(struct run *r)
{
	unsigned int max = HELD_MAX - r->held_count;
	unsigned int min = r->held_count ? 0 : 1;
	int n;

	n = stele_reader_collect(r->reader, r->held + r->held_count,
				 max < BATCH ? max : BATCH, min);
	if (n < 0)
		bail("collect: %d", n);
	for (int i = 0; i < n; i++)
		r->wrong += !test_is_sample(&r->t,
					    r->held[r->held_count + i].id,
					    &r->held[r->held_count + i]);
	r->held_count += (unsigned int)n;
	r->collected += (unsigned int)n;
}

static void stress(const char *backend, uint64_t wanted, uint64_t arena_size,
		   uint32_t depth)
{
	struct test_plan plan = {.segments = 2,
				 .samples = 120,
				 .size_max = 3500000,
				 .delete_every = 7,
				 .backend = backend};
	static struct run r;
	struct stele_reader_stats stats = {.size = sizeof(stats)};

	memset(&r, 0, sizeof(r));
	r.wanted = wanted;
	r.state = wanted + depth;
	plan.granule = 16;
	test_dataset_open(&r.t, &plan);
	r.reader = test_reader_open(&r.t, arena_size, depth);
	while (r.collected < wanted && !r.stuck) {
		submit_some(&r);
		collect_some(&r);
		while (r.held_count &&
		       (r.held_count > HELD_MAX - BATCH ||
			test_random(&r.state) % 3 == 0 || r.collected == wanted))
			release_one(&r);
	}
	is_uint(0, r.stuck, "%s, depth %u: always room when all is released",
		backend ? backend : "memory", depth);
	is_uint(0, r.wrong, "%ju samples, every byte", (uintmax_t)wanted);
	ok(r.refused > wanted / 100, "it was full now and then");
	stele_reader_stats(r.reader, &stats);
	is_uint(wanted, stats.samples, "all of them");
	is_uint(0, stats.failed + stats.reread, "none failed");
	stele_reader_close(r.reader);
	test_dataset_close(&r.t);
}

int main(void)
{
	plan_lazy();
	stress(NULL, 12000, 9u << 20, 16);
	stress(NULL, 2000, 4u << 20, 1);
	stress("uring", 4000, 9u << 20, 32);
	stress("threads", 2000, 9u << 20, 8);
	return done();
}
