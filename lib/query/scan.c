/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.c - windows of columns, narrowed
 */
#include "lib/query/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/image/section.h"

#define WINDOW_FIRST 8u /* blocks: a query with a limit may need no more */
#define GAP_MAX	     16u /* blocks that nobody wants, in one read */
#define BEAT_NS	     UINT64_C(100000000)

int stele_scan_beat(struct stele_scan_pulse *pulse)
{
	const struct stele_progress progress = {
		.size = sizeof(progress),
		.phase = STELE_PHASE_SCAN,
		.samples_done = pulse->done,
		.samples_total = pulse->total,
	};
	struct timespec now;
	uint64_t ns;

	if (!pulse->fn)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (ns < pulse->next_ns)
		return 0;
	pulse->next_ns = ns + BEAT_NS;
	return pulse->fn(pulse->user, &progress) ? -ECANCELED : 0;
}

static void release_bounds(struct stele_scan *s)
{
	for (size_t i = 0; i < s->bounds_count; i++)
		stele_bounds_release(&s->bounds[i]);
	free(s->bounds);
	s->bounds = NULL;
	s->bounds_count = 0;
}

void stele_scan_begin(struct stele_scan *s, struct stele_bounds *bounds, size_t count,
		      uint64_t first, uint64_t end)
{
	const uint64_t all = s->ds->snapshot.sample_count;

	release_bounds(s);
	s->bounds = bounds;
	s->bounds_count = count;
	s->id = first;
	s->end_id = end < all ? end : all;
	s->window = WINDOW_FIRST;
	s->count = 0;
}

void stele_scan_release(struct stele_scan *s)
{
	release_bounds(s);
	for (uint32_t i = 0; i < STELE_FIELDS_MAX; i++)
		free(s->columns[i].blocks);
	free(s->numbers);
	free(s->ids);
	memset(s, 0, sizeof(*s));
}

/* ---- columns ------------------------------------------------------------------------ */

static uint64_t block_of(uint64_t number)
{
	return number / STELE_COLUMN_PER_BLOCK;
}

