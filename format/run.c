/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - size classes, and the arithmetic from a number to its slot
 *
 * This is the whole hot path of the index. stele_run_find() compiles to a loop
 * of conditional moves: its length depends on the number of runs only, and no
 * branch depends on the number that is looked up.
 */
#include "format/run.h"

uint64_t stele_slot_size(uint64_t record_size, uint32_t granule)
{
	unsigned int log2 =
		63u - (unsigned int)__builtin_clzll(record_size | 1);
	uint64_t step = granule;

	if (log2 > STELE_CLASS_BITS) {
		uint64_t spacing = UINT64_C(1) << (log2 - STELE_CLASS_BITS);

		if (spacing > step)
			step = spacing;
	}
	return round_up(record_size, step);
}

const struct stele_run *stele_run_find(const struct stele_run *runs,
				       uint32_t count, uint64_t number)
{
	/* Invariant: runs->first <= number, and the answer is in `count`. */
	while (count > 1) {
		uint32_t half = count / 2;

		runs = runs[half].first <= number ? runs + half : runs;
		count -= half;
	}
	return runs;
}

uint64_t stele_run_slot(const struct stele_run *run, uint64_t number,
			uint64_t boundary)
{
	uint64_t index = number - run->first;
	uint64_t fitting;

	if (boundary < run->slot_size)
		return run->offset + index * run->slot_size;
	fitting = boundary / run->slot_size;
	return run->offset + index / fitting * boundary +
	       index % fitting * run->slot_size;
}

bool stele_run_end(const struct stele_run *run, uint64_t count,
		   uint64_t boundary, uint64_t *end)
{
	uint64_t last = count - 1;
	uint64_t whole = 0;

	if (boundary >= run->slot_size) {
		uint64_t fitting = boundary / run->slot_size;

		if (!checked_mul(last / fitting, boundary, &whole))
			return false;
		last %= fitting;
	}
	/* `last` slots lie before the last one, behind the last boundary. */
	return checked_add(last, 1, &last) &&
	       checked_mul(last, run->slot_size, &last) &&
	       checked_add(whole, last, &whole) &&
	       checked_add(run->offset, whole, end);
}
