/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - size classes, and the arithmetic from a number to its slot
 *
 * The one idea that everything rests on: slots of a class have one size and lie
 * one after another, so a table of a few hundred runs is the whole index.
 * stele-format(5), "Runs".
 */
#ifndef STELE_FORMAT_RUN_H
#define STELE_FORMAT_RUN_H

#include "format/checked.h"
#include "format/le.h"

#define STELE_GRANULE_MIN 16u
#define STELE_GRANULE_MAX 4096u
/* Slot sizes of one doubling are 2^-8 of it apart: at most 256 classes. */
#define STELE_CLASS_BITS    8u
#define STELE_SLOT_SIZE_MAX (UINT64_C(1) << 48)
#define STELE_SAMPLES_MAX   (UINT64_C(1) << 48) /* of a segment: le48 numbers */
#define STELE_RUNS_MAX	    (UINT32_C(1) << 24) /* source order needs many */

struct stele_disk_run {
/*00*/	le64 first;	/* number of the first sample */
/*08*/	le64 offset;	/* of its slot, from the segment's start */
/*10*/	le64 slot_size; /* bytes, a multiple of the granule */
};
STELE_CHECK_SIZE(struct stele_disk_run, 24);

struct stele_run {
	uint64_t first;
	uint64_t offset;
	uint64_t slot_size;
};

/*
 * Size of the slot of a record: record_size (1 to STELE_SLOT_SIZE_MAX) rounded
 * up to a multiple of max(granule, 2^(floor(log2 record_size) - 8)). The
 * spacing is that of HdrHistogram's buckets.
 */
uint64_t stele_slot_size(uint64_t record_size, uint32_t granule);

/* The run that holds `number`; count > 0, runs[0].first == 0, ascending. */
const struct stele_run *stele_run_find(const struct stele_run *runs,
				       uint32_t count, uint64_t number);

/*
 * Offset of a slot from the segment's start; `number` lies in the run. With a
 * boundary (0: none) no slot that fits it crosses a multiple of it: as many as
 * fit lie between run.offset and the next multiple, at least one; then
 * floor(boundary / slot_size) after each.
 */
uint64_t stele_run_slot(const struct stele_run *run, uint64_t number,
			uint64_t boundary);

/* End of a run of count > 0 slots; false when it overflows. */
bool stele_run_end(const struct stele_run *run, uint64_t count,
		   uint64_t boundary, uint64_t *end);

/*
 * The first place at or after `end` where a run of such slots may begin: there
 * or, if its first slot would cross a multiple of the boundary, at that.
 * False when it overflows.
 */
bool stele_run_begin(uint64_t end, uint64_t slot_size, uint64_t boundary,
		     uint64_t *offset);

#endif
