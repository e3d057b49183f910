/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.c - quantiles are those of the sorted values, to 0.1 %
 */
#include <math.h>
#include <stdlib.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#define COUNT	  20000u
#define VALUE_MAX (UINT64_C(1) << 40)

/* Every quantile of one value is its bucket's end: how far is that? */
static void test_buckets(void)
{
	unsigned int wrong = 0, checked = 0;
	uint64_t value = 1;

	while (value <= VALUE_MAX) {
		struct stele_histogram *h = stele_histogram_new();
		uint64_t seen;

		stele_histogram_record(h, value);
		/* Else the largest seen would be told instead of the bucket. */
		stele_histogram_record(h, VALUE_MAX);
		seen = stele_histogram_quantile(h, 0.5);
		wrong += seen < value || (double)(seen - value) >
						 (double)value / 1000;
		wrong += value < 2048 && seen != value;
		stele_histogram_free(h);
		checked++;
		value += value < 2100 ? 1 : value / 3 + value % 7;
	}
	is_uint(0, wrong, "%u values: never too small, 0.1 %% too large at most",
		checked);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Over nine orders of magnitude, evenly. */
static uint64_t random_value(uint64_t *state)
{
	unsigned int bits = 1 + (unsigned int)(test_random(state) % 31);

	return 1 + test_random(state) % (UINT64_C(1) << bits);
}

static void is_sorted(const struct stele_histogram *h, const uint64_t *sorted,
		      uint64_t count, const char *what)
{
	static const double quantiles[] = {0,	0.001, 0.1,  0.25, 0.5,
					   0.9, 0.99,  0.999, 1};
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < 9; i++) {
		uint64_t rank = (uint64_t)ceil(quantiles[i] * (double)count);
		uint64_t wanted = sorted[rank ? rank - 1 : 0];
		uint64_t seen = stele_histogram_quantile(h, quantiles[i]);

		if (seen >= wanted &&
		    (double)(seen - wanted) <= (double)wanted / 1000)
			continue;
		diag("quantile %g: wanted %ju, seen %ju", quantiles[i],
		     (uintmax_t)wanted, (uintmax_t)seen);
		wrong++;
	}
	is_uint(0, wrong, "%s: quantiles", what);
	is_uint(count, stele_histogram_count(h), "%s: count", what);
	is_uint(sorted[count - 1], stele_histogram_quantile(h, 1),
		"%s: the largest, exactly", what);
}

static void test_quantiles(void)
{
	struct stele_histogram *parts[2] = {stele_histogram_new(),
					    stele_histogram_new()};
	static uint64_t values[COUNT];
	uint64_t state = 5;
	double sum = 0, mean;

	for (unsigned int i = 0; i < COUNT; i++) {
		values[i] = random_value(&state);
		sum += (double)values[i];
		stele_histogram_record(parts[i >= COUNT / 4], values[i]);
	}
	qsort(values, COUNT / 4, sizeof(*values), by_value);
	is_sorted(parts[0], values, COUNT / 4, "a quarter");
	stele_histogram_add(parts[0], parts[1]);
	qsort(values, COUNT, sizeof(*values), by_value);
	is_sorted(parts[0], values, COUNT, "with the rest added");
	mean = stele_histogram_mean(parts[0]) / (sum / COUNT);
	ok(mean > 0.999999 && mean < 1.000001, "mean");
	stele_histogram_free(parts[0]);
	stele_histogram_free(parts[1]);
}

static void test_ends(void)
{
	struct stele_histogram *h = stele_histogram_new();

	is_uint(0, stele_histogram_quantile(h, 0.5), "empty");
	ok(stele_histogram_mean(h) == 0, "empty: mean");
	stele_histogram_record(h, 0);
	is_uint(0, stele_histogram_quantile(h, 0.99), "nothing at all");
	stele_histogram_record(h, UINT64_MAX);
	is_uint(VALUE_MAX, stele_histogram_quantile(h, 1), "too large");
	is_uint(0, stele_histogram_quantile(h, -1), "below all quantiles");
	is_uint(VALUE_MAX, stele_histogram_quantile(h, 7), "above them");
	stele_histogram_free(h);
	stele_histogram_free(NULL);
}

int main(void)
{
	plan_lazy();
	test_buckets();
	test_quantiles();
	test_ends();
	return done();
}
