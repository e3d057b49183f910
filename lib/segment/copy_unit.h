/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_unit.h - a segment, cut into pieces of work that cover it once
 *
 * From the end of the first descriptor to the begin of the last one, in order
 * and without gaps. What a unit covers depends on the descriptor alone, so a
 * copy that goes on cuts as the one before it did. A unit of slots has at least
 * the size of a block, but for the first and the last one: so at most two units
 * touch one block.
 */
#ifndef STELE_SEGMENT_COPY_UNIT_H
#define STELE_SEGMENT_COPY_UNIT_H

#include "lib/image/snapshot.h"

#define STELE_COPY_UNIT_SIZE	(UINT64_C(2) << 20)
#define STELE_COPY_UNIT_SAMPLES 4064u /* 32 blocks of digests */

enum stele_copy_kind {
	STELE_COPY_SLOTS, /* at most COPY_UNIT_SIZE, any number of slots */
	STELE_COPY_LARGE, /* of any size: one slot, perhaps tiny ones before it */
	STELE_COPY_SECTION,
	STELE_COPY_ZEROS,
};

struct stele_copy_unit {
	enum stele_copy_kind kind;
	uint64_t index;		 /* 0, 1, ... */
	uint64_t offset, size;	 /* bytes, from the segment's start */
	uint64_t first, count;	 /* slots: numbers */
	uint32_t section;	 /* section: which one ... */
	uint64_t block;		 /* ... and which block of it is the first */
};

/* Where the cutting is. Begins as {.segment = segment}. */
struct stele_copy_units {
	const struct stele_segment *segment;
	uint64_t index;
	uint64_t offset; /* all before it has been handed out */
	uint64_t number;
	uint32_t section;
};

/* False: that was all. */
bool stele_copy_units_next(struct stele_copy_units *units,
			   struct stele_copy_unit *unit);

/* Of a slot, from the segment's start; number == count: end of all slots. */
uint64_t stele_copy_slot(const struct stele_segment *segment, uint64_t number,
			 uint64_t *slot_size);

#endif