/* The first of ascending numbers that is not below `limit`. */
static size_t lower_bound(const uint64_t *numbers, size_t count, uint64_t limit)
{
	size_t at = 0;

	while (count) {
		const size_t half = count / 2;

		if (numbers[at + half] < limit) {
			at += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return at;
}

/* How many blocks one read takes, from that of the first number on. */
static uint64_t span_of(const uint64_t *numbers, size_t count)
{
	const uint64_t first = block_of(numbers[0]);
	uint64_t end = first + 1;

	for (;;) {
		const size_t next = lower_bound(numbers, count, end * STELE_COLUMN_PER_BLOCK);

		numbers += next;
		count -= next;
		if (!count || block_of(numbers[0]) > end + GAP_MAX ||
		    block_of(numbers[0]) >= first + STELE_SCAN_WINDOW)
			return end - first;
		end = block_of(numbers[0]) + 1;
	}
}

static int load(struct stele_scan *s, const struct stele_segment *segment, uint32_t field,
		uint64_t first, uint64_t count)
{
	struct stele_scan_column *column = &s->columns[field];
	struct stele_section section;
	int ret;

	column->segment = NULL;
	if (!column->blocks)
		column->blocks = stele_device_alloc(
			s->ds->image.dev, STELE_SCAN_WINDOW * (size_t)STELE_BLOCK_SIZE);
	if (!column->blocks)
		return -ENOMEM;
	if (stele_descriptor_find_section(&segment->descriptor, STELE_BLOCK_COLUMN, field,
					  &section) < 0)
		return -EUCLEAN;
	ret = stele_section_read(&s->ds->image, segment, &section, first, count,
				 column->blocks);
	if (ret < 0)
		return ret;
	s->blocks_read += count;
	column->segment = segment;
	column->first = first;
	column->count = count;
	return 0;
}

/*
 * The block that has the first of these numbers, which are wanted later, too.
 * Return: 0; errors of stele_section_read().
 */
static int get_block(struct stele_scan *s, const struct stele_segment *segment, uint32_t field,
		     const uint64_t *numbers, size_t count,
		     const struct stele_disk_column **out)
{
	const struct stele_scan_column *column = &s->columns[field];
	const uint64_t index = block_of(numbers[0]);
	int ret = 0;

	if (column->segment != segment || index < column->first ||
	    index - column->first >= column->count)
		ret = load(s, segment, field, index, span_of(numbers, count));
	if (ret < 0)
		return ret;
	*out = (const void *)column->blocks[index - column->first].payload;
	return 0;
}

/* Of `*count` ascending numbers, keep those that one of the bounds has. */
static int narrow(struct stele_scan *s, const struct stele_segment *segment,
		  const struct stele_bounds *bounds, uint64_t *numbers, size_t *count)
{
	const struct stele_disk_column *column;
	size_t kept = 0, here;
	int ret;

	for (size_t i = 0; i < *count; i += here) {
		const uint64_t first = block_of(numbers[i]) * STELE_COLUMN_PER_BLOCK;

		ret = get_block(s, segment, bounds->field, numbers + i, *count - i, &column);
		if (ret < 0)
			return ret;
		here = *count - i < STELE_COLUMN_PER_BLOCK ? *count - i : STELE_COLUMN_PER_BLOCK;
		here = lower_bound(numbers + i, here, first + STELE_COLUMN_PER_BLOCK);
		if (stele_bounds_meet(bounds, column))
			kept += stele_bounds_keep(bounds, column, first, numbers + i, here,
						  numbers + kept);
		else
			s->blocks_skipped++;
	}
	*count = kept;
	return 0;
}

/* ---- batches -------------------------------------------------------------------------- */

static int grow(struct stele_scan *s, size_t capacity)
{
	uint64_t *numbers, *ids;

	if (capacity <= s->capacity)
		return 0;
	numbers = reallocarray(s->numbers, capacity, sizeof(*numbers));
	if (numbers)
		s->numbers = numbers;
	ids = reallocarray(s->ids, capacity, sizeof(*ids));
	if (ids)
		s->ids = ids;
	if (!numbers || !ids)
		return -ENOMEM;
	s->capacity = capacity;
	return 0;
}

/* Leave out the deleted ones, and find out the ids of the others. */
static size_t number_to_id(const struct stele_segment *segment, uint64_t *numbers,
			   size_t count, uint64_t *ids)
{
	uint64_t below = 0;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (segment->deleted.count &&
		    stele_deleted_has(&segment->deleted, numbers[i], &below))
			continue;
		ids[n] = segment->first_id + numbers[i] - below;
		numbers[n++] = numbers[i];
	}
	return n;
}

/* Numbers of one window, from that of s->id on; adds to the batch what is left of them. */
static int take_window(struct stele_scan *s, uint64_t number)
{
	const struct stele_segment *segment = s->segment;
	const uint64_t end_block = block_of(number) + s->window;
	const uint64_t segment_end = segment->first_id + segment->live_count;
	const uint64_t end_id = s->end_id < segment_end ? s->end_id : segment_end;
	uint64_t end = stele_deleted_live(&segment->deleted, end_id - 1 - segment->first_id) + 1;
	size_t count, room = s->window * (size_t)STELE_COLUMN_PER_BLOCK;
	uint64_t *numbers;
	int ret = grow(s, s->count + room);

	if (ret < 0)
		return ret;
	if (end_block * STELE_COLUMN_PER_BLOCK < end)
		end = end_block * STELE_COLUMN_PER_BLOCK;
	numbers = s->numbers + s->count;
	count = (size_t)(end - number);
	for (size_t i = 0; i < count; i++)
		numbers[i] = number + i;
	for (size_t i = 0; i < s->bounds_count && count && !ret; i++)
		ret = narrow(s, segment, &s->bounds[i], numbers, &count);
	if (ret < 0)
		return ret;
	s->count += number_to_id(segment, numbers, count, s->ids + s->count);
	/* The first id behind the window. */
	s->id = segment->first_id;
	if (end < segment->descriptor.sample_count) {
		uint64_t below = 0;

		stele_deleted_has(&segment->deleted, end, &below);
		s->id += end - below;
	} else {
		s->id += segment->live_count;
	}
	s->window = s->window * 2 < STELE_SCAN_WINDOW ? s->window * 2 : STELE_SCAN_WINDOW;
	return 0;
}

int stele_scan_next(struct stele_scan *s, size_t room, bool fill)
{
	const struct stele_segment *segment;
	uint64_t number;
	int ret = 0;

	s->count = 0;
	while (!ret && s->id < s->end_id && s->count < (fill ? room : 1)) {
		ret = stele_snapshot_locate(&s->ds->snapshot, s->id, &segment, &number);
		if (!ret && s->count && segment != s->segment)
			break;
		s->segment = segment;
		if (!ret)
			ret = take_window(s, number);
		s->pulse->done = s->id;
		if (!ret)
			ret = stele_scan_beat(s->pulse);
	}
	if (ret < 0)
		return ret;
	if (s->count > room)
		stele_scan_keep(s, room);
	return s->count > 0;
}

void stele_scan_keep(struct stele_scan *s, size_t count)
{
	if (count < s->count)
		s->id = s->ids[count];
	s->count = count;
}

int stele_scan_value(struct stele_scan *s, uint32_t field, size_t row, uint64_t *bits)
{
	const struct stele_disk_column *column;
	int ret = get_block(s, s->segment, field, s->numbers + row, s->count - row, &column);

	if (ret < 0)
		return ret;
	*bits = le64_get(column->values[s->numbers[row] % STELE_COLUMN_PER_BLOCK]);
	return 0;
}
