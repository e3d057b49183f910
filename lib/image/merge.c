/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - see merge.h
 */
#include "lib/image/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pages that all walks read ahead together, about; and one at most. */
#define PAGES_AHEAD	4096u
#define PAGES_OF_A_WALK 256u

int stele_keys_merge_init(struct stele_keys_merge *merge, uint32_t capacity)
{
	memset(merge, 0, sizeof(*merge));
	merge->walks = calloc((size_t)capacity + 1, sizeof(*merge->walks));
	merge->heap = calloc((size_t)capacity + 1, sizeof(*merge->heap));
	merge->capacity = capacity;
	return merge->walks && merge->heap ? 0 : -ENOMEM;
}

void stele_keys_merge_release(struct stele_keys_merge *merge)
{
	for (uint32_t i = 0; i < merge->count; i++)
		stele_keys_walk_release(&merge->walks[i]);
	free(merge->walks);
	free(merge->heap);
	memset(merge, 0, sizeof(*merge));
}

static bool goes_before(const struct stele_keys_merge *m, uint32_t a,
			uint32_t b)
{
	const struct stele_key *ka = &m->walks[a].cursor.key;
	const struct stele_key *kb = &m->walks[b].cursor.key;
	int order = stele_key_compare(ka->key, ka->key_size, kb->key,
				      kb->key_size);

	return order ? order < 0 : a < b;
}

static void swap(struct stele_keys_merge *m, uint32_t i, uint32_t j)
{
	uint32_t walk = m->heap[i];

	m->heap[i] = m->heap[j];
	m->heap[j] = walk;
}

static void sift_up(struct stele_keys_merge *m, uint32_t i)
{
	while (i && goes_before(m, m->heap[i], m->heap[(i - 1) / 2])) {
		swap(m, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static void sift_down(struct stele_keys_merge *m, uint32_t i)
{
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= m->heap_size)
			return;
		if (child + 1 < m->heap_size &&
		    goes_before(m, m->heap[child + 1], m->heap[child]))
			child++;
		if (!goes_before(m, m->heap[child], m->heap[i]))
			return;
		swap(m, i, child);
		i = child;
	}
}

int stele_keys_merge_add(struct stele_keys_merge *merge,
			 const struct stele_image *image,
			 const struct stele_segment *segment, const char *from,
			 size_t from_size)
{
	struct stele_keys_walk *walk = &merge->walks[merge->count];
	int ret;

	if (merge->count == merge->capacity)
		return -EINVAL;
	ret = stele_keys_walk_open(image, segment, from, from_size, walk);
	if (ret < 0)
		return ret;
	merge->count++;
	if (merge->capacity <= PAGES_AHEAD / PAGES_OF_A_WALK)
		walk->ahead_max = PAGES_OF_A_WALK;
	ret = stele_keys_walk_next(walk);
	if (ret > 0) {
		merge->heap[merge->heap_size++] = merge->count - 1;
		sift_up(merge, merge->heap_size - 1);
	}
	return ret < 0 ? ret : 0;
}

/* Advance past the key that the caller got. */
static int move_on(struct stele_keys_merge *merge)
{
	int more = stele_keys_walk_next(&merge->walks[merge->heap[0]]);

	if (more < 0)
		return more;
	if (!more)
		merge->heap[0] = merge->heap[--merge->heap_size];
	sift_down(merge, 0);
	merge->taken = false;
	return 0;
}

int stele_keys_merge_next(struct stele_keys_merge *merge, uint32_t *index,
			  const struct stele_key **key)
{
	int ret = merge->taken ? move_on(merge) : 0;

	if (ret < 0 || !merge->heap_size)
		return ret;
	*index = merge->heap[0];
	*key = &merge->walks[*index].cursor.key;
	merge->taken = true;
	return 1;
}

int stele_keys_merge_seek(struct stele_keys_merge *merge, const char *key, size_t key_size)
{
	uint32_t kept = 0;
	int ret = merge->taken ? move_on(merge) : 0;

	for (uint32_t i = 0; ret >= 0 && i < merge->heap_size; i++) {
		ret = stele_keys_walk_seek(&merge->walks[merge->heap[i]], key, key_size);
		if (ret > 0)
			merge->heap[kept++] = merge->heap[i];
	}
	if (ret < 0)
		return ret;
	merge->heap_size = kept;
	for (uint32_t i = kept / 2; i-- > 0;)
		sift_down(merge, i);
	return 0;
}

int stele_keys_merge_id(const struct stele_keys_merge *merge, uint32_t index,
			const struct stele_key *key, uint64_t *id)
{
	return stele_snapshot_id(NULL, merge->walks[index].segment, key->number,
				 id);
}
