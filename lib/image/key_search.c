/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_search.c - see key_search.h
 */
#include "lib/image/key_search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/filter.h"
#include "lib/image/merge.h"

int stele_key_place_compare(const void *a, const void *b)
{
	const struct stele_key_place *x = a, *y = b;

	return stele_key_compare(x->key, x->key_size, y->key, y->key_size);
}

/* Does looking up `count` keys read less than walking all of them? */
static bool look_up_pays(const struct stele_snapshot *snapshot, size_t count)
{
	uint64_t pages = 0, steps = 0, reads;

	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		struct stele_section keys;
		uint64_t left;

		if (stele_descriptor_find_section(
			    &snapshot->segments[i].descriptor,
			    STELE_BLOCK_KEYS, STELE_NO_FIELD, &keys) < 0)
			continue;
		left = keys.size / STELE_BLOCK_SIZE;
		pages += left;
		for (steps++; left; left /= 2)
			steps++;
	}
	return checked_mul(steps, count, &reads) && reads < pages;
}

static int look_up(const struct stele_image *image,
		   const struct stele_snapshot *snapshot,
		   struct stele_key_place *place)
{
	uint64_t id;
	int ret;

	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		const struct stele_segment *segment = &snapshot->segments[i];

		ret = stele_segment_find_key(image, segment, place->key,
					     place->key_size, &place->number,
					     &place->size);
		if (ret == 0)
			ret = stele_snapshot_id(snapshot, segment,
						place->number, &id);
		if (ret == 0)
			ret = stele_segment_check_key(image, segment,
						      place->number, place->key,
						      place->key_size);
		if (ret == 0) {
			place->found = true;
			place->segment = i;
			return 0;
		}
		if (ret != -ENOENT)
			return ret == -ERANGE ? -EUCLEAN : ret;
	}
	return 0;
}

/* One key of the walk, against the places from *next on. */
static int match(struct stele_keys_merge *merge, uint32_t segment,
		 const struct stele_key *key, struct stele_key_place *places,
		 size_t count, size_t *next)
{
	uint64_t id;
	int order = 1, ret;

	while (*next < count) {
		order = stele_key_compare(places[*next].key,
					  places[*next].key_size, key->key,
					  key->key_size);
		if (order >= 0)
			break;
		++*next;
	}
	if (order)
		return 0;
	ret = stele_keys_merge_id(merge, segment, key, &id);
	if (ret < 0)
		return ret == -ENOENT ? 0 : -EUCLEAN;
	places[*next].found = true;
	places[*next].segment = segment;
	places[*next].number = key->number;
	places[*next].size = key->size;
	return 0;
}

static int walk(const struct stele_image *image,
		const struct stele_snapshot *snapshot,
		struct stele_key_place *places, size_t count)
{
	struct stele_keys_merge merge;
	const struct stele_key *key;
	size_t next = 0;
	uint32_t index;
	int ret;

	ret = stele_keys_merge_init(&merge, snapshot->segment_count);
	for (uint32_t i = 0; ret == 0 && i < snapshot->segment_count; i++)
		ret = stele_keys_merge_add(&merge, image,
					   &snapshot->segments[i],
					   places[0].key, places[0].key_size);
	while (ret == 0 && next < count) {
		ret = stele_keys_merge_next(&merge, &index, &key);
		if (ret <= 0)
			break;
		ret = match(&merge, index, key, places, count, &next);
	}
	stele_keys_merge_release(&merge);
	return ret;
}

int stele_snapshot_find_keys(const struct stele_image *image,
			     const struct stele_snapshot *snapshot,
			     struct stele_key_place *places, size_t count)
{
	int ret = 0;

	for (size_t i = 0; i < count; i++)
		places[i].found = false;
	if (!count)
		return 0;
	if (!look_up_pays(snapshot, count))
		return walk(image, snapshot, places, count);
	for (size_t i = 0; i < count && ret == 0; i++)
		ret = look_up(image, snapshot, &places[i]);
	return ret;
}

/* ---- one key in many segments ------------------------------------------------ */

#define DEPTH 64u

/* One segment's search. */
struct probe {
	struct stele_section keys;
	struct stele_pivot_search search;
	uint64_t page; /* that is being read */
	bool ended;
};

