/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shuffle.c - orders for programs: defaults, limits, and the ids of the format's page
 *
 * What an order is, tests/format/{epoch,permutation}*.c tell.
 */
#include <errno.h>

#include "lib/stele.h"
#include "tests/tap.h"

static void count_line(void *user, enum stele_log_level level, const char *line)
{
	unsigned int *count = user;

	*count += level == STELE_LOG_ERROR && *line;
}

/* Whatever is refused, one line of the log says why. */
static void test_reasons(void)
{
	static const struct {
		uint64_t count;
		struct stele_shuffle_opts opts;
	} cases[] = {
		{0, {.kind = 0}},
		{UINT64_MAX, {.kind = 0}},
		{9, {.kind = 3}},
		{9, {.kind = 1, .block_size = UINT64_MAX}},
	};
	struct {
		struct stele_shuffle_opts opts;
		uint64_t later;
	} newer = {.later = 1};
	struct stele_shuffle *shuffle;

	for (size_t i = 0; i <= sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int lines = 0;
		bool last = i == sizeof(cases) / sizeof(cases[0]);
		int err;

		if (!last)
			newer.opts = cases[i].opts;
		newer.opts.size = last ? sizeof(newer) : sizeof(newer.opts);
		newer.opts.log = count_line;
		newer.opts.log_user = &lines;
		err = stele_shuffle_open(last ? 9 : cases[i].count, &newer.opts,
					 &shuffle);
		is_int(last ? -E2BIG : -EINVAL, err, "refusal %zu", i);
		is_uint(1, lines, "in one line");
	}
}

static int opens(uint64_t count, const struct stele_shuffle_opts *opts)
{
	struct stele_shuffle *shuffle = NULL;
	int err = stele_shuffle_open(count, opts, &shuffle);

	stele_shuffle_close(shuffle);
	return err;
}

static void test_refusals(void)
{
	const uint64_t most = UINT64_C(1) << 62;
	struct {
		struct stele_shuffle_opts opts;
		uint64_t later;
	} newer = {.opts.size = sizeof(newer)};

	is_int(-EINVAL, opens(0, NULL), "cannot shuffle zero samples");
	is_int(-EINVAL, opens(most + 1, NULL), "nor have more than 2^62");
	is_int(0, opens(most, NULL), "as many have one");
	is_int(0, opens(1, NULL), "so has one sample");
	is_int(-EINVAL, opens(9, &STELE_OPTS(stele_shuffle_opts, .kind = 3)),
	       "a kind that there is not");
	is_int(-EINVAL,
	       opens(9, &STELE_OPTS(stele_shuffle_opts,
				    .kind = STELE_SHUFFLE_WINDOWED,
				    .block_size = (1 << 16) + 1,
				    .block_count = 1 << 15)),
	       "a window of more than 2^31 samples");
	is_int(-EINVAL,
	       opens(9, &STELE_OPTS(stele_shuffle_opts,
				    .kind = STELE_SHUFFLE_WINDOWED,
				    .block_size = UINT64_MAX,
				    .block_count = UINT32_MAX)),
	       "one whose size overflows");
	is_int(0,
	       opens(9, &STELE_OPTS(stele_shuffle_opts,
				    .kind = STELE_SHUFFLE_WINDOWED,
				    .block_size = 1 << 16,
				    .block_count = 1 << 15)),
	       "a window of 2^31 samples");
	is_int(0, opens(9, &newer.opts), "longer options that say nothing");
	newer.later = 1;
	is_int(-E2BIG, opens(9, &newer.opts), "and that do");
	stele_shuffle_close(NULL);
}

/* Each position and id there and back, and what lies behind the last one. */
static void check_kind(uint32_t kind, uint64_t count, const char *name)
{
	struct stele_shuffle *shuffle;
	uint64_t wrong = 0;

	if (!is_int(0,
		    stele_shuffle_open(count,
				       &STELE_OPTS(stele_shuffle_opts,
						   .kind = kind, .seed = 3),
				       &shuffle),
		    "%s: opens", name))
		return;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = stele_shuffle_at(shuffle, i);

		wrong +=
			id >= count || stele_shuffle_position(shuffle, id) != i;
	}
	is_uint(0, wrong, "%s: there and back", name);
	is_uint(UINT64_MAX, stele_shuffle_at(shuffle, count),
		"%s: no id behind the last position", name);
	is_uint(UINT64_MAX, stele_shuffle_position(shuffle, count),
		"%s: no position of what is no id", name);
	is_uint(UINT64_MAX, stele_shuffle_at(shuffle, UINT64_MAX),
		"%s: nor far behind it", name);
	stele_shuffle_close(shuffle);
}

static uint64_t first(uint64_t count, const struct stele_shuffle_opts *opts)
{
	struct stele_shuffle *shuffle;
	uint64_t id;

	if (stele_shuffle_open(count, opts, &shuffle))
		return UINT64_MAX;
	id = stele_shuffle_at(shuffle, 0);
	stele_shuffle_close(shuffle);
	return id;
}

/* From stele-format(5): what zero means is a promise as well. */
static void test_page(void)
{
	is_uint(428, first(1000, NULL), "by default: full, seed 0, epoch 0");
	is_uint(972741,
		first(1281167,
		      &STELE_OPTS(stele_shuffle_opts, .seed = 42, .epoch = 7)),
		"seed and epoch are the page's, the purpose is 0");
	is_uint(631830,
		first(1281167, &STELE_OPTS(stele_shuffle_opts,
					   .kind = STELE_SHUFFLE_WINDOWED,
					   .seed = 42, .epoch = 7)),
		"windowed by default: 256 blocks of 64");
	is_uint(2695,
		first(5000, &STELE_OPTS(stele_shuffle_opts,
					.kind = STELE_SHUFFLE_WINDOWED,
					.block_count = 16)),
		"a block count of 16");
	is_uint(0,
		first(5000, &STELE_OPTS(stele_shuffle_opts,
					.kind = STELE_SHUFFLE_NONE, .seed = 9)),
		"none: from id 0 on");
}

int main(void)
{
	plan_lazy();
	test_refusals();
	test_reasons();
	check_kind(STELE_SHUFFLE_FULL, 1000, "full");
	check_kind(STELE_SHUFFLE_WINDOWED, 40000, "windowed");
	check_kind(STELE_SHUFFLE_NONE, 1000, "none");
	test_page();
	return done();
}
