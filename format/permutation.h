/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.h - position to id, and back: a keyed bijection of 0 ... count-1
 *
 * The frozen, versioned spec of stele-format(5), "Permutation"; it makes
 * an order reproducible on any machine for all time. Constant memory for any
 * count; two permutations with different keys are unrelated.
 */
#ifndef STELE_FORMAT_PERMUTATION_H
#define STELE_FORMAT_PERMUTATION_H

#include <stdint.h>

#define STELE_PERMUTATION_VERSION   1u /* of epochs, too */
#define STELE_PERMUTATION_COUNT_MAX (UINT64_C(1) << 62)
/*
 * About twice as many as needed until no test can tell the result from chance: the
 * narrower the network, the more.
 */
#define STELE_PERMUTATION_TINY         16u /* counts up to this */
#define STELE_PERMUTATION_SMALL        256u
#define STELE_PERMUTATION_ROUNDS_TINY  32u
#define STELE_PERMUTATION_ROUNDS_SMALL 20u
#define STELE_PERMUTATION_ROUNDS_LARGE 12u

/* What a seed and epoch are used for: each use has its own stream. */
enum stele_permutation_purpose {
	STELE_PURPOSE_SAMPLES = 0, /* of a dataset; i: of source i of a mixture */
	/* Parts of a windowed order: their seed is its stream. */
	STELE_PURPOSE_ROTATION = 1,
	STELE_PURPOSE_BLOCKS = 2,
	STELE_PURPOSE_WINDOW = 3,
};
#define STELE_PURPOSE_MIXTURE (UINT64_C(1) << 63) /* and above: of its draws */

struct stele_permutation {
	uint64_t count;
	uint64_t rows; /* of the network's grid; it has 2^column_bits columns */
	uint32_t column_bits;
	uint32_t rounds; /* even */
	uint64_t keys[STELE_PERMUTATION_ROUNDS_SMALL];
	/* For a tiny one, in place of keys: the whole permutation, four bits each. */
	uint64_t ids, positions;
};

/* Maps 0 ... 2^64-1 to 0 ... limit-1, in proportion. */
static inline uint64_t stele_scale(uint64_t x, uint64_t limit)
{
	return (uint64_t)(((unsigned __int128)x * limit) >> 64);
}

/* A random-looking number for each seed, epoch and purpose. */
uint64_t stele_permutation_stream(uint64_t seed, uint64_t epoch,
				  uint64_t purpose);

/*
 * `count` from 1 to STELE_PERMUTATION_COUNT_MAX. `purpose` separates different
 * uses of a seed and epoch (enum stele_permutation_purpose).
 */
void stele_permutation_init(struct stele_permutation *permutation,
			    uint64_t count, uint64_t seed, uint64_t epoch,
			    uint64_t purpose);
/* `position` < count. Return: id < count. */
uint64_t stele_permutation_at(const struct stele_permutation *permutation,
			      uint64_t position);
/* The position that has this id. */
uint64_t stele_permutation_position(const struct stele_permutation *permutation,
				    uint64_t id);

#endif
