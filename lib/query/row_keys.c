/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_keys.c - from numbers to keys and sizes, by rank or by a walk
 */
#include "lib/query/row_keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/key_list.h"

#define BEAT_KEYS 8192u /* walked between two questions whether to go on */

static int reserve_rows(struct stele_row_keys *k, size_t count)
{
	if (count > k->capacity) {
		free(k->rows);
		k->capacity = 0;
		k->rows = calloc(count, sizeof(*k->rows));
		if (!k->rows)
			return -ENOMEM;
		k->capacity = count;
	}
	memset(k->rows, 0, count * sizeof(*k->rows));
	k->used = 0;
	return 0;
}

static int reserve_text(struct stele_row_keys *k, size_t size)
{
	uint64_t room = k->room ? k->room : 65536;
	char *text;

	if (size <= k->room - k->used)
		return 0;
	if (k->used + size > STELE_ROW_KEYS_MEMORY)
		return -EOVERFLOW;
	while (room < k->used + size)
		room *= 2;
	text = realloc(k->text, room);
	if (!text)
		return -ENOMEM;
	k->text = text;
	k->room = room;
	return 0;
}

/* `key`: NULL: the size is all that is wanted. */
static int put(struct stele_row_keys *k, size_t row, const char *key, uint32_t key_size,
	       uint64_t size)
{
	int ret = key ? reserve_text(k, key_size) : 0;

	if (ret < 0)
		return ret;
	k->rows[row] = (struct stele_row_key){
		.size = size,
		.offset = k->used,
		.key_size = key_size,
	};
	if (key) {
		memcpy(k->text + k->used, key, key_size);
		k->used += key_size;
	}
	return 0;
}

/* The row of a number; `count`: it is none. */
static size_t find(const uint64_t *numbers, size_t count, uint64_t number)
{
	size_t low = 0, high = count;
	uint64_t guess;

	if (number < numbers[0] || number > numbers[count - 1])
		return count;
	guess = number - numbers[0]; /* right if all are consecutive, and never too low */
	if (guess < count && numbers[guess] == number)
		return (size_t)guess;
	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (numbers[middle] <= number)
			low = middle;
		else
			high = middle;
	}
	return numbers[low] == number ? low : count;
}

static int look_up(struct stele_row_keys *k, const struct stele_scan *scan, bool with_keys)
{
	struct stele_key_list list = {0};
	int ret = stele_key_list_load(&scan->ds->image, scan->segment, scan->numbers,
				      scan->count, &list);

	for (size_t i = 0; i < list.count && !ret; i++) {
		const struct stele_key_entry *entry = &list.entries[i];
		const size_t row = find(scan->numbers, scan->count, entry->number);

		ret = row < scan->count ? put(k, row, with_keys ? entry->key : NULL,
					      entry->key_size, entry->size) :
					  -EUCLEAN;
	}
	stele_key_list_release(&list);
	return ret;
}

static int walk(struct stele_row_keys *k, const struct stele_scan *scan, bool with_keys)
{
	struct stele_keys_walk walk;
	unsigned int until = BEAT_KEYS;
	int ret = stele_keys_walk_open(&scan->ds->image, scan->segment, NULL, 0, &walk);

	if (ret < 0)
		return ret;
	while ((ret = stele_keys_walk_next(&walk)) > 0) {
		const struct stele_key *key = &walk.cursor.key;
		const size_t row = find(scan->numbers, scan->count, key->number);

		ret = 0;
		if (row < scan->count)
			ret = put(k, row, with_keys ? key->key : NULL, key->key_size, key->size);
		if (!ret && !--until) {
			until = BEAT_KEYS;
			ret = stele_scan_beat(scan->pulse);
		}
		if (ret < 0)
			break;
	}
	stele_keys_walk_release(&walk);
	return ret;
}

static int check(const struct stele_row_keys *k, const struct stele_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++) {
		if (k->rows[i].key_size)
			continue;
		stele_log_error(&scan->ds->image.log, "sample %" PRIu64 " has no key",
				scan->ids[i]);
		return -EUCLEAN;
	}
	return 0;
}

int stele_row_keys_load(struct stele_row_keys *k, const struct stele_scan *scan,
			bool with_keys)
{
	int ret = reserve_rows(k, scan->count);

	if (ret < 0)
		return ret;
	ret = -ENOENT;
	if (stele_key_list_pays(scan->segment, STELE_KEY_LIST_COST * scan->count))
		ret = look_up(k, scan, with_keys);
	if (ret == -ENOENT) { /* or the source was not in the order of its keys */
		k->used = 0;
		ret = walk(k, scan, with_keys);
	}
	return ret < 0 ? ret : check(k, scan);
}

int stele_row_keys_set(struct stele_row_keys *k, const char *key, size_t key_size,
		       uint64_t size)
{
	int ret = reserve_rows(k, 1);

	return ret < 0 ? ret : put(k, 0, key, (uint32_t)key_size, size);
}

void stele_row_keys_release(struct stele_row_keys *k)
{
	free(k->rows);
	free(k->text);
	memset(k, 0, sizeof(*k));
}
