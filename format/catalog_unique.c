/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_unique.c - names of snapshots and ids of segments are unique
 *
 * The tables are ordered by something else, nothing may be allocated, and
 * comparing all pairs would let a hostile catalog cost minutes. So:
 * heapsort 16-bit indices on the stack, then compare neighbours.
 */
#include "format/catalog_check.h"

#include "format/decode.h"

#define ENTRIES_MAX STELE_SEGMENTS_MAX
_Static_assert(STELE_SNAPSHOTS_MAX <= ENTRIES_MAX && ENTRIES_MAX <= 65536,
	       "indices must fit the array, and 16 bits");

typedef int compare_fn(const struct stele_catalog *catalog, uint32_t a,
		       uint32_t b);

static int compare_names(const struct stele_catalog *catalog, uint32_t a,
			 uint32_t b)
{
	struct stele_catalog_snapshot x, y;

	stele_catalog_snapshot(catalog, a, &x);
	stele_catalog_snapshot(catalog, b, &y);
	return memcmp(x.name, y.name, sizeof(x.name));
}

static int compare_ids(const struct stele_catalog *catalog, uint32_t a,
		       uint32_t b)
{
	struct stele_catalog_segment x, y;

	stele_catalog_segment(catalog, a, &x);
	stele_catalog_segment(catalog, b, &y);
	return (x.id > y.id) - (x.id < y.id);
}

static void sift_down(const struct stele_catalog *catalog, uint16_t *heap,
		      uint32_t root, uint32_t count, compare_fn *compare)
{
	for (;;) {
		uint32_t child = 2 * root + 1;
		uint16_t swap;

		if (child >= count)
			return;
		if (child + 1 < count &&
		    compare(catalog, heap[child], heap[child + 1]) < 0)
			child++;
		if (compare(catalog, heap[root], heap[child]) >= 0)
			return;
		swap = heap[root];
		heap[root] = heap[child];
		heap[child] = swap;
		root = child;
	}
}

static bool all_differ(const struct stele_catalog *catalog, uint32_t count,
		       compare_fn *compare)
{
	uint16_t heap[ENTRIES_MAX];

	for (uint32_t i = 0; i < count; i++)
		heap[i] = (uint16_t)i;
	for (uint32_t i = count / 2; i-- > 0;)
		sift_down(catalog, heap, i, count, compare);
	/* Taken from the top in descending order: equal ones come together. */
	for (uint32_t left = count; left > 1;) {
		uint16_t top = heap[0];

		heap[0] = heap[--left];
		sift_down(catalog, heap, 0, left, compare);
		if (compare(catalog, top, heap[0]) == 0)
			return false;
	}
	return true;
}

bool stele_catalog_names_unique(const struct stele_catalog *catalog)
{
	return all_differ(catalog, catalog->counts.snapshots, compare_names);
}

bool stele_catalog_ids_unique(const struct stele_catalog *catalog)
{
	return all_differ(catalog, catalog->counts.segments, compare_ids);
}
