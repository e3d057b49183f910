/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_sorted.c - names and ids are unique, and no reference is left over
 *
 * The tables are ordered by something else, nothing may be allocated, and
 * comparing all pairs would let a hostile catalog cost minutes. So:
 * heapsort 16-bit indices on the stack, then look at neighbours.
 */
#include "format/catalog_check.h"

#include "format/decode.h"

_Static_assert(STELE_SNAPSHOTS_MAX <= STELE_SEGMENTS_MAX && STELE_SEGMENTS_MAX <= 65536,
	       "indices must fit the array, and 16 bits");

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

/* Behind the last one of its references. */
static uint32_t end_of(const struct stele_catalog_snapshot *snapshot)
{
	return snapshot->first_ref + snapshot->ref_count;
}

static int compare_ends(const struct stele_catalog *catalog, uint32_t a,
			uint32_t b)
{
	struct stele_catalog_snapshot x, y;

	stele_catalog_snapshot(catalog, a, &x);
	stele_catalog_snapshot(catalog, b, &y);
	return (end_of(&x) > end_of(&y)) - (end_of(&x) < end_of(&y));
}

static void sift_down(const struct stele_catalog *catalog, uint16_t *heap,
		      uint32_t root, uint32_t count,
		      stele_catalog_compare_fn *compare)
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

void stele_catalog_heap_fill(struct stele_catalog_heap *heap,
			     const struct stele_catalog *catalog, uint32_t count,
			     stele_catalog_compare_fn *compare)
{
	heap->catalog = catalog;
	heap->compare = compare;
	heap->left = count;
	for (uint32_t i = 0; i < count; i++)
		heap->list[i] = (uint16_t)i;
	for (uint32_t i = count / 2; i-- > 0;)
		sift_down(catalog, heap->list, i, count, compare);
}

uint32_t stele_catalog_heap_take(struct stele_catalog_heap *heap)
{
	const uint16_t top = heap->list[0];

	heap->list[0] = heap->list[--heap->left];
	sift_down(heap->catalog, heap->list, 0, heap->left, heap->compare);
	return top;
}

static bool all_differ(const struct stele_catalog *catalog, uint32_t count,
		       stele_catalog_compare_fn *compare)
{
	struct stele_catalog_heap heap;

	stele_catalog_heap_fill(&heap, catalog, count, compare);
	while (heap.left > 1) {
		uint32_t top = stele_catalog_heap_take(&heap);

		if (compare(catalog, top, heap.list[0]) == 0)
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

/* From the end of the table down: what one leaves, the next one reaches. */
bool stele_catalog_refs_used(const struct stele_catalog *catalog)
{
	uint32_t lowest = catalog->counts.refs;
	struct stele_catalog_snapshot snapshot;
	struct stele_catalog_heap heap;

	stele_catalog_heap_fill(&heap, catalog,
		  catalog->counts.snapshots + catalog->counts.deleted, compare_ends);
	while (heap.left) {
		stele_catalog_snapshot(catalog, stele_catalog_heap_take(&heap), &snapshot);
		if (end_of(&snapshot) < lowest)
			return false;
		if (snapshot.first_ref < lowest)
			lowest = snapshot.first_ref;
	}
	return lowest == 0;
}
