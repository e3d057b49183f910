/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - buffers of a reader: one mapping, cut into extents of whole pages
 *
 * Sizes span three orders of magnitude and come back in any order, so extents
 * are kept with boundary tags (beside the memory, one for each page) and free
 * ones in lists by size, four to a doubling. Taking and giving back are O(1),
 * neighbours that are free become one at once, and a request that some free
 * extent could hold never fails: with all given back there is one extent.
 *
 * A ring would be simpler, but one sample that a caller holds on to would stop
 * it. Belongs to one thread.
 */
#ifndef STELE_READ_ARENA_H
#define STELE_READ_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/read/pages.h"

#define STELE_ARENA_BINS      128u
#define STELE_ARENA_PAGE_SIZE 4096u /* at least */
#define STELE_ARENA_PAGES_MAX (UINT64_C(1) << 31)
#define STELE_ARENA_SIZE_MAX  (STELE_ARENA_PAGES_MAX * STELE_ARENA_PAGE_SIZE)

struct stele_arena_tag {
	uint32_t pages;	     /* first page of an extent: its length */
	uint32_t free_pages; /* last page of a free extent: its length; else 0 */
	uint32_t previous, next; /* first page of a free extent: its list */
	uint32_t users;		 /* first page of an extent that is taken: how many give it back */
};

struct stele_arena {
	struct stele_pages pages;
	char *memory; /* theirs: aligned to 2 MiB */
	uint64_t size;
	uint32_t page_size; /* bytes, power of two */
	uint32_t page_count;
	struct stele_arena_tag *tags;
	uint32_t bins[STELE_ARENA_BINS]; /* first page of first extent */
	uint64_t bins_used[STELE_ARENA_BINS / 64];
};

/*
 * `size` is rounded up to whole pages of `page_size`. The smallest free extents are
 * taken first, so what has been touched is used again before what has not.
 * Return: 0; -ENOMEM; -EINVAL (size 0, or over 2^31 pages).
 */
int stele_arena_init(struct stele_arena *arena, uint64_t size,
		     uint32_t page_size);
/* `forked`: see stele_pages_unmap(). */
void stele_arena_release(struct stele_arena *arena, bool forked);

/* NULL: no free extent is as large. */
void *stele_arena_take(struct stele_arena *arena, uint64_t size);
/* As many more will give it back; with the last one it is free. */
void stele_arena_share(struct stele_arena *arena, const void *memory,
		       uint32_t more);
/* Anything but the begin of a taken extent is ignored. */
void stele_arena_give(struct stele_arena *arena, const void *memory);

#endif
