/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - where a sweep may read: the space of a snapshot's slots
 *
 * Only what was written: space that a thin device or a sparse file has not
 * allocated is answered without the device, and would look fast. Slots that
 * lie one behind the other are one extent, as reads of all sizes should fit;
 * with a boundary an extent ends at each multiple of it, behind its last slot. Of more than
 * a limit of those an even share is taken.
 */
#ifndef STELE_TUNE_SPACE_H
#define STELE_TUNE_SPACE_H

#include "lib/base/random.h"
#include "lib/read/dataset.h"

#define STELE_TUNE_EXTENTS_MAX 65536u

struct stele_tune_extent {
	uint64_t offset, size; /* bytes on the target */
	uint64_t before;       /* sum of the sizes in front of it */
};

struct stele_tune_space {
	struct stele_tune_extent *extents;
	size_t count, room;
	uint64_t size; /* bytes, of all */
	uint32_t align; /* of reads: a page, or a larger logical block */
};

/* Return: 0; -ENOENT (no slots); -ENOMEM. */
int stele_tune_space_init(struct stele_tune_space *space,
			  const struct stele_dataset *ds);
void stele_tune_space_release(struct stele_tune_space *space);

/* Is there room for reads of that size, `places` of them beside each other? */
bool stele_tune_space_fits(const struct stele_tune_space *space, uint32_t size,
			   unsigned int places);
/*
 * A place by chance, for `size` bytes that fit: aligned, wholly within one
 * extent. `state`: xorshift64*, never 0.
 */
uint64_t stele_tune_space_pick(const struct stele_tune_space *space,
			       uint32_t size, uint64_t *state);

#endif
