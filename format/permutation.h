/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.h - position to id, and back: a keyed bijection of 0 ... count-1
 *
 * The frozen, versioned spec of stele-format(5), "Permutation"; it is what makes
 * an order reproducible on any machine for all time. No memory that grows
 * with count; two permutations of different key are unrelated.
 */
#ifndef STELE_FORMAT_PERMUTATION_H
#define STELE_FORMAT_PERMUTATION_H

#include <stdint.h>

#define STELE_PERMUTATION_VERSION 1u
#define STELE_PERMUTATION_ROUNDS  24u
#define STELE_PERMUTATION_COUNT_MAX (UINT64_C(1) << 62)

struct stele_permutation {
	uint64_t count;
	uint32_t left_bits, right_bits; /* of the network's two halves */
	uint64_t keys[STELE_PERMUTATION_ROUNDS];
};

/*
 * `count` from 1 to STELE_PERMUTATION_COUNT_MAX. `purpose` keeps apart what one
 * seed and epoch is used for (enum stele_permutation_purpose, or a dataset's number
 * in a mixture above it).
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
