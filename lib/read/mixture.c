/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixture.c - see mixture.h
 *
 * Shares are integers from the start (a weight is 48 bits of the largest one), so that
 * every machine gets the same schedule.
 */
#include <errno.h>
#include <math.h>

#include "format/checked.h"
#include "lib/read/mixture.h"

#define WEIGHT_SCALE 0x1p48

/* Each source's share as an integer, and their sum. */
static int weigh(const uint64_t *samples, const double *weights, uint32_t count,
		 uint64_t *shares, uint64_t *sum)
{
	double largest = 0;
	bool given = false;

	for (uint32_t i = 0; i < count; i++) {
		double weight = weights[i] ? weights[i] : (double)samples[i];

		if (!isfinite(weight) || weight < 0)
			return -EINVAL;
		if (weight > largest)
			largest = weight;
		given |= weights[i] != 0;
	}
	*sum = 0;
	for (uint32_t i = 0; i < count; i++) {
		double weight = weights[i] ? weights[i] : (double)samples[i];

		shares[i] = given ? (uint64_t)(weight / largest * WEIGHT_SCALE)
				  : samples[i];
		if (!checked_add(*sum, shares[i], sum) ||
		    *sum > STELE_PERMUTATION_COUNT_MAX)
			return -EINVAL;
	}
	return 0;
}

static uint32_t largest_of(const uint64_t *values, uint32_t count)
{
	uint32_t largest = 0;

	for (uint32_t i = 1; i < count; i++)
		if (values[i] > values[largest])
			largest = i;
	return largest;
}

/* Draws of each source: largest remainder, then one at least. */
static void apportion(uint64_t size, const uint64_t *shares, uint64_t sum,
		      uint32_t count, uint64_t *draws)
{
	uint64_t remainders[STELE_LOADER_SOURCES_MAX];
	uint64_t rest = size;

	for (uint32_t i = 0; i < count; i++) {
		unsigned __int128 product = (unsigned __int128)size * shares[i];

		draws[i] = (uint64_t)(product / sum);
		remainders[i] = (uint64_t)(product % sum);
		rest -= draws[i];
	}
	while (rest-- > 0) {
		uint32_t i = largest_of(remainders, count);

		remainders[i] = 0;
		draws[i]++;
	}
	for (uint32_t i = 0; i < count; i++)
		if (!draws[i]) {
			draws[largest_of(draws, count)]--;
			draws[i]++;
		}
}

int stele_mixture_init(struct stele_mixture *m, const uint64_t *samples,
		       const double *weights, uint32_t count, uint64_t size)
{
	uint64_t shares[STELE_LOADER_SOURCES_MAX];
	uint64_t draws[STELE_LOADER_SOURCES_MAX];
	uint64_t sum, all = 0;
	int err;

	*m = (struct stele_mixture){.count = count};
	if (!count || count > STELE_LOADER_SOURCES_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++)
		if (!samples[i] || !checked_add(all, samples[i], &all))
			return -EINVAL;
	m->size = size ? size : all;
	if (m->size < count || m->size > STELE_PERMUTATION_COUNT_MAX)
		return -EINVAL;
	err = weigh(samples, weights, count, shares, &sum);
	if (err)
		return err;
	apportion(m->size, shares, sum, count, draws);
	for (uint32_t i = 0; i < count; i++)
		m->draws[i + 1] = m->draws[i] + draws[i];
	return 0;
}

/* Within its period a position changes places with another. */
static uint64_t permute(struct stele_mixture *m, uint64_t seed, uint64_t epoch,
			uint64_t position)
{
	uint64_t period = position / STELE_MIXTURE_PERIOD;
	uint64_t first = period * STELE_MIXTURE_PERIOD;
	uint64_t length = m->size - first;

	if (length > STELE_MIXTURE_PERIOD)
		length = STELE_MIXTURE_PERIOD;
	if (!m->ready || m->seed != seed || m->epoch != epoch ||
	    m->period != period) {
		stele_permutation_init(&m->permutation, length, seed, epoch,
				       STELE_PURPOSE_MIXTURE + period);
		m->seed = seed;
		m->epoch = epoch;
		m->period = period;
		m->ready = true;
	}
	return first + stele_permutation_at(&m->permutation, position - first);
}

/* How many of the first `position` draws of `all` a part of them has. */
static uint64_t share_of(uint64_t position, uint64_t part, uint64_t all)
{
	return (uint64_t)((unsigned __int128)position * part / all);
}

void stele_mixture_at(struct stele_mixture *m, uint64_t seed, uint64_t epoch,
		      uint64_t position, uint32_t *source, uint64_t *draw)
{
	uint32_t low = 0, high = m->count;

	if (m->count > 1)
		position = permute(m, seed, epoch, position);
	/* Halve the sources; each half has its draws as evenly as can be. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		uint64_t all = m->draws[high] - m->draws[low];
		uint64_t left = m->draws[middle] - m->draws[low];
		uint64_t before = share_of(position, left, all);

		if (share_of(position + 1, left, all) > before) {
			position = before;
			high = middle;
		} else {
			position -= before;
			low = middle;
		}
	}
	*source = low;
	*draw = position;
}
