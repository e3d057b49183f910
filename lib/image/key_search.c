/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_search.c - see key_search.h
 */
#include "lib/image/key_search.h"

#include <errno.h>
#include <string.h>

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
