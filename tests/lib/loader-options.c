/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader-options.c - a loader that cannot be is refused, and the log says why
 *
 * For each option and each part of a source: the first value that is too much, with its
 * error and message, next to the last one that is taken.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "lib/read/loader/loader.h"
#include "tests/fixture/loader.h"
#include "tests/tap.h"

#define COUNT 60u

static struct test_log said;

/* What opening returns; what it says is kept. */
static int try(const struct stele_loader_source *sources, uint32_t count,
	       struct stele_loader_opts opts)
{
	struct stele_loader *loader = NULL;
	int err;

	test_log_init(&said);
	opts.size = sizeof(opts);
	opts.log = said.log.fn;
	opts.log_user = said.log.user;
	err = stele_loader_open(sources, count, &opts, &loader);
	stele_loader_close(loader);
	return err;
}

/* Refused, with this line and no other. */
static void is_refused(int error, int seen, const char *line)
{
	char wanted[256];

	snprintf(wanted, sizeof(wanted), "%d %s\n", STELE_LOG_ERROR, line);
	is_int(error, seen, "refused: %s", line);
	is_string(wanted, said.text, "the log says so");
}

static void test_limits(const struct stele_loader_source *source)
{
#define TRY(name, last, text)                                                  \
	do {                                                                   \
		is_int(0,                                                      \
		       try(source, 1,                                          \
			   (struct stele_loader_opts){.name = (last)}),        \
		       #name ": the last that is taken");                      \
		is_refused(-EINVAL,                                            \
			   try(source, 1,                                      \
			       (struct stele_loader_opts){.name = (last) +     \
								  1}),         \
			   "option '" #name "' is " text);          \
	} while (0)

	TRY(rank, 0, "1: must be at most 0");
	TRY(batch_size, 1048576, "1048577: must be at most 1048576");
	TRY(last, 1, "2: must be at most 1");
	TRY(on_error, 2, "3: must be at most 2");
	TRY(shuffle, 2, "3: must be at most 2");
	TRY(epoch_size, UINT64_C(1) << 62,
	    "4611686018427387905: must be at most 4611686018427387904");
	TRY(depth, 4096, "4097: must be at most 4096");
	TRY(verify, 3, "4: must be at most 3");
	TRY(as_completed, 1, "2: must be at most 1");
	TRY(threads, 256, "257: must be at most 256");
#undef TRY
	is_refused(-EINVAL,
		   try(source, 1,
		       (struct stele_loader_opts){.rank = 4, .world = 4}),
		   "option 'rank' is 4: must be at most 3");
	is_int(0,
	       try(source, 1,
		   (struct stele_loader_opts){.block_size = 1 << 23}),
	       "the largest window");
	is_refused(-EINVAL,
		   try(source, 1,
		       (struct stele_loader_opts){.block_size = (1 << 23) + 1}),
		   "'block_count' 256 x 'block_size' 8388609 is too large a "
		   "window: it may have 2147483648 samples");
}

static void test_mixtures(const struct stele_loader_source *source)
{
	static struct stele_loader_source many[STELE_LOADER_SOURCES_MAX + 1];
	const struct stele_loader_opts none = {0}, two = {.epoch_size = 2};
	const struct {
		double weight;
		const char *text;
	} odd[] = {{-1, "-1"}, {INFINITY, "inf"}, {NAN, "nan"}};

	is_refused(-EINVAL, try(NULL, 1, none),
		   "a loader has 1 to 256 sources, not 0");
	is_refused(-EINVAL, try(source, 0, none),
		   "a loader has 1 to 256 sources, not 0");
	is_refused(-EINVAL, try(many, STELE_LOADER_SOURCES_MAX + 1, none),
		   "a loader has 1 to 256 sources, not 257");
	many[0] = many[1] = many[2] = *source;
	is_int(0, try(many, 2, two), "a draw for each");
	is_refused(-EINVAL, try(many, 3, two),
		   "option 'epoch_size' is 2, less than the 3 "
		   "sources");
	for (unsigned int i = 0; i < 3; i++) {
		char line[64];

		snprintf(line, sizeof(line), "source 1: 'weight' is %s",
			 odd[i].text);
		many[1].weight = odd[i].weight;
		is_refused(-EINVAL, try(many, 3, none), line);
	}
	for (unsigned int i = 0; i < 2; i++) {
		many[1] = *source;
		many[1].reserved[i] = 1;
		is_refused(-EINVAL, try(many, 3, none),
			   "source 1: reserved bytes are not zero");
	}
	many[1] = *source;
	many[2].ds = NULL;
	is_refused(-EINVAL, try(many, 3, none), "source 2: no dataset");
}

static int try_subset(const struct stele_loader_source *source,
		      struct stele_loader_source subset)
{
	subset.ds = source->ds;
	return try(&subset, 1, (struct stele_loader_opts){0});
}

#define SUBSET(...)                                                            \
	try_subset(source, (struct stele_loader_source){__VA_ARGS__})

static void test_subsets(const struct stele_loader_source *source)
{
	const uint64_t ids[] = {30, 2, 59, 7, 2, COUNT};

	is_int(0, SUBSET(.first = COUNT - 1), "the last sample");
	is_refused(-EINVAL, SUBSET(.first = COUNT), "source 0: no samples");
	is_refused(-ERANGE, SUBSET(.first = COUNT + 1),
		   "source 0: 'first' 61 and 'count' 0 of 60 samples");
	is_refused(-ERANGE, SUBSET(.first = 1, .count = COUNT),
		   "source 0: 'first' 1 and 'count' 60 of 60 samples");
	is_refused(-ERANGE, SUBSET(.first = COUNT, .count = 1),
		   "source 0: 'first' 60 and 'count' 1 of 60 samples");
	is_refused(-ERANGE, SUBSET(.count = UINT64_MAX),
		   "source 0: 'first' 0 and 'count' 18446744073709551615 of 60 "
		   "samples");
	is_refused(-EINVAL, SUBSET(.ids = ids, .id_count = 4, .first = 1),
		   "source 0: both a list of ids and a range");
	is_refused(-EINVAL, SUBSET(.ids = ids, .id_count = 4, .count = 1),
		   "source 0: both a list of ids and a range");
	is_refused(-EINVAL, SUBSET(.ids = ids), "source 0: no samples");
	is_refused(-EINVAL, SUBSET(.id_count = UINT64_MAX / 4),
		   "source 0: 'id_count' without 'ids'");
	is_int(0, SUBSET(.ids = ids, .id_count = 4), "a list");
	is_refused(-ENOTUNIQ, SUBSET(.ids = ids, .id_count = 5),
		   "source 0: id 2 twice");
	is_refused(-ERANGE, SUBSET(.ids = ids, .id_count = 6),
		   "source 0: id 60 of 60 samples");
}

/* So large that twice its slots are no number: not less than what was asked for, then. */
static void test_huge(struct test_dataset *t)
{
	struct stele_loader_source source = {.ds = t->ds, .count = 5};
	struct stele_segment *segment = &t->ds->snapshot.segments[0];
	const uint64_t kept = segment->descriptor.slots_size;
	const uint64_t asked = UINT64_C(256) << 20;
	struct stele_loader *loader;

	segment->descriptor.slots_size = UINT64_C(1) << 63;
	loader = test_loader(&source, 1,
			     (struct stele_loader_opts){.prefetch_size = asked});
	ok(loader->lanes[0].arena_size > asked,
	   "an arena as large as the prefetch (%ju)",
	   (uintmax_t)loader->lanes[0].arena_size);
	stele_loader_close(loader);
	segment->descriptor.slots_size = kept;
}

int main(void)
{
	struct test_plan plan = {.samples = COUNT, .size_max = 900};
	struct stele_loader_source source = {0};
	struct test_dataset t;

	plan_lazy();
	test_dataset_open(&t, &plan);
	source.ds = t.ds;
	test_limits(&source);
	test_mixtures(&source);
	test_subsets(&source);
	test_huge(&t);
	test_dataset_close(&t);
	return done();
}
