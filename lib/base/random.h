/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - cheap random numbers for probing and jitter
 *
 * xorshift64* (Marsaglia, Vigna): the same sequence for the same state, which is
 * never 0. Not for identifiers, which come from getrandom(2), and not for orders of
 * samples, which the format fixes (format/permutation.h).
 */
#ifndef STELE_BASE_RANDOM_H
#define STELE_BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t stele_random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

#endif
