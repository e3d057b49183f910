/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixture.c - each draw of a mixture has one position, and shares are kept
 *
 * Every position of an epoch belongs to one draw of one source, whatever the weights; the
 * shares hold on average and, roughly, in every stretch; all ranks see all sources. That
 * the schedule is that of the page is mixture-page.c's to tell.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/mixture.h"
#include "tests/tap.h"

/* Does each draw of each source come once? */
static void check_draws(const uint64_t *samples, const double *weights,
			uint32_t count, uint64_t size, const char *what)
{
	static struct stele_mixture m;
	uint64_t draw, wrong = 0;
	uint32_t source;
	uint8_t *seen;

	stele_mixture_init(&m, samples, weights, count, size);
	seen = calloc(m.size, 1);
	for (uint64_t p = 0; p < m.size; p++) {
		stele_mixture_at(&m, 3, 4, p, &source, &draw);
		if (source >= count || draw >= stele_mixture_draws(&m, source))
			wrong++;
		else
			wrong += seen[m.draws[source] + draw]++;
	}
	for (uint32_t i = 0; i < count; i++)
		wrong += !stele_mixture_draws(&m, i);
	is_uint(0, wrong, "%s: each draw once, of each source", what);
	free(seen);
}

static void test_schedules(void)
{
	static const uint64_t samples[] = {1000, 1, 70, 50000, 3, 3, 900};
	static const double none[7], even[7] = {1, 1, 1, 1, 1, 1, 1};
	static const double odd[7] = {1e-300, 1e300, 0.1, 0.2, 0.7, 1, 5};

	check_draws(samples, none, 7, 51977, "by size");
	check_draws(samples, even, 7, 51977, "even");
	check_draws(samples, odd, 7, 10007, "extreme");
	check_draws(samples, odd, 7, 7, "a draw for each");
	check_draws(samples, none, 1, 5000, "one source");
	check_draws(samples, none, 2, 4096, "one period");
	check_draws(samples, none, 2, 4097, "a period and a draw");
}

/* 3 : 1 : 1, and by size: exact over an epoch, near in each thousand. */
static void test_shares(void)
{
	static const uint64_t samples[] = {60000, 20000, 20000};
	static const double weights[] = {3, 1, 1}, none[3];
	static struct stele_mixture m;
	uint64_t draw, seen[3] = {0}, far = 0;
	uint32_t source;

	stele_mixture_init(&m, samples, none, 3, 100000);
	for (uint32_t i = 0; i < 3; i++)
		is_uint(samples[i], stele_mixture_draws(&m, i),
			"by size: source %u once an epoch", i);
	stele_mixture_init(&m, samples, weights, 3, 50000);
	is_uint(30000, stele_mixture_draws(&m, 0), "three fifths");
	is_uint(10000, stele_mixture_draws(&m, 2), "one fifth");
	for (uint64_t p = 0; p < 50000; p++) {
		stele_mixture_at(&m, 8, 1, p, &source, &draw);
		seen[source]++;
		if (p % 1000 == 999) {
			far += seen[0] < 500 || seen[0] > 700;
			memset(seen, 0, sizeof(seen));
		}
	}
	is_uint(0, far, "in every thousand, about");
	/* Ranks of two equal sources: each sees both. */
	stele_mixture_init(&m, samples, (double[]){1, 1}, 2, 8192);
	for (uint64_t p = 0; p < 8192; p += 2) {
		stele_mixture_at(&m, 8, 1, p, &source, &draw);
		seen[source]++;
	}
	ok(seen[0] > 1800 && seen[1] > 1800, "rank 0 of 2: %ju and %ju",
	   (uintmax_t)seen[0], (uintmax_t)seen[1]);
}

static void test_weights(void)
{
	ok(stele_mixture_is_weight(0) && stele_mixture_is_weight(-0.0) &&
		   stele_mixture_is_weight(5e-324) &&
		   stele_mixture_is_weight(0x1.fffffffffffffp1023),
	   "zeros, the smallest and the largest number are weights");
	ok(!stele_mixture_is_weight(NAN) && !stele_mixture_is_weight(-NAN),
	   "no number is none");
	ok(!stele_mixture_is_weight(INFINITY) &&
		   !stele_mixture_is_weight(-INFINITY),
	   "nor what is endless");
	ok(!stele_mixture_is_weight(-1) && !stele_mixture_is_weight(-5e-324),
	   "nor what is below zero");
}

int main(void)
{
	plan_lazy();
	test_weights();
	test_schedules();
	test_shares();
	return done();
}
