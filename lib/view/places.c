/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.c - see places.h
 *
 * Descriptors were checked when they were loaded: within a segment runs and their slots ascend
 * and do not overlap, and neither do segments.
 */
#include "lib/view/places.h"

#include <errno.h>
#include <stdlib.h>

static int by_offset(const void *a, const void *b)
{
	const struct stele_segment *const *x = a, *const *y = b;
	const uint64_t left = (*x)->descriptor.offset, right = (*y)->descriptor.offset;

	return (left > right) - (left < right);
}

int stele_places_init(struct stele_places *places, const struct stele_dataset *ds)
{
	const struct stele_snapshot *snapshot = &ds->snapshot;

	*places = (struct stele_places){.ds = ds, .count = snapshot->segment_count};
	places->segments = calloc((size_t)places->count + 1, sizeof(*places->segments));
	if (!places->segments)
		return -ENOMEM;
	for (uint32_t i = 0; i < places->count; i++)
		places->segments[i] = &snapshot->segments[i];
	qsort(places->segments, places->count, sizeof(*places->segments), by_offset);
	return 0;
}

void stele_places_release(struct stele_places *places)
{
	free(places->segments);
	places->segments = NULL;
}

/* The first segment that ends after `offset`. */
static uint32_t find_segment(const struct stele_places *places, uint64_t offset)
{
	uint32_t low = 0, high = places->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const struct stele_descriptor *d = &places->segments[middle]->descriptor;

		if (d->offset + d->size <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first number whose slot ends after `offset`. */
static uint64_t find_number(const struct stele_segment *segment, uint64_t offset)
{
	uint64_t low = 0, high = segment->descriptor.sample_count;

	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		uint64_t begin, size;

		stele_segment_slot(segment, middle, &begin, &size);
		if (begin + size <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int stele_places_each(const struct stele_places *places, uint64_t begin, uint64_t end,
		      int (*fn)(void *user, const struct stele_slot *slot), void *user)
{
	const struct stele_snapshot *snapshot = &places->ds->snapshot;
	int ret = 0;

	for (uint32_t i = find_segment(places, begin); i < places->count && !ret; i++) {
		const struct stele_segment *segment = places->segments[i];
		uint64_t number, offset, size, id;
		struct stele_slot slot;

		if (segment->descriptor.offset >= end)
			break;
		for (number = find_number(segment, begin);
		     !ret && number < segment->descriptor.sample_count; number++) {
			stele_segment_slot(segment, number, &offset, &size);
			if (offset >= end)
				break;
			if (stele_snapshot_id(snapshot, segment, number, &id))
				continue; /* deleted */
			ret = stele_slot_locate(places->ds, id, &slot);
			if (!ret)
				ret = fn(user, &slot);
		}
	}
	return ret;
}
