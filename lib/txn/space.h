/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.h - which bytes of an image are free to be written
 *
 * Free is what no superblock copy can lead to: not the image that recovery
 * selects, and not the older one in the other slot, which recovery would fall
 * back to. So what a commit stops using can be written over only after the
 * next one. Extents are whole blocks, ascending, never touching; first fit, so
 * that same input gives same bytes.
 */
#ifndef STELE_TXN_SPACE_H
#define STELE_TXN_SPACE_H

#include "format/catalog.h"

struct stele_image;

struct stele_extents {
	struct stele_catalog_free *list; /* owned */
	uint32_t count, capacity;
};

/* Idempotent on a zeroed struct, which holds nothing. */
void stele_extents_release(struct stele_extents *extents);
/* Add a range, which may overlap or touch what is there. 0; -ENOMEM. */
int stele_extents_add(struct stele_extents *extents, uint64_t offset,
		      uint64_t size);
/* Take a range away, whether it is there or not. 0; -ENOMEM. */
int stele_extents_remove(struct stele_extents *extents, uint64_t offset,
			 uint64_t size);
/* Add many, in any order; `list` gets sorted. 0; -ENOMEM. */
int stele_extents_add_list(struct stele_extents *extents,
			   struct stele_catalog_free *list, uint32_t count);
/* Its deleted lists, STELE_REF_LISTS at most. Return: how many. */
uint32_t stele_ref_extents(const struct stele_catalog_ref *ref,
			   struct stele_catalog_free *out);
/* Everything that a catalog refers to: segments, deleted lists, itself. */
int stele_extents_add_catalog(struct stele_extents *extents,
			      const struct stele_catalog *catalog,
			      const struct stele_superblock *sb);
/* Where the last one ends, at least STELE_DATA_OFFSET. */
uint64_t stele_extents_end(const struct stele_extents *extents);
/* What lies between them, from STELE_DATA_OFFSET to `end`. 0; -ENOMEM. */
int stele_extents_gaps(const struct stele_extents *extents, uint64_t end,
		       struct stele_extents *gaps);
/*
 * The first place for `size` bytes between STELE_DATA_OFFSET and `end` that
 * `used` leaves free, at a multiple of `align` (a power of two of at least 4096).
 * Return: 0; -ENOSPC.
 */
int stele_extents_find(const struct stele_extents *used, uint64_t size,
		       uint64_t align, uint64_t end, uint64_t *offset);

/*
 * Add what any of the superblock copies on the device leads to that recovery
 * may take, now or after the newest ones are lost; the image's own among them. Of
 * one that decodes, but whose catalog the device cannot read, or that
 * recovery has passed over though it is newer, all below its high-water mark is added.
 * Return: 0; -ESTALE (the image is not what the device holds any more); errno
 * of the device: a copy that cannot be read may be anything (logged).
 */
int stele_extents_add_copies(struct stele_extents *extents,
			     struct stele_image *image);

/*
 * Bytes that only an older superblock copy leads to, catalogs aside: what the next
 * commits will make free to be written. Return: as add_copies.
 */
int stele_image_kept_size(struct stele_image *image, uint64_t *size);

/*
 * Where the next catalog goes: the first place that `used` leaves free below
 * `end` for its bytes, whose number depends on the free extents that there
 * will be once it lies there. `own` is what the next generation uses besides,
 * a part of `used`; of `counts`, free is ignored. Allocates nothing.
 */
struct stele_catalog_place {
	uint64_t offset, size;
	uint64_t high_water;
	uint32_t free_count;
};
/* Return: 0; -ENOSPC; -EOVERFLOW (larger than a catalog may be). */
int stele_catalog_find_place(const struct stele_extents *own,
			     const struct stele_extents *used,
			     const struct stele_catalog_counts *counts,
			     uint64_t end, struct stele_catalog_place *place);
/* Bytes that it takes at most, wherever it goes. */
uint64_t stele_catalog_size_bound(const struct stele_extents *own,
				  const struct stele_catalog_counts *counts);

#endif
