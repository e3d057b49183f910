/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costly.h - images that are small, valid, and dear to whoever is careless
 *
 * Many snapshots of few segments, many runs, deleted lists that are shared: whatever
 * is loaded once for each reference makes minutes or gigabytes of some megabytes. What
 * they cost is counted in reads, in bytes, and in memory: never in time.
 */
#ifndef STELE_TESTS_COSTLY_H
#define STELE_TESTS_COSTLY_H

#include "lib/image/image.h"

struct costly {
	uint32_t segments, snapshots;
	uint32_t samples;    /* of each segment; each is a run of its own */
	uint32_t deleted;    /* of each segment, in one list for all snapshots */
	bool growing;	     /* snapshot i has i + 1 segments, else all of them */
	bool list_each;	     /* a list of its own for each reference */
	uint64_t image_size; /* 0: enough */
};

/* In memory; the device counts, see below. Bails when anything fails. */
struct stele_device *costly_make(const struct costly *how);

/* Of a device of costly_make(): blocking reads since the last clear. */
struct costly_count {
	uint64_t reads, bytes;
	uint64_t memory; /* most that malloc had handed out at a read, above the clear */
};
void costly_clear(struct stele_device *dev);
struct costly_count costly_count(const struct stele_device *dev);
/* The same for any device, which it takes. */
struct stele_device *costly_wrap(struct stele_device *inner);
/* Bytes of the device; NULL but of memory. */
void *costly_memory(const struct stele_device *dev);

#endif
