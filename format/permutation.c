/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.c - position to id, and back
 *
 * A Feistel network on a grid of rows x 2^column_bits places, as square as it can be:
 * a round adds to the row what its key makes of the column, the next one to the
 * column what its own key makes of the row. The grid has less than one row of columns
 * too many, so that a result of count or more, which goes through the network again
 * (it walks the cycle), is rare: the work hardly varies, and has no branch that a
 * processor mispredicts.
 */
#include "format/permutation.h"

#define GAMMA      UINT64_C(0x9e3779b97f4a7c15)
#define MULTIPLIER UINT64_C(0xbf58476d1ce4e5b9)
#define FINISHER   UINT64_C(0x94d049bb133111eb)

/* The finalizer of SplitMix64. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * MULTIPLIER;
	x = (x ^ (x >> 27)) * FINISHER;
	return x ^ (x >> 31);
}

/* Only the high bits are good: they are all that is used. */
static inline uint64_t scramble(uint64_t half, uint64_t key)
{
	uint64_t x = (half ^ key) * MULTIPLIER;

	return (x ^ (x >> 32)) * FINISHER;
}

uint64_t stele_permutation_stream(uint64_t seed, uint64_t epoch,
				  uint64_t purpose)
{
	uint64_t x = mix(seed + GAMMA);

	x = mix((x ^ epoch) + GAMMA);
	return mix((x ^ purpose) + GAMMA);
}

static uint32_t rounds_of(uint64_t count)
{
	if (count <= STELE_PERMUTATION_TINY)
		return STELE_PERMUTATION_ROUNDS_TINY;
	if (count <= STELE_PERMUTATION_SMALL)
		return STELE_PERMUTATION_ROUNDS_SMALL;
	return STELE_PERMUTATION_ROUNDS_LARGE;
}

void stele_permutation_init(struct stele_permutation *p, uint64_t count,
			    uint64_t seed, uint64_t epoch, uint64_t purpose)
{
	uint64_t x = stele_permutation_stream(seed, epoch, purpose);
	uint32_t bits = 0;

	while (bits < 64 && (count - 1) >> bits)
		bits++;
	p->count = count;
	p->column_bits = bits < 4 ? 1 : bits / 2;
	p->rows = ((count - 1) >> p->column_bits) + 1;
	p->rounds = rounds_of(count);
	x = mix((x ^ count) + GAMMA);
	for (uint32_t i = 0; i < p->rounds; i++)
		p->keys[i] = mix(x += GAMMA);
}

uint64_t stele_permutation_at(const struct stele_permutation *p,
			      uint64_t position)
{
	const uint64_t mask = (UINT64_C(1) << p->column_bits) - 1;
	const uint32_t shift = 64 - p->column_bits;
	uint64_t x = position;

	do {
		uint64_t row = x >> p->column_bits, column = x & mask;

		for (uint32_t i = 0; i < p->rounds; i += 2) {
			row += stele_scale(scramble(column, p->keys[i]),
					   p->rows);
			row -= row >= p->rows ? p->rows : 0;
			column += scramble(row, p->keys[i + 1]) >> shift;
			column &= mask;
		}
		x = row << p->column_bits | column;
	} while (x >= p->count);
	return x;
}

uint64_t stele_permutation_position(const struct stele_permutation *p,
				    uint64_t id)
{
	const uint64_t mask = (UINT64_C(1) << p->column_bits) - 1;
	const uint32_t shift = 64 - p->column_bits;
	uint64_t x = id;

	do {
		uint64_t row = x >> p->column_bits, column = x & mask;

		for (uint32_t i = p->rounds; i; i -= 2) {
			column -= scramble(row, p->keys[i - 1]) >> shift;
			column &= mask;
			row += p->rows -
			       stele_scale(scramble(column, p->keys[i - 2]),
					   p->rows);
			row -= row >= p->rows ? p->rows : 0;
		}
		x = row << p->column_bits | column;
	} while (x >= p->count);
	return x;
}
