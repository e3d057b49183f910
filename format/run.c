/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - size classes, and the arithmetic from a number to its slot
 *
 * This is the whole hot path of the index. stele_run_find() compiles to a loop
 * of conditional moves: its length depends on the number of runs only, and no
 * branch depends on the number looked up.
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

/*
 * Where slots that fit a boundary lie: `first` of them from the run's offset up
 * to the multiple `next`, then `each` after every multiple.
 */
struct spread {
	uint64_t first, each, next;
};

/* False when `next` overflows. */
static bool spread_of(const struct stele_run *run, uint64_t boundary,
		      struct spread *out)
{
	const uint64_t before = round_down(run->offset, boundary);

	out->each = boundary / run->slot_size;
	out->first = (boundary - (run->offset - before)) / run->slot_size;
	return checked_add(before, boundary, &out->next);
}

uint64_t stele_run_slot(const struct stele_run *run, uint64_t number,
			uint64_t boundary)
{
	uint64_t index = number - run->first;
	struct spread spread;

	if (boundary < run->slot_size)
		return run->offset + index * run->slot_size;
	spread_of(run, boundary, &spread);
	if (index < spread.first)
		return run->offset + index * run->slot_size;
	index -= spread.first;
	return spread.next + index / spread.each * boundary +
	       index % spread.each * run->slot_size;
}

bool stele_run_end(const struct stele_run *run, uint64_t count,
		   uint64_t boundary, uint64_t *end)
{
	uint64_t from = run->offset, whole = 0, last;
	struct spread spread;

	if (boundary >= run->slot_size) {
		if (!spread_of(run, boundary, &spread))
			return false;
		if (count > spread.first) {
			last = count - spread.first - 1;
			from = spread.next;
			if (!checked_mul(last / spread.each, boundary, &whole))
				return false;
			count = last % spread.each + 1;
		}
	}
	return checked_mul(count, run->slot_size, &last) &&
	       checked_add(from, whole, &from) && checked_add(from, last, end);
}

bool stele_run_begin(uint64_t end, uint64_t slot_size, uint64_t boundary,
		     uint64_t *offset)
{
	*offset = end;
	if (boundary < slot_size ||
	    boundary - (end & (boundary - 1)) >= slot_size)
		return true;
	return checked_round_up(end, boundary, offset);
}
