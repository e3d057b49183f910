/* SPDX-License-Identifier: Apache-2.0 */
/*
 * space.c - see space.h
 */
#include "lib/tune/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/checked.h"

#define PAGE_BYTES	4096u
#define PICKS_MAX	64u

/* `boundary` 0: none; extents meet at its multiples, and stay apart. */
static int add(struct stele_tune_space *space, uint64_t begin, uint64_t end,
	       uint64_t boundary)
{
	struct stele_tune_extent *last =
		space->count ? &space->extents[space->count - 1] : NULL;

	if (begin >= end)
		return 0;
	if (last && last->offset + last->size == begin &&
	    (!boundary || begin % boundary)) {
		last->size += end - begin;
		return 0;
	}
	if (space->count == space->room) {
		size_t room = space->room ? 2 * space->room : 64;
		void *grown = reallocarray(space->extents, room, sizeof(*last));

		if (!grown)
			return -ENOMEM;
		space->extents = grown;
		space->room = room;
	}
	space->extents[space->count++] =
		(struct stele_tune_extent){begin, end - begin, 0};
	return 0;
}

/*
 * Slots of one run, which ends at `end`, of a segment at `base`. With a boundary:
 * block by block, and of the blocks every `share`-th.
 */
static int add_run(struct stele_tune_space *space, uint64_t base,
		   const struct stele_run *run, uint64_t end,
		   uint64_t boundary, uint64_t share)
{
	uint64_t at = run->offset, next, last, i = 0;
	int err = 0;

	if (!boundary || run->slot_size > boundary)
		return add(space, base + at, base + end, 0);
	for (; !err && at < end; at = next, i++) {
		next = round_down(at, boundary) + boundary;
		last = at + (next - at) / run->slot_size * run->slot_size;
		if (last > end)
			last = end;
		if (i % share == 0)
			err = add(space, base + at, base + last, boundary);
	}
	return err;
}

static int add_segment(struct stele_tune_space *space,
		       const struct stele_segment *segment, uint64_t share)
{
	const struct stele_descriptor *d = &segment->descriptor;
	uint64_t end;
	int err = 0;

	for (uint32_t i = 0; !err && i < d->run_count; i++) {
		const struct stele_run *run = &segment->runs[i];
		uint64_t behind = i + 1 < d->run_count ? run[1].first :
							 d->sample_count;

		/* It was checked when the segment was loaded. */
		if (!stele_run_end(run, behind - run->first, d->boundary, &end))
			return -EUCLEAN;
		err = add_run(space, d->offset, run, end, d->boundary, share);
	}
	return err;
}

/* Of the blocks that boundaries make; 1: take all. */
static uint64_t share_of(const struct stele_snapshot *snapshot)
{
	uint64_t blocks = 0;

	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		const struct stele_descriptor *d =
			&snapshot->segments[i].descriptor;

		if (d->boundary)
			blocks += d->records_size / d->boundary;
	}
	return 1 + blocks / STELE_TUNE_EXTENTS_MAX;
}

int stele_tune_space_init(struct stele_tune_space *space,
			  const struct stele_dataset *ds)
{
	const struct stele_snapshot *snapshot = &ds->snapshot;
	uint64_t share = share_of(snapshot);
	int err = 0;

	memset(space, 0, sizeof(*space));
	space->align = ds->image.dev->limits.logical_block;
	if (space->align < PAGE_BYTES)
		space->align = PAGE_BYTES;
	for (uint32_t i = 0; !err && i < snapshot->segment_count; i++)
		err = add_segment(space, &snapshot->segments[i], share);
	for (size_t i = 0; !err && i < space->count; i++) {
		space->extents[i].before = space->size;
		space->size += space->extents[i].size;
	}
	if (!err && !space->size)
		err = -ENOENT;
	if (err)
		stele_tune_space_release(space);
	return err;
}

void stele_tune_space_release(struct stele_tune_space *space)
{
	free(space->extents);
	memset(space, 0, sizeof(*space));
}

/* Room for reads between the first and the last aligned place; may be 0. */
static uint64_t room_in(const struct stele_tune_space *space, size_t i)
{
	const struct stele_tune_extent *extent = &space->extents[i];
	uint64_t begin = round_up(extent->offset, space->align);
	uint64_t end = round_down(extent->offset + extent->size, space->align);

	return end > begin ? end - begin : 0;
}

bool stele_tune_space_fits(const struct stele_tune_space *space, uint32_t size,
			   unsigned int places)
{
	uint64_t found = 0;

	for (size_t i = 0; i < space->count && found < places; i++)
		found += room_in(space, i) / size;
	return found >= places;
}

/* The extent that holds byte `at` of them all. */
static size_t find(const struct stele_tune_space *space, uint64_t at)
{
	size_t low = 0, high = space->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (space->extents[middle].before <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t stele_tune_space_pick(const struct stele_tune_space *space,
			       uint32_t size, uint64_t *state)
{
	uint64_t at = stele_random_next(state) % space->size, begin, end;
	size_t i = find(space, at);

	for (unsigned int picks = 0; picks < PICKS_MAX; picks++) {
		const struct stele_tune_extent *extent = &space->extents[i];

		if (room_in(space, i) >= size) {
			begin = round_up(extent->offset, space->align);
			end = round_down(extent->offset + extent->size,
					 space->align) - size;
			at = stele_random_next(state) %
			     ((end - begin) / space->align + 1);
			return begin + at * space->align;
		}
		i = find(space, stele_random_next(state) % space->size);
	}
	while (room_in(space, i) < size) /* rare: look at all */
		i = (i + 1) % space->count;
	return round_up(space->extents[i].offset, space->align);
}