static void begin(const struct stele_image *image,
		  const struct stele_segment *segment, uint64_t hash,
		  struct probe *probe)
{
	*probe = (struct probe){.ended = true};
	if (!stele_segment_may_have(image, segment, hash) ||
	    stele_descriptor_find_section(&segment->descriptor,
					  STELE_BLOCK_KEYS, STELE_NO_FIELD,
					  &probe->keys) < 0 ||
	    !probe->keys.size)
		return;
	probe->search.high = probe->keys.size / STELE_BLOCK_SIZE;
	probe->search.node = 1;
	probe->ended = false;
}

/* The key in a page from its first one on. Return: as stele_segment_find_key(). */
static int look_into(struct stele_keys_cursor *cursor,
		     const char *key, size_t key_size, uint64_t *number)
{
	const char *why = "";
	int order, more = 1;

	do {
		order = stele_key_compare(cursor->key.key, cursor->key.key_size,
					  key, key_size);
		if (order == 0)
			*number = cursor->key.number;
		else if (order < 0)
			more = stele_keys_next(cursor, &why);
	} while (order < 0 && more > 0);
	if (more < 0)
		return -EUCLEAN;
	return order ? -ENOENT : 0;
}

/* A page has come. Return: 1: it halves what is left; else the result. */
static int step(const struct stele_image *image,
		const struct stele_segment *segment, struct probe *probe,
		const struct stele_disk_block *page, const char *key,
		size_t key_size, uint64_t *number)
{
	struct stele_keys_cursor cursor;
	const char *why = "";
	int ret = stele_section_check(image, segment, &probe->keys, probe->page,
				      1, page);

	if (ret < 0)
		return ret;
	if (stele_keys_open(&cursor, page, &why) < 0 ||
	    stele_keys_next(&cursor, &why) <= 0)
		return -EUCLEAN;
	if (probe->search.high - probe->search.low == 1)
		return look_into(&cursor, key, key_size, number);
	stele_pivots_halve(segment->pivots, &probe->search, cursor.key.key,
			   cursor.key.key_size, key, key_size);
	return 1;
}

/* One page of each that goes on. Return: how many; errors of the queue. */
static int read_round(const struct stele_segment *segments, uint32_t count,
		      struct stele_queue *queue, struct probe *probes, const char *key,
		      size_t key_size, struct stele_disk_block *pages,
		      struct stele_request *requests)
{
	unsigned int n = 0;
	int ret;

	for (uint32_t i = 0; i < count; i++) {
		struct probe *probe = &probes[i];

		if (probe->ended)
			continue;
		stele_pivots_follow(segments[i].pivots, &probe->search, key, key_size);
		probe->page = stele_pivots_page(&probe->search);
		requests[n++] = (struct stele_request){
			.op = STELE_OP_READ,
			.data = &pages[i],
			.offset = segments[i].descriptor.offset +
				  probe->keys.offset +
				  probe->page * STELE_BLOCK_SIZE,
			.size = STELE_BLOCK_SIZE,
			.user = probe,
		};
	}
	ret = stele_queue_run(queue, requests, n);
	return ret < 0 ? ret : (int)n;
}

int stele_segments_find_key(const struct stele_image *image,
			    const struct stele_segment *segments,
			    uint32_t count, const char *key, size_t key_size,
			    struct stele_key_hit *hits)
{
	const uint64_t hash = stele_filter_hash(key, key_size);
	struct probe *probes = calloc(count, sizeof(*probes));
	struct stele_request *requests = calloc(count, sizeof(*requests));
	struct stele_disk_block *pages =
		stele_device_alloc(image->dev, count * sizeof(*pages));
	struct stele_queue *queue = NULL;
	int ret = -ENOMEM;

	if (probes && requests && pages)
		ret = stele_queue_open(image->dev, DEPTH, NULL, 0, &queue);
	for (uint32_t i = 0; ret == 0 && i < count; i++) {
		begin(image, &segments[i], hash, &probes[i]);
		hits[i].result = -ENOENT;
	}
	for (ret = ret < 0 ? ret : 1; ret > 0;) {
		ret = read_round(segments, count, queue, probes, key, key_size,
				 pages, requests);
		for (int i = 0; i < ret; i++) {
			struct probe *probe = requests[i].user;
			const uint32_t at = (uint32_t)(probe - probes);

			int *result = &hits[at].result;

			*result = requests[i].status;
			if (!*result)
				*result = step(image, &segments[at], probe,
					       &pages[at], key, key_size,
					       &hits[at].number);
			probe->ended = *result <= 0;
		}
	}
	/* What a queue that broke may still write to stays, for good. */
	if (!stele_queue_close(queue))
		free(pages);
	free(probes);
	free(requests);
	return ret;
}
