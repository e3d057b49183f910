/* SPDX-License-Identifier: Apache-2.0 */
/*
 * permutation.c - position to id, and back
 *
 * A Feistel network on a grid of rows x 2^column_bits places, as square as possible:
 * one round adds a keyed function of the column to the row, the next one a keyed
 * function of the row to the column. The grid exceeds count by less than one row of
 * columns, so results of count or more, which go through the network again
 * (cycle walking), are rare: the work hardly varies, and no branch is
 * mispredicted. Where that does not hold, for few samples and their many
 * rounds, all ids are computed at initialization.
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

/* ---- tiny ones: a number of 64 bits has 16 places of four bits, one for each position */

#define PLACE_BITS 4u
#define PLACES	   UINT64_C(0x1111111111111111) /* times x: x in each */

_Static_assert(STELE_PERMUTATION_TINY * PLACE_BITS == 64, "a place for each position");

static inline uint64_t place_get(uint64_t places, uint64_t place)
{
	return places >> PLACE_BITS * place & 0xf;
}

/*
 * A round, in all places at once: `half`, modulo n, moves on by what the key makes of the
 * other half. On a tiny grid both are below 4, so no place carries into the next.
 */
static uint64_t turn(uint64_t half, uint64_t other, uint64_t key, uint64_t n)
{
	const uint64_t odd = (other & PLACES) * 0xf;
	const uint64_t high = (other >> 1 & PLACES) * 0xf;
	uint64_t by[4], low, over;

	for (uint64_t i = 0; i < 4; i++)
		by[i] = stele_scale(scramble(i, key), n) * PLACES;
	low = by[0] ^ (odd & (by[0] ^ by[1]));
	half += low ^ (high & (low ^ by[2] ^ (odd & (by[2] ^ by[3]))));
	over = half + (8 - n) * PLACES; /* has bit 3 where half >= n */
	return half - (over >> 3 & PLACES) * n;
}

static void tabulate(struct stele_permutation *p, uint64_t x)
{
	const uint64_t columns = UINT64_C(1) << p->column_bits;
	uint64_t column = columns == 2 ? 0x1010101010101010 : 0x3210321032103210;
	uint64_t row = columns == 2 ? 0x33221100 : 0x3333222211110000;
	uint64_t grid;

	for (uint32_t i = 0; i < STELE_PERMUTATION_ROUNDS_TINY; i += 2) {
		row = turn(row, column, mix(x += GAMMA), p->rows);
		column = turn(column, row, mix(x += GAMMA), columns);
	}
	grid = row << p->column_bits | column;
	p->ids = p->positions = 0;
	for (uint64_t i = 0; i < p->count; i++) {
		uint64_t id = place_get(grid, i);

		while (id >= p->count)
			id = place_get(grid, id);
		p->ids |= id << PLACE_BITS * i;
		p->positions |= i << PLACE_BITS * id;
	}
}

/* ---- any ------------------------------------------------------------------------ */

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
	p->rounds = count <= STELE_PERMUTATION_SMALL
			    ? STELE_PERMUTATION_ROUNDS_SMALL
			    : STELE_PERMUTATION_ROUNDS_LARGE;
	x = mix((x ^ count) + GAMMA);
	if (count <= STELE_PERMUTATION_TINY) {
		tabulate(p, x);
		return;
	}
	for (uint32_t i = 0; i < p->rounds; i++)
		p->keys[i] = mix(x += GAMMA);
}

uint64_t stele_permutation_at(const struct stele_permutation *p,
			      uint64_t position)
{
	const uint64_t mask = (UINT64_C(1) << p->column_bits) - 1;
	const uint32_t shift = 64 - p->column_bits;
	uint64_t x = position;

	if (p->count <= STELE_PERMUTATION_TINY)
		return place_get(p->ids, position);
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

	if (p->count <= STELE_PERMUTATION_TINY)
		return place_get(p->positions, id);
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
