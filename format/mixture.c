/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixture.c - see mixture.h
 *
 * All arithmetic is on integers, including that on weights: a share is 48 bits of the ratio
 * to the largest weight, rounded down from the exact quotient, so that every machine gets
 * the same schedule.
 */
#include "format/mixture.h"

#include <string.h>

#define SHARE_BITS 48u

/* A binary64: sign, exponent, fraction. */
#define FRACTION_BITS 52u
#define FRACTION      (((uint64_t)1 << FRACTION_BITS) - 1)
#define EXPONENT_BIAS 1075
#define ENDLESS       0x7ffu

/* significand * 2^exponent; the significand has its highest bit set. */
struct number {
	uint64_t significand;
	int exponent;
};

static uint64_t bits_of(double weight)
{
	uint64_t bits;

	_Static_assert(sizeof(bits) == sizeof(weight), "a binary64");
	memcpy(&bits, &weight, sizeof(bits));
	return bits;
}

bool stele_mixture_is_weight(double weight)
{
	/* Zero has a sign, too. */
	return weight == 0 || bits_of(weight) >> FRACTION_BITS < ENDLESS;
}

static struct number number_of(uint64_t significand, int exponent)
{
	int shift = __builtin_clzll(significand);

	return (struct number){significand << shift, exponent - shift};
}

static struct number weight_of(uint64_t samples, double weight)
{
	uint64_t bits = bits_of(weight);
	int exponent = (int)(bits >> FRACTION_BITS);

	if (weight == 0)
		return number_of(samples, 0);
	if (!exponent)
		return number_of(bits, 1 - EXPONENT_BIAS);
	return number_of((bits & FRACTION) | (FRACTION + 1),
			 exponent - EXPONENT_BIAS);
}

static bool is_less(const struct number *a, const struct number *b)
{
	return a->exponent < b->exponent ||
	       (a->exponent == b->exponent && a->significand < b->significand);
}

static uint64_t share_of_largest(const struct number *weight,
				 const struct number *largest)
{
	int shift = largest->exponent - weight->exponent;
	unsigned __int128 scaled = (unsigned __int128)weight->significand
				   << SHARE_BITS;

	return shift < 64 ? (uint64_t)(scaled / largest->significand) >> shift
			  : 0;
}

/* Each source's share as an integer. Return: their sum. */
static uint64_t weigh(const uint64_t *samples, const double *weights,
		      uint32_t count, uint64_t *shares)
{
	struct number largest = weight_of(samples[0], weights[0]);
	bool given = false;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct number weight = weight_of(samples[i], weights[i]);

		if (is_less(&largest, &weight))
			largest = weight;
		given |= weights[i] != 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct number weight = weight_of(samples[i], weights[i]);

		shares[i] = given ? share_of_largest(&weight, &largest)
				  : samples[i];
		sum += shares[i];
	}
	return sum;
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
	uint64_t remainders[STELE_MIXTURE_SOURCES_MAX];
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

void stele_mixture_init(struct stele_mixture *m, const uint64_t *samples,
			const double *weights, uint32_t count, uint64_t size)
{
	uint64_t shares[STELE_MIXTURE_SOURCES_MAX];
	uint64_t draws[STELE_MIXTURE_SOURCES_MAX];
	uint64_t sum = weigh(samples, weights, count, shares);

	*m = (struct stele_mixture){.size = size, .count = count};
	apportion(size, shares, sum, count, draws);
	for (uint32_t i = 0; i < count; i++)
		m->draws[i + 1] = m->draws[i] + draws[i];
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

void stele_mixture_pass(const struct stele_mixture *m, uint32_t source,
			uint64_t samples, uint64_t epoch, uint64_t draw,
			uint64_t *pass, uint64_t *position)
{
	unsigned __int128 all =
		(unsigned __int128)epoch * stele_mixture_draws(m, source) +
		draw;

	*pass = (uint64_t)(all / samples);
	*position = (uint64_t)(all % samples);
}
