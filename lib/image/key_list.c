/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_list.c - see key_list.h
 *
 * Numbers are sorted by ordinal, so pages are visited in ascending order: each search
 * starts at the page of the previous one. One block of the order section and
 * one page of keys are held.
 */
#include "lib/image/key_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PAGES_AHEAD 256u

struct place {
	uint64_t ordinal, number;
};

struct lookup {
	const struct stele_image *image;
	const struct stele_segment *segment;
	struct stele_section order, keys;
	struct stele_disk_block *order_block, *page; /* owned */
	uint64_t order_index, page_index;	     /* UINT64_MAX: none */
	struct stele_keys_cursor cursor;	     /* at the page's first key */
	uint64_t first; /* its ordinal */
};

bool stele_key_list_pays(const struct stele_segment *segment, uint64_t count)
{
	struct stele_section keys;
	uint64_t pages, steps = 1;

	if (stele_descriptor_find_section(&segment->descriptor,
					  STELE_BLOCK_KEYS, STELE_NO_FIELD,
					  &keys) < 0)
		return false;
	pages = keys.size / STELE_BLOCK_SIZE;
	while (pages >> steps)
		steps++;
	/* A step reads a page, and a block of the order section. */
	return count < pages / (2 * steps + 1);
}

/* The ordinal of a number that is in range. */
static int ordinal_of(struct lookup *l, uint64_t number, uint64_t *ordinal)
{
	const uint64_t count = l->segment->descriptor.sample_count;
	const uint32_t width = stele_order_width(count);
	const uint32_t per_block = stele_order_per_block(width);
	const uint64_t index = stele_order_blocks(count) + number / per_block;
	int ret;

	if (index != l->order_index) {
		l->order_index = UINT64_MAX;
		ret = stele_section_read(l->image, l->segment, &l->order,
					 index, 1, l->order_block);
		if (ret < 0)
			return ret;
		l->order_index = index;
	}
	*ordinal = stele_order_get(l->order_block, width,
				   (uint32_t)(number % per_block));
	return *ordinal < count ? 0 : -EUCLEAN;
}

static int next_key(struct lookup *l)
{
	const char *why = "";
	int ret = stele_keys_next(&l->cursor, &why);

	if (ret < 0 || (ret && l->cursor.key.number >=
				       l->segment->descriptor.sample_count)) {
		stele_log_error(&l->image->log, "page of keys: %s",
				ret < 0 ? why : "number out of range");
		return -EUCLEAN;
	}
	return ret;
}

/* Move the cursor to the first key of a page, and find out its ordinal. */
static int open_page(struct lookup *l, uint64_t index)
{
	const char *why = "";
	int ret;

	if (index != l->page_index) {
		l->page_index = UINT64_MAX;
		ret = stele_section_read(l->image, l->segment, &l->keys, index,
					 1, l->page);
		if (ret < 0)
			return ret;
		l->page_index = index;
	}
	if (stele_keys_open(&l->cursor, l->page, &why) < 0)
		return -EUCLEAN;
	ret = next_key(l);
	if (ret <= 0)
		return ret < 0 ? ret : -EUCLEAN;
	return ordinal_of(l, l->cursor.key.number, &l->first);
}

/* Move the cursor to the key of this rank; `low` is a page not after it. */
static int seek(struct lookup *l, uint64_t rank, uint64_t *low)
{
	uint64_t high = l->keys.size / STELE_BLOCK_SIZE;
	int ret;

	while (high - *low > 1) {
		uint64_t middle = *low + (high - *low) / 2;

		ret = open_page(l, middle);
		if (ret < 0)
			return ret;
		if (l->first > rank)
			high = middle;
		else
			*low = middle;
	}
	ret = open_page(l, *low);
	if (ret < 0)
		return ret;
	if (l->first > rank)
		return -ENOENT;
	for (uint64_t at = l->first; at < rank; at++) {
		ret = next_key(l);
		if (ret <= 0)
			return ret < 0 ? ret : -ENOENT;
	}
	return 0;
}

static int take(const struct stele_key *key, struct stele_key_list *out)
{
	struct stele_key_entry *entry = &out->entries[out->count];

	entry->key = malloc(key->key_size);
	if (!entry->key)
		return -ENOMEM;
	memcpy(entry->key, key->key, key->key_size);
	entry->key_size = key->key_size;
	entry->number = key->number;
	entry->size = key->size;
	out->count++;
	return 0;
}

