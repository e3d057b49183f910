/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resident.h - which pages of a view are in memory, and that they are not too many
 *
 * A page is absent, present or poisoned, and changes only here, under one lock. Before
 * pages are filled in, those that have been there the longest are dropped until
 * there is room; what was filled in at once is dropped at once. A dropped page is absent: the
 * next touch brings it back.
 *
 * Nothing here touches the memory itself, but through stele_resident_hold().
 */
#ifndef STELE_VIEW_RESIDENT_H
#define STELE_VIEW_RESIDENT_H

#include <pthread.h>

#include "lib/device/faults.h"

struct stele_resident_run;

struct stele_resident {
	struct stele_faults *faults;
	pthread_mutex_t lock;
	uint8_t *states; /* of each page */
	struct stele_resident_run *runs; /* a ring of what is present, oldest first */
	uint64_t head, count, capacity;	 /* of runs */
	uint64_t pages, pages_max;	 /* that are present; that may be */
};

/* At most `pages_max` (not 0). Return: 0; -ENOMEM. */
int stele_resident_init(struct stele_resident *resident, struct stele_faults *faults,
			uint64_t pages_max);
/* Idempotent on a zeroed struct. */
void stele_resident_release(struct stele_resident *resident);

/* Without the pages at both ends that are present; *count 0: all are. */
void stele_resident_trim(struct stele_resident *resident, uint64_t *first,
			 uint64_t *count);
/* Are they all present? Then they stay until let(). */
bool stele_resident_hold(struct stele_resident *resident, uint64_t first,
			 uint64_t count);
void stele_resident_let(struct stele_resident *resident);

/*
 * Fill in those that are not present and not `bad`, with their part of `data`. At most
 * pages_max. Return: 0; errno.
 */
int stele_resident_fill(struct stele_resident *resident, uint64_t first,
			uint64_t count, const char *data, const bool *bad);
/* A page that is not present, and will not be before it is filled in. Wakes who waits. */
void stele_resident_poison(struct stele_resident *resident, uint64_t page);

#endif
