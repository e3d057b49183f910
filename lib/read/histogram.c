/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.c - latencies in log-linear buckets, after Gil Tene's HdrHistogram
 *
 * 1024 buckets to a doubling, so that a value is known to 0.1 %; values below 2048
 * have one each. Recording is a shift and an increment.
 */
#include <math.h>
#include <stdlib.h>

#include "lib/stele.h"

#define LINEAR_BITS 10u /* buckets to a doubling, as a power of two */
#define VALUE_BITS  40u /* of the largest value told apart */
#define VALUE_MAX   (UINT64_C(1) << VALUE_BITS)
#define BUCKETS	    ((VALUE_BITS - LINEAR_BITS + 2) << LINEAR_BITS)

struct stele_histogram {
	uint64_t count, sum, max;
	uint64_t buckets[BUCKETS];
};

struct stele_histogram *stele_histogram_new(void)
{
	return calloc(1, sizeof(struct stele_histogram));
}

void stele_histogram_free(struct stele_histogram *h)
{
	free(h);
}

static uint32_t bucket_of(uint64_t value)
{
	uint32_t log, shift;

	if (value < UINT64_C(2) << LINEAR_BITS)
		return (uint32_t)value;
	log = 63 - (uint32_t)__builtin_clzll(value);
	shift = log - LINEAR_BITS;
	return (shift << LINEAR_BITS) + (uint32_t)(value >> shift);
}

/* The largest value of a bucket. */
static uint64_t bucket_end(uint32_t bucket)
{
	uint32_t shift = bucket >> LINEAR_BITS;

	if (shift < 2)
		return bucket;
	shift--;
	return (((uint64_t)bucket - (shift << LINEAR_BITS) + 1) << shift) - 1;
}

void stele_histogram_record(struct stele_histogram *h, uint64_t ns)
{
	if (ns > VALUE_MAX)
		ns = VALUE_MAX;
	h->buckets[bucket_of(ns)]++;
	h->count++;
	h->sum += ns;
	if (ns > h->max)
		h->max = ns;
}

void stele_histogram_add(struct stele_histogram *h,
			 const struct stele_histogram *from)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		h->buckets[i] += from->buckets[i];
	h->count += from->count;
	h->sum += from->sum;
	if (from->max > h->max)
		h->max = from->max;
}

uint64_t stele_histogram_count(const struct stele_histogram *h)
{
	return h->count;
}

uint64_t stele_histogram_quantile(const struct stele_histogram *h,
				  double quantile)
{
	uint64_t wanted, seen = 0;

	if (!(quantile > 0))
		quantile = 0;
	wanted = quantile >= 1 ? h->count
			       : (uint64_t)ceil(quantile * (double)h->count);
	if (!wanted)
		wanted = 1;
	for (uint32_t i = 0; i < BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen >= wanted && h->buckets[i])
			return bucket_end(i) < h->max ? bucket_end(i) : h->max;
	}
	return h->max;
}

double stele_histogram_mean(const struct stele_histogram *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}
