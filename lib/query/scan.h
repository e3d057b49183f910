/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - the samples of a snapshot whose scalars are within bounds, batch by batch
 *
 * In the order of ids, from the blocks of columns alone. A window of blocks at a time, the
 * bounds narrow a list of numbers one after another, and each reads only the blocks in which
 * some are left; so what the first one rules out costs the others nothing. All of a batch are
 * of one segment. A scan belongs to one thread.
 */
#ifndef STELE_QUERY_SCAN_H
#define STELE_QUERY_SCAN_H

#include "lib/query/bounds.h"
#include "lib/read/dataset.h"

/* Asks the program every 100 ms whether to go on. Zeroed but for the first three. */
struct stele_scan_pulse {
	stele_progress_fn fn; /* NULL: nobody to ask */
	void *user;
	uint64_t total;
	uint64_t done, next_ns;
};
/* Return: 0; -ECANCELED. */
int stele_scan_beat(struct stele_scan_pulse *pulse);

/* Blocks of one field in memory. */
struct stele_scan_column {
	const struct stele_segment *segment; /* NULL: none */
	uint64_t first, count;		     /* which */
	struct stele_disk_block *blocks;     /* owned, room for STELE_SCAN_WINDOW */
};

#define STELE_SCAN_WINDOW 256u /* blocks: 1 MiB, 129,536 values */

struct stele_scan {
	struct stele_dataset *ds;
	struct stele_scan_pulse *pulse; /* the caller's */
	struct stele_bounds *bounds; /* owned */
	size_t bounds_count;
	uint64_t id, end_id;	 /* of what is left to look at */
	uint32_t window;	 /* blocks, of the next one; grows */
	struct stele_scan_column columns[STELE_FIELDS_MAX];

	/* The batch. */
	const struct stele_segment *segment;
	uint64_t *numbers, *ids; /* owned, ascending */
	size_t count, capacity;

	uint64_t blocks_read, blocks_skipped; /* of columns; skipped by their summaries */
};

/*
 * Begin anew, with ids from `first` to before `end`, at most; takes `bounds`, malloced. Of a
 * new scan, ds and pulse are set and all else is zero.
 */
void stele_scan_begin(struct stele_scan *scan, struct stele_bounds *bounds, size_t count,
		      uint64_t first, uint64_t end);
void stele_scan_release(struct stele_scan *scan);

/*
 * The next batch: of at most `room` samples, or what one window has, if that is less and
 * `fill` is not set. Return: 1; 0: there are no more; -ECANCELED; -ENOMEM; errors of
 * stele_section_read().
 */
int stele_scan_next(struct stele_scan *scan, size_t room, bool fill);
/* Of a batch, keep only the first `count`, not 0: the others come again. */
void stele_scan_keep(struct stele_scan *scan, size_t count);
/* The bits of a scalar field of one in the batch. Return: 0; as next. */
int stele_scan_value(struct stele_scan *scan, uint32_t field, size_t row, uint64_t *bits);

#endif
