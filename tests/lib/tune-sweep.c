/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune-sweep.c - tuning reads only what slots take up, and says what it found
 *
 * Over memory behind a device that logs, in fractions of a second: which reads
 * are issued, not how fast they are, is what is checked here.
 */
#include "lib/tune/meter.h"
#include "lib/tune/sweep.h"
#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a cell takes makes it brief; all the time there is, is for slow machines. */
static const struct stele_tune_time brief = {4, 0.002, 20};

struct seen {
	unsigned int cells, mixes, cancel_at; /* mixes: since the last of one size */
	bool in_order, sound;
	uint32_t size, depth; /* of the last cell */
	struct stele_tune_point last;
	double done;
};

static int see(void *user, const struct stele_tune_point *point, double done)
{
	struct seen *seen = user;

	seen->cells++;
	seen->mixes = point->size ? 0 : seen->mixes + 1;
	if (seen->cells > 1 &&
	    !(point->size == seen->size ?
		      point->depth == 2 * seen->depth || (!point->size && point->depth == 1) :
		      (!point->size || (seen->size && point->size > seen->size)) &&
			      point->depth == 1))
		seen->in_order = false;
	if (!(point->reads_per_second > 0 && point->p50_ns &&
	      point->p99_ns >= point->p50_ns && point->bytes_per_second > 0 &&
	      done >= seen->done && done <= 1))
		seen->sound = false;
	seen->size = point->size;
	seen->depth = point->depth;
	seen->done = done;
	seen->last = *point;
	return seen->cancel_at == seen->cells;
}

static int tune(struct test_dataset *t, const struct stele_tune_time *time,
		struct seen *seen, struct stele_tuning *tuning)
{
	const struct stele_tune_opts opts = {
		.size = sizeof(opts), .log = t->log.log.fn,
		.log_user = t->log.log.user, .point = see, .point_user = seen,
	};

	seen->in_order = seen->sound = true;
	stele_fault_log_clear(t->dev);
	return stele_tune_dataset(t->ds, &opts, time, false, tuning);
}

/* ---- which reads are issued --------------------------------------------------- */

struct slot {
	uint64_t begin, end; /* with what is read around it */
};

