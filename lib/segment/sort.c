/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.c - insertion sort of short pieces, then merges from array to array
 */
#include "lib/segment/sort.h"

#include <errno.h>
#include <string.h>

#define PIECE	       16u
#define ENTRY_SIZE_MAX 64u
#define TICK_EVERY     (UINT64_C(1) << 14)

struct sort {
	size_t entry_size;
	stele_sort_compare compare;
	int (*tick)(void *user);
	void *user;
	uint64_t moved; /* entries since the last tick */
};

static bool in_order(const struct sort *sort, const uint8_t *a,
		     const uint8_t *b)
{
	return sort->compare(a, b, sort->user) <= 0;
}

static void sort_piece(const struct sort *sort, uint8_t *base, uint64_t count)
{
	const size_t size = sort->entry_size;
	uint8_t entry[ENTRY_SIZE_MAX];

	for (uint64_t i = 1; i < count; i++) {
		uint8_t *at = base + i * size;

		memcpy(entry, at, size);
		while (at > base && !in_order(sort, at - size, entry)) {
			memcpy(at, at - size, size);
			at -= size;
		}
		memcpy(at, entry, size);
	}
}

static void merge(const struct sort *sort, const uint8_t *from,
		  uint64_t left_count, uint64_t count, uint8_t *to)
{
	const size_t size = sort->entry_size;
	const uint8_t *left = from, *middle = from + left_count * size;
	const uint8_t *right = middle, *end = from + count * size;

	if (right == end || in_order(sort, middle - size, middle)) {
		memcpy(to, from, count * size);
		return;
	}
	while (left < middle && right < end) {
		const uint8_t **side = in_order(sort, left, right) ? &left :
								     &right;
		memcpy(to, *side, size);
		*side += size;
		to += size;
	}
	memcpy(to, left, (size_t)(middle - left));
	to += middle - left;
	memcpy(to, right, (size_t)(end - right));
}

static int asked_to_stop(struct sort *sort, uint64_t moved)
{
	sort->moved += moved;
	if (sort->moved < TICK_EVERY || !sort->tick)
		return 0;
	sort->moved = 0;
	return sort->tick(sort->user) ? -ECANCELED : 0;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int sort_pieces(struct sort *sort, uint8_t *data, uint64_t count)
{
	int ret = 0;

	for (uint64_t at = 0; at < count && !ret; at += PIECE) {
		uint64_t n = at_most(PIECE, count - at);

		sort_piece(sort, data + at * sort->entry_size, n);
		ret = asked_to_stop(sort, n);
	}
	return ret;
}

/* Merge neighbours of `width` entries each. */
static int merge_all(struct sort *sort, const uint8_t *from, uint8_t *to,
		     uint64_t count, uint64_t width)
{
	int ret = 0;

	for (uint64_t at = 0; at < count && !ret; at += 2 * width) {
		uint64_t n = at_most(2 * width, count - at);

		merge(sort, from + at * sort->entry_size, at_most(width, n), n,
		      to + at * sort->entry_size);
		ret = asked_to_stop(sort, n);
	}
	return ret;
}

int stele_sort(struct stele_spill *spill, uint64_t count, size_t entry_size,
	       stele_sort_compare compare, int (*tick)(void *user), void *user)
{
	struct sort sort = {
		.entry_size = entry_size,
		.compare = compare,
		.tick = tick,
		.user = user,
	};
	struct stele_spill other;
	int ret;

	if (count < 2)
		return 0;
	stele_spill_init(&other, spill->pool);
	ret = sort_pieces(&sort, spill->data, count);
	if (!ret && count > PIECE)
		ret = stele_spill_grow(&other, spill->size);
	for (uint64_t width = PIECE; width < count && !ret; width *= 2) {
		struct stele_spill swap = *spill;

		ret = merge_all(&sort, spill->data, other.data, count, width);
		*spill = other;
		other = swap;
	}
	stele_spill_release(&other);
	return ret;
}