static int by_ordinal(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static int look_up(struct lookup *l, const uint64_t *numbers, uint64_t count,
		   struct place *places, struct stele_key_list *out)
{
	uint64_t low = 0;
	int ret = 0;

	for (uint64_t i = 0; i < count && ret == 0; i++) {
		places[i].number = numbers[i];
		ret = numbers[i] < l->segment->descriptor.sample_count ?
			      ordinal_of(l, numbers[i], &places[i].ordinal) :
			      -ERANGE;
	}
	if (ret < 0)
		return ret;
	qsort(places, count, sizeof(*places), by_ordinal);
	for (uint64_t i = 0; i < count && ret == 0; i++) {
		ret = seek(l, places[i].ordinal, &low);
		if (ret == 0 && l->cursor.key.number != places[i].number)
			ret = -ENOENT;
		if (ret == 0)
			ret = take(&l->cursor.key, out);
	}
	return ret;
}

int stele_key_list_load(const struct stele_image *image,
			const struct stele_segment *segment,
			const uint64_t *numbers, uint64_t count,
			struct stele_key_list *out)
{
	const struct stele_descriptor *d = &segment->descriptor;
	struct lookup l = {
		.image = image,
		.segment = segment,
		.order_index = UINT64_MAX,
		.page_index = UINT64_MAX,
	};
	struct place *places = NULL;
	int ret = -ENOMEM;

	memset(out, 0, sizeof(*out));
	if (stele_descriptor_find_section(d, STELE_BLOCK_KEYS, STELE_NO_FIELD,
					  &l.keys) < 0 ||
	    stele_descriptor_find_section(d, STELE_BLOCK_ORDER, STELE_NO_FIELD,
					  &l.order) < 0)
		return -ENOENT;
	l.order_block = stele_device_alloc(image->dev, STELE_BLOCK_SIZE);
	l.page = stele_device_alloc(image->dev, STELE_BLOCK_SIZE);
	places = calloc(count + 1, sizeof(*places));
	out->entries = calloc(count + 1, sizeof(*out->entries));
	if (l.order_block && l.page && places && out->entries)
		ret = look_up(&l, numbers, count, places, out);
	free(places);
	free(l.page);
	free(l.order_block);
	return ret;
}

void stele_key_list_release(struct stele_key_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->entries[i].key);
	free(list->entries);
	memset(list, 0, sizeof(*list));
}

/* ---- sizes ------------------------------------------------------------------- */

struct total {
	uint64_t found, size;
};

static int count_in(struct total *total, uint64_t size)
{
	total->found++;
	return checked_add(total->size, size, &total->size) ? 0 : -EUCLEAN;
}

static int sum_few(const struct stele_image *image, const struct stele_segment *segment,
		   const uint64_t *numbers, uint64_t count, struct total *total)
{
	struct stele_key_list list;
	int ret = stele_key_list_load(image, segment, numbers, count, &list);

	for (size_t i = 0; i < list.count && ret == 0; i++)
		ret = count_in(total, list.entries[i].size);
	stele_key_list_release(&list);
	return ret;
}

static int sum_walk(const struct stele_image *image, const struct stele_segment *segment,
		    const struct stele_deleted *wanted, struct total *total)
{
	struct stele_keys_walk walk;
	int ret = stele_keys_walk_open(image, segment, NULL, 0, &walk);

	if (ret < 0)
		return ret;
	walk.ahead_max = PAGES_AHEAD;
	while ((ret = stele_keys_walk_next(&walk)) > 0) {
		const struct stele_key *key = &walk.cursor.key;

		ret = stele_deleted_has(wanted, key->number, NULL) ?
			      count_in(total, key->size) : 0;
		if (ret < 0)
			break;
	}
	stele_keys_walk_release(&walk);
	return ret;
}

static int sum_many(const struct stele_image *image, const struct stele_segment *segment,
		    const uint64_t *numbers, uint64_t count, struct total *total)
{
	struct stele_deleted wanted;
	int ret = stele_deleted_make(numbers, count, &wanted);

	if (ret == 0)
		ret = sum_walk(image, segment, &wanted, total);
	stele_deleted_release(&wanted);
	return ret;
}

int stele_key_list_payload(const struct stele_image *image,
			   const struct stele_segment *segment,
			   const uint64_t *numbers, uint64_t count, uint64_t *size)
{
	struct total total = {0};
	uint64_t cost;
	int ret = -ENOENT;

	if (checked_mul(count, STELE_KEY_LIST_COST, &cost) &&
	    stele_key_list_pays(segment, cost))
		ret = sum_few(image, segment, numbers, count, &total);
	if (ret == -ENOENT) { /* or the source was not in the order of its keys */
		total = (struct total){0};
		ret = sum_many(image, segment, numbers, count, &total);
	}
	if (ret == 0 && total.found != count) {
		stele_log_error(&image->log,
				"keys of segment %016" PRIx64 ": %" PRIu64 " of %" PRIu64
				" samples are listed", segment->descriptor.id,
				total.found, count);
		ret = -EUCLEAN;
	}
	*size = total.size;
	return ret;
}