static int by_begin(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* All slots, the deleted ones too, sorted and merged; by the run tables. */
static size_t slots_of(const struct stele_dataset *ds, struct slot *slots)
{
	const uint32_t block = ds->image.dev->limits.logical_block;
	size_t count = 0, merged = 0;

	for (uint32_t i = 0; i < ds->snapshot.segment_count; i++) {
		const struct stele_segment *segment = &ds->snapshot.segments[i];

		for (uint64_t n = 0; n < segment->descriptor.sample_count; n++) {
			uint64_t offset, size;

			stele_segment_slot(segment, n, &offset, &size);
			slots[count++] = (struct slot){
				round_down(offset, block),
				round_up(offset + size, block)};
		}
	}
	qsort(slots, count, sizeof(*slots), by_begin);
	for (size_t i = 1; i < count; i++) {
		if (slots[i].begin > slots[merged].end)
			slots[++merged] = slots[i];
		else if (slots[i].end > slots[merged].end)
			slots[merged].end = slots[i].end;
	}
	return merged + 1;
}

static bool is_within(const struct stele_fault_entry *read,
		      const struct slot *slots, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (read->offset >= slots[i].begin &&
		    read->offset + read->size <= slots[i].end)
			return true;
	return false;
}

static void check_issued(struct test_dataset *t, uint64_t boundary,
			 const char *what)
{
	struct slot *slots = calloc(20000, sizeof(*slots));
	size_t count = slots_of(t->ds, slots), logged;
	const struct stele_fault_entry *log = stele_fault_log(t->dev, &logged);
	uint64_t outside = 0, crossing = 0, other = 0, places = 0, last = 0;

	for (size_t i = 0; i < logged; i++) {
		other += log[i].op != STELE_OP_READ || !log[i].queued;
		outside += !is_within(&log[i], slots, count);
		places += log[i].offset != last;
		last = log[i].offset;
		crossing += boundary && log[i].offset / boundary !=
						(log[i].offset + log[i].size - 1) /
							boundary;
	}
	ok(logged > 200, "%s: %zu reads", what, logged);
	ok(places > logged * 9 / 10, "%s: all over the place", what);
	is_uint(0, other, "%s: nothing but queued reads", what);
	is_uint(0, outside, "%s: none outside of the slots", what);
	is_uint(0, crossing, "%s: none crosses the boundary", what);
	free(slots);
}

static void check_plan(const struct test_plan *plan, const char *what)
{
	struct stele_tuning tuning = {.size = sizeof(tuning)};
	struct seen seen = {0};
	struct test_dataset t;
	uint32_t mixes;

	test_dataset_open(&t, plan);
	is_int(0, tune(&t, &brief, &seen, &tuning), "%s: tunes", what);
	ok(seen.cells > 5 && seen.in_order, "%s: %u cells, in order", what,
	   seen.cells);
	ok(seen.mixes > 1 && !seen.size, "%s: %u of the image's own mix at the end", what,
	   seen.mixes);
	ok(seen.sound, "%s: sound points", what);
	mixes = seen.mixes / 3;
	is_uint(seen.cells, tuning.point_count + 2 * mixes,
		"%s: all of them are kept, the best of three of the mix", what);
	ok(!memcmp(&tuning.points[tuning.point_count - 1], &seen.last, sizeof(seen.last)),
	   "%s: as they were told", what);
	ok(tuning.depth && tuning.depth <= seen.depth &&
		   tuning.depth == stele_tuning_depth(&tuning, 0),
	   "%s: depth %u is the knee of the mix", what, tuning.depth);
	ok(tuning.slots_size && tuning.mean_size && *tuning.backend &&
		   stele_tuning_depth(&tuning, 4096) >= 1,
	   "%s: a sound tuning", what);
	is_uint(plan->logical_block ? plan->logical_block : 512,
		t.ds->image.dev->limits.logical_block, "%s: blocks", what);
	check_issued(&t, plan->boundary, what);
	test_dataset_close(&t);
}

static void check_reads(void)
{
	struct test_plan plan = {.samples = 400, .size_max = 9000};

	check_plan(&plan, "one segment");
	plan.logical_block = 4096;
	plan.granule = 4096;
	check_plan(&plan, "blocks of 4096");
	plan.granule = 64;
	plan.logical_block = 512;
	plan.boundary = 65536;
	check_plan(&plan, "a boundary");
	plan.segments = 3;
	plan.delete_every = 3;
	check_plan(&plan, "three segments, deletions, a boundary");
	plan.boundary = 0;
	check_plan(&plan, "three segments, deletions");
}

/* ---- what goes wrong ----------------------------------------------------------- */

static void check_stops(void)
{
	const struct stele_fault_rule bad = {
		.kind = STELE_FAULT_FAIL, .ops = 1 << STELE_OP_READ,
		.first = 500, .error = EILSEQ,
	};
	struct test_plan plan = {.samples = 400, .size_max = 9000};
	struct stele_tuning tuning = {.size = sizeof(tuning)};
	struct test_dataset t;

	test_dataset_open(&t, &plan);
	for (unsigned int at = 1; at < 9; at += 7) {
		struct seen seen = {.cancel_at = at};

		is_int(-ECANCELED, tune(&t, &brief, &seen, &tuning),
		       "stops behind cell %u", at);
		is_uint(at, seen.cells, "and there");
	}
	stele_fault_set_rules(t.dev, &bad, 1);
	is_int(-EILSEQ, tune(&t, &brief, &(struct seen){0}, &tuning),
	       "a read that fails is an error");
	ok(test_log_has(&t.log, "cannot read"), "which is said, with its place");
	test_dataset_close(&t);
}

/* Far too little time: it ends, and has measured something all the same. */
static void check_hurry(void)
{
	const struct stele_tune_time none = {0.01, 0.5, 1000000};
	struct test_plan plan = {.samples = 400, .size_max = 9000};
	struct stele_tuning tuning = {.size = sizeof(tuning)};
	struct seen seen = {0};
	struct test_dataset t;

	test_dataset_open(&t, &plan);
	is_int(0, tune(&t, &none, &seen, &tuning), "hardly any time: tunes");
	ok(seen.cells >= 2 && seen.sound, "%u cells", seen.cells);
	test_dataset_close(&t);
}

static void check_little(void)
{
	struct test_plan plan = {.samples = 3, .size_max = 900};
	struct stele_tuning tuning = {.size = sizeof(tuning)};
	struct test_dataset t;

	test_dataset_open(&t, &plan);
	is_int(-ENOENT, tune(&t, &brief, &(struct seen){0}, &tuning),
	       "three small samples: nothing to measure");
	ok(test_log_has(&t.log, "too few"), "said");
	test_dataset_close(&t);
}

/* Large samples, and deeper than there is memory for: nothing lands behind it. */
static void check_memory(void)
{
	struct test_plan plan = {.samples = 20, .size_max = 900000};
	struct stele_tune_cell cell = {.seconds_min = 0.002, .seconds_max = 0.01};
	struct stele_tune_result result;
	struct stele_tune_meter meter;
	struct stele_tune_space space;
	struct test_dataset t;
	uint32_t depth;

	test_dataset_open(&t, &plan);
	if (stele_tune_space_init(&space, t.ds) ||
	    stele_tune_meter_init(&meter, t.dev, t.ds, &space, 1024))
		bail("no meter");
	depth = stele_tune_meter_depth(&meter, 0);
	ok(depth >= 64 && depth < 1024, "room for %u reads of the mix", depth);
	is_uint(1024, stele_tune_meter_depth(&meter, 4096), "or 1024 small ones");
	cell.depth = depth + 1;
	is_int(-EINVAL, stele_tune_meter_run(&meter, &cell, NULL, &result),
	       "no more than that");
	cell.depth = depth;
	is_int(0, stele_tune_meter_run(&meter, &cell, NULL, &result), "but that");
	stele_tune_meter_release(&meter);
	stele_tune_space_release(&space);
	test_dataset_close(&t);
}

/* Which depth is good enough, of what was measured. */
static void check_knee(void)
{
	struct stele_tuning tuning = {
		.point_count = 9,
		.points = {{4096, 1, 1, 100, 1, 1, false}, {4096, 2, 1, 194, 1, 1, false},
			   {4096, 4, 1, 200, 1, 1, false}, {65536, 1, 1, 100, 1, 1, false},
			   {65536, 2, 1, 200, 1, 1, true}, {65536, 4, 1, 150, 1, 1, false},
			   {0, 1, 1, 100, 1, 1, false},    {0, 2, 1, 193, 1, 1, false},
			   {0, 4, 1, 200, 1, 1, false}},
	};

	is_uint(2, stele_tuning_depth(&tuning, 4096), "97 %% of the best");
	is_uint(2, stele_tuning_depth(&tuning, 65536), "the best, where more is less");
	is_uint(4, stele_tuning_depth(&tuning, 0), "less is not enough");
	is_uint(0, stele_tuning_depth(&tuning, 16384), "a size that was not measured");
}

int main(void)
{
	plan_lazy();
	check_knee();
	check_memory();
	check_reads();
	check_stops();
	check_hurry();
	check_little();
	return done();
}
