/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - which bytes of an image are free to be written
 *
 * Free is what neither superblock slot can lead to: not the image that
 * recovery selects, and not the older one in the other slot, which recovery
 * would fall back to. So what a commit stops using can be written over only
 * by the commit after the next. Extents are whole blocks, ascending, never
 * touching; first fit, so that same input gives same bytes.
 */
#ifndef STELE_IMAGE_SPACE_H
#define STELE_IMAGE_SPACE_H

#include "format/catalog.h"

struct stele_extents {
	struct stele_catalog_free *list; /* owned */
	uint32_t count, capacity;
};

void stele_extents_release(struct stele_extents *extents);
/* Add a range, which may overlap or touch what is there. 0; -ENOMEM. */
int stele_extents_add(struct stele_extents *extents, uint64_t offset,
		      uint64_t size);
/* Take a range away, whether it is there or not. 0; -ENOMEM. */
int stele_extents_remove(struct stele_extents *extents, uint64_t offset,
			 uint64_t size);
/* Everything that a catalog refers to: segments, deleted lists, itself. */
int stele_extents_add_catalog(struct stele_extents *extents,
			      const struct stele_catalog *catalog,
			      const struct stele_superblock *sb);
/*
 * The first place for `size` bytes between STELE_DATA_OFFSET and `end` that
 * `used` leaves free, at a multiple of `align` (a power of two of at least 4096).
 * Return: 0; -ENOSPC.
 */
int stele_extents_find(const struct stele_extents *used, uint64_t size,
		       uint64_t align, uint64_t end, uint64_t *offset);

#endif
