/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.c - extents: sorted, merged, first fit
 *
 * Offsets and sizes come from checked catalogs and superblocks, or from an
 * edit that bounds them by the image's size: below STELE_IMAGE_SIZE_MAX, so
 * that the sum of two never wraps.
 */
#include "lib/txn/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/checked.h"
#include "format/sections.h"

#define CAPACITY_MIN 16u

static uint64_t end_of(const struct stele_catalog_free *e)
{
	return e->offset + e->size;
}

void stele_extents_release(struct stele_extents *extents)
{
	free(extents->list);
	memset(extents, 0, sizeof(*extents));
}

static int reserve(struct stele_extents *extents, uint32_t count)
{
	uint32_t capacity = extents->capacity ? extents->capacity :
						CAPACITY_MIN;
	struct stele_catalog_free *list;

	if (count <= extents->capacity)
		return 0;
	while (capacity < count)
		capacity *= 2;
	list = realloc(extents->list, capacity * sizeof(*list));
	if (!list)
		return -ENOMEM;
	extents->list = list;
	extents->capacity = capacity;
	return 0;
}

/* Index of the first extent that ends at or behind `at`. */
static uint32_t first_ending(const struct stele_extents *extents, uint64_t at)
{
	uint32_t low = 0, high = extents->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (end_of(&extents->list[middle]) < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Put `count` pieces into the place of those from `first` to before `last`. */
static int replace(struct stele_extents *extents, uint32_t first,
		   uint32_t last, const struct stele_catalog_free *pieces, uint32_t count)
{
	uint32_t total = extents->count - (last - first) + count;
	int ret = reserve(extents, total);

	if (ret < 0)
		return ret;
	if (!extents->list)
		return 0; /* nothing from nothing */
	memmove(extents->list + first + count, extents->list + last,
		(extents->count - last) * sizeof(*extents->list));
	if (count)
		memcpy(extents->list + first, pieces, count * sizeof(*pieces));
	extents->count = total;
	return 0;
}

int stele_extents_add(struct stele_extents *extents, uint64_t offset,
		      uint64_t size)
{
	uint32_t first = first_ending(extents, offset), last = first;
	uint64_t end = offset + size;
	struct stele_catalog_free whole;

	if (size == 0)
		return 0;
	for (; last < extents->count && extents->list[last].offset <= end;
	     last++) {
		if (extents->list[last].offset < offset)
			offset = extents->list[last].offset;
		if (end_of(&extents->list[last]) > end)
			end = end_of(&extents->list[last]);
	}
	whole = (struct stele_catalog_free){offset, end - offset};
	return replace(extents, first, last, &whole, 1);
}

int stele_extents_remove(struct stele_extents *extents, uint64_t offset,
			 uint64_t size)
{
	const uint64_t end = offset + size;
	uint32_t first = first_ending(extents, offset + 1), last = first;
	struct stele_catalog_free pieces[2];
	uint32_t count = 0;

	if (size == 0)
		return 0;
	for (; last < extents->count && extents->list[last].offset < end;
	     last++) {
		const struct stele_catalog_free *e = &extents->list[last];

		if (e->offset < offset)
			pieces[count++] = (struct stele_catalog_free){e->offset,
						   offset - e->offset};
		if (end_of(e) > end)
			pieces[count++] = (struct stele_catalog_free){end, end_of(e) - end};
	}
	return replace(extents, first, last, pieces, count);
}

static int compare(const void *a, const void *b)
{
	const struct stele_catalog_free *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Behind the last one, whose place is not behind this one's. */
static void append(struct stele_extents *extents, const struct stele_catalog_free *e)
{
	struct stele_catalog_free *last = extents->count ? &extents->list[extents->count - 1] :
					NULL;

	if (e->size == 0)
		return;
	if (!last || e->offset > end_of(last))
		extents->list[extents->count++] = *e;
	else if (end_of(e) > end_of(last))
		last->size = end_of(e) - last->offset;
}

int stele_extents_add_list(struct stele_extents *extents,
			   struct stele_catalog_free *list, uint32_t count)
{
	struct stele_extents merged = {0};
	uint32_t i = 0, j = 0;
	int ret = reserve(&merged, extents->count + count);

	if (ret < 0)
		return ret;
	if (count)
		qsort(list, count, sizeof(*list), compare);
	while (i < extents->count || j < count) {
		if (j == count ||
		    (i < extents->count &&
		     extents->list[i].offset <= list[j].offset))
			append(&merged, &extents->list[i++]);
		else
			append(&merged, &list[j++]);
	}
	stele_extents_release(extents);
	*extents = merged;
	return 0;
}

uint32_t stele_ref_extents(const struct stele_catalog_ref *ref,
			   struct stele_catalog_free *out)
{
	uint32_t n = 0;

	for (; n < STELE_REF_LISTS && ref->lists[n].offset; n++)
		out[n] = (struct stele_catalog_free){
			ref->lists[n].offset,
			stele_deleted_blocks(ref->lists[n].count) * STELE_BLOCK_SIZE};
	return n;
}

int stele_extents_add_catalog(struct stele_extents *extents,
			      const struct stele_catalog *catalog,
			      const struct stele_superblock *sb)
{
	const struct stele_catalog_counts *counts = &catalog->counts;
	uint32_t n = 0;
	struct stele_catalog_free *list;
	int ret;

	list = calloc((size_t)counts->segments + STELE_REF_LISTS * counts->refs + 1,
		      sizeof(*list));
	if (!list)
		return -ENOMEM;
	list[n++] = (struct stele_catalog_free){sb->catalog_offset, sb->catalog_size};
	for (uint32_t i = 0; i < counts->segments; i++) {
		struct stele_catalog_segment segment;

		stele_catalog_segment(catalog, i, &segment);
		list[n++] = (struct stele_catalog_free){segment.offset, segment.size};
	}
	for (uint32_t i = 0; i < counts->refs; i++) {
		struct stele_catalog_ref ref;

		stele_catalog_ref(catalog, i, &ref);
		n += stele_ref_extents(&ref, &list[n]);
	}
	ret = stele_extents_add_list(extents, list, n);
	free(list);
	return ret;
}

uint64_t stele_extents_end(const struct stele_extents *extents)
{
	uint64_t end = STELE_DATA_OFFSET;

	if (extents->count && end_of(&extents->list[extents->count - 1]) > end)
		end = end_of(&extents->list[extents->count - 1]);
	return end;
}

int stele_extents_gaps(const struct stele_extents *extents, uint64_t end,
		       struct stele_extents *gaps)
{
	uint64_t at = STELE_DATA_OFFSET;
	int ret = reserve(gaps, gaps->count + extents->count + 1);

	for (uint32_t i = 0; ret == 0 && i <= extents->count; i++) {
		uint64_t stop = i < extents->count ? extents->list[i].offset :
						     end;

		if (stop > end)
			stop = end;
		if (stop > at)
			append(gaps, &(struct stele_catalog_free){at, stop - at});
		if (i < extents->count && end_of(&extents->list[i]) > at)
			at = end_of(&extents->list[i]);
	}
	return ret;
}

/* The gap before extent `index` (count: behind the last), up to `end`. */
static bool gap_before(const struct stele_extents *used, uint32_t index,
		       uint64_t end, uint64_t *offset, uint64_t *size)
{
	uint64_t from = STELE_DATA_OFFSET, to = end;

	if (index > 0 && end_of(&used->list[index - 1]) > from)
		from = end_of(&used->list[index - 1]);
	if (index < used->count && used->list[index].offset < to)
		to = used->list[index].offset;
	*offset = from;
	*size = to > from ? to - from : 0;
	return *size > 0;
}

int stele_extents_find(const struct stele_extents *used, uint64_t size,
		       uint64_t align, uint64_t end, uint64_t *offset)
{
	for (uint32_t i = 0; i <= used->count; i++) {
		uint64_t from, room, at;

		if (!gap_before(used, i, end, &from, &room) ||
		    !checked_round_up(from, align, &at) ||
		    !range_ok(at, size, from + room))
			continue;
		*offset = at;
		return 0;
	}
	return -ENOSPC;
}

/* ---- the place of the catalog ---------------------------------------------- */

/* How many gaps are left below the high-water mark, with one more extent. */
static uint32_t gaps_with(const struct stele_extents *own, uint64_t offset,
			  uint64_t size)
{
	const struct stele_catalog_free more = {offset, size};
	uint64_t at = STELE_DATA_OFFSET;
	bool placed = size == 0;
	uint32_t gaps = 0, i = 0;

	while (i < own->count || !placed) {
		const struct stele_catalog_free *e = &more;

		if (placed || (i < own->count && own->list[i].offset < offset))
			e = &own->list[i++];
		else
			placed = true;
		gaps += e->offset > at;
		if (end_of(e) > at)
			at = end_of(e);
	}
	return gaps;
}

static uint64_t size_with(struct stele_catalog_counts counts, uint32_t gaps)
{
	counts.free = gaps;
	return stele_stream_blocks(stele_catalog_stream_size(&counts)) *
	       STELE_BLOCK_SIZE;
}

uint64_t stele_catalog_size_bound(const struct stele_extents *own,
				  const struct stele_catalog_counts *counts)
{
	return size_with(*counts, gaps_with(own, 0, 0) + 1);
}

/*
 * One extent more makes a gap less, or none, or one more. The size that goes
 * with each is tried until one leaves just that number.
 */
static bool fits(const struct stele_extents *own,
		 const struct stele_catalog_counts *counts, uint64_t offset,
		 uint64_t room, struct stele_catalog_place *place)
{
	const uint32_t most = gaps_with(own, 0, 0) + 1;

	for (uint32_t gaps = most < 2 ? 0 : most - 2; gaps <= most; gaps++) {
		uint64_t size = size_with(*counts, gaps);
		uint64_t end = stele_extents_end(own);

		if (size > room || gaps_with(own, offset, size) != gaps)
			continue;
		*place = (struct stele_catalog_place){
			.offset = offset,
			.size = size,
			.high_water = end > offset + size ? end : offset + size,
			.free_count = gaps,
		};
		return true;
	}
	return false;
}

int stele_catalog_find_place(const struct stele_extents *own,
			     const struct stele_extents *used,
			     const struct stele_catalog_counts *counts,
			     uint64_t end, struct stele_catalog_place *place)
{
	const uint64_t least = size_with(*counts, 0);

	for (uint32_t i = 0; i <= used->count; i++) {
		uint64_t offset, room;

		if (!gap_before(used, i, end, &offset, &room) || room < least ||
		    !fits(own, counts, offset, room, place))
			continue;
		if (place->free_count > STELE_FREE_MAX ||
		    place->size > STELE_CATALOG_SIZE_MAX)
			return -EOVERFLOW;
		return 0;
	}
	return -ENOSPC;
}
