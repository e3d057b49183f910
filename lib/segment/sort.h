/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.h - a merge sort that runs well on arrays that are spilled
 *
 * Stable; reads and writes front to back, so that pages of a file come and go
 * in order. Unlike qsort(3) its scratch memory is the caller's pool's. Halves
 * that are in order already are not merged.
 */
#ifndef STELE_SEGMENT_SORT_H
#define STELE_SEGMENT_SORT_H

#include "lib/segment/spill.h"

typedef int (*stele_sort_compare)(const void *a, const void *b, void *user);

/*
 * Sort the `count` entries of `entry_size` (up to 64) bytes that *spill begins
 * with. `tick` (may be NULL) is asked now and then; nonzero ends it.
 * Return: 0; -ECANCELED; errors of stele_spill_grow().
 */
int stele_sort(struct stele_spill *spill, uint64_t count, size_t entry_size,
	       stele_sort_compare compare, int (*tick)(void *user), void *user);

#endif
