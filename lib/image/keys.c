/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - lookup in, and walk over, the keys section of one segment
 *
 * Both start at the last page whose first key is not above the wanted one: a binary
 * search, which reads a block for each step that no pivot leads past. A walk of all keys
 * needs none.
 * A seeking walk advances in growing steps, then bisects the last of them. One that reads
 * as many pages at a time as it may has the next ones read meanwhile.
 */
#include "lib/image/section.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/filter.h"

#define PAGES_AHEAD_MAX 64u
/* Look-ups of deletions in fewer words than these find them in the cache. */
#define WORDS_CACHED	2048u

static uint64_t page_offset(const struct stele_keys_walk *walk, uint64_t page)
{
	return walk->segment->descriptor.offset + walk->section.offset +
	       page * STELE_BLOCK_SIZE;
}

static int bad_page(const struct stele_keys_walk *walk, const char *why)
{
	stele_log_error(&walk->image->log, "block of keys at %" PRIu64 ": %s",
			page_offset(walk, walk->page), why);
	return -EUCLEAN;
}

static int next_in_page(struct stele_keys_walk *walk)
{
	const char *why = "";
	int ret = stele_keys_next(&walk->cursor, &why);

	if (ret == 1 && walk->cursor.key.number >=
				walk->segment->descriptor.sample_count)
		return bad_page(walk, "number out of range");
	return ret < 0 ? bad_page(walk, why) : ret;
}

static uint64_t page_count(const struct stele_keys_walk *walk)
{
	return walk->section.size / STELE_BLOCK_SIZE;
}

/* Twice as many as before when walking pages, else a single one. */
static uint32_t pages_wanted(const struct stele_keys_walk *walk, uint64_t page)
{
	const uint64_t left = page_count(walk) - page;
	const uint32_t most = walk->ahead_max ? walk->ahead_max : PAGES_AHEAD_MAX;
	uint32_t count = 1;

	if (page == walk->page + 1 && page == walk->first + walk->count)
		count = walk->count * 2;
	if (count > most)
		count = most;
	return count < left ? count : (uint32_t)left;
}

/* Return: as read; -EAGAIN: they were not asked for. */
static int take_ahead(struct stele_keys_walk *walk, uint64_t page,
		      uint32_t count)
{
	void *blocks = walk->blocks;
	int ret = walk->ahead ? stele_ahead_take(walk->ahead,
						 page_offset(walk, page),
						 count * STELE_BLOCK_SIZE,
						 &blocks) :
				-EAGAIN;

	walk->blocks = blocks;
	return ret < 0 ? ret :
			 stele_section_check(walk->image, walk->segment,
					     &walk->section, page, count,
					     walk->blocks);
}

/* Who has come so far will want the pages after these, too. */
static void ask_ahead(struct stele_keys_walk *walk)
{
	const uint64_t next = walk->first + walk->count;
	uint64_t count = page_count(walk) - next;

	if (!count)
		return;
	if (count > walk->ahead_max)
		count = walk->ahead_max;
	if (!walk->ahead)
		walk->ahead = stele_ahead_open(walk->image->dev,
					       walk->ahead_max * STELE_BLOCK_SIZE);
	if (walk->ahead)
		stele_ahead_ask(walk->ahead, page_offset(walk, next),
				count * STELE_BLOCK_SIZE);
}

static int read_pages(struct stele_keys_walk *walk, uint64_t page,
		      uint32_t count)
{
	int ret;

	if (count > walk->room) {
		free(walk->blocks);
		walk->room = 0;
		walk->blocks = stele_device_alloc(walk->image->dev,
						  count * STELE_BLOCK_SIZE);
		if (!walk->blocks)
			return -ENOMEM;
		walk->room = count;
	}
	walk->count = 0;
	ret = take_ahead(walk, page, count);
	if (ret == -EAGAIN)
		ret = stele_section_read(walk->image, walk->segment,
					 &walk->section, page, count,
					 walk->blocks);
	if (ret < 0)
		return ret;
	walk->first = page;
	walk->count = count;
	if (walk->ahead_max && count == walk->ahead_max)
		ask_ahead(walk);
	return 0;
}

/*
 * Numbers of neighbouring keys are random: whoever asks which ones are deleted would wait
 * for memory each time, so all of a page are asked for at once.
 */
static void warm_page(const struct stele_keys_walk *walk)
{
	const struct stele_deleted *deleted = &walk->segment->deleted;
	struct stele_keys_cursor cursor = walk->cursor;
	const char *why;

	if (walk->count == 1 || deleted->word_count < WORDS_CACHED)
		return;
	do
		stele_deleted_prefetch(deleted, cursor.key.number);
	while (stele_keys_next(&cursor, &why) == 1);
}

/* Read a page, and move the cursor to its first key. */
static int open_page(struct stele_keys_walk *walk, uint64_t page)
{
	const char *why = "";
	int ret = 0;

	if (page < walk->first || page - walk->first >= walk->count) {
		uint32_t count = pages_wanted(walk, page);

		ret = read_pages(walk, page, count);
		/* Damage further on does not matter yet. */
		if (ret < 0 && count > 1)
			ret = read_pages(walk, page, 1);
	}
	walk->page = page;
	if (ret < 0)
		return ret;
	if (stele_keys_open(&walk->cursor, &walk->blocks[page - walk->first],
			    &why) < 0)
		return bad_page(walk, why);
	ret = next_in_page(walk);
	if (ret == 1)
		warm_page(walk);
	return ret < 0 ? ret : 0;
}

static int compare_at(const struct stele_keys_walk *walk, const char *key,
		      size_t size)
{
	return stele_key_compare(walk->cursor.key.key,
				 walk->cursor.key.key_size, key, size);
}

/* Move the cursor to the first key of the last page that begins at or below. */
static int seek_page(struct stele_keys_walk *walk, const char *key, size_t size)
{
	struct stele_pivots *pivots = walk->segment->pivots;
	const struct stele_key *first = &walk->cursor.key;
	struct stele_pivot_search search = {.high = page_count(walk), .node = 1};

	if (!size)
		return open_page(walk, 0);
	for (;;) {
		int ret;

		stele_pivots_follow(pivots, &search, key, size);
		ret = open_page(walk, stele_pivots_page(&search));
		if (ret < 0 || search.high - search.low <= 1)
			return ret;
		stele_pivots_halve(pivots, &search, first->key, first->key_size, key, size);
	}
}

/* Advance to the next key, across pages. */
static int advance(struct stele_keys_walk *walk)
{
	int ret = next_in_page(walk);

	if (ret != 0)
		return ret;
	if (walk->page + 1 >= page_count(walk)) {
		walk->done = true;
		return 0;
	}
	ret = open_page(walk, walk->page + 1);
	return ret < 0 ? ret : 1;
}

int stele_keys_walk_open(const struct stele_image *image,
			 const struct stele_segment *segment, const char *from,
			 size_t from_size, struct stele_keys_walk *walk)
{
	int ret;

	memset(walk, 0, sizeof(*walk));
	walk->image = image;
	walk->segment = segment;
	if (stele_descriptor_find_section(&segment->descriptor,
					  STELE_BLOCK_KEYS, STELE_NO_FIELD,
					  &walk->section) < 0) {
		walk->done = true;
		return 0;
	}
	ret = seek_page(walk, from, from_size);
	while (ret >= 0 && !walk->done && compare_at(walk, from, from_size) < 0)
		ret = advance(walk);
	walk->opened = true;
	if (ret < 0)
		stele_keys_walk_release(walk);
	return ret < 0 ? ret : 0;
}

int stele_keys_walk_next(struct stele_keys_walk *walk)
{
	if (walk->done)
		return 0;
	if (walk->opened) {
		walk->opened = false;
		return 1;
	}
	return advance(walk);
}

/* Within the current page. Return: 1; 0 (all of it is smaller); errors. */
static int seek_in_page(struct stele_keys_walk *walk, const char *key,
			size_t size)
{
	int ret = 1;

	while (ret == 1 && compare_at(walk, key, size) < 0)
		ret = next_in_page(walk);
	return ret;
}

/*
 * Open `page`. Return: 1 (the wanted key is in it, and the cursor at it); 0
 * otherwise, and *before (all of the page is smaller) or not (all is larger).
 */
static int try_page(struct stele_keys_walk *walk, uint64_t page,
		    const char *key, size_t size, bool *before)
{
	int ret = open_page(walk, page);

	if (ret < 0)
		return ret;
	*before = compare_at(walk, key, size) <= 0;
	return *before ? seek_in_page(walk, key, size) : 0;
}

/* The current page is all smaller. Return: as seek. */
static int seek_behind(struct stele_keys_walk *walk, const char *key,
		       size_t size)
{
	uint64_t low = walk->page, high = page_count(walk), step = 1;
	bool before = true;
	int ret = 0;

	while (ret == 0 && before && high - low > step) {
		ret = try_page(walk, low + step, key, size, &before);
		if (before)
			low += step;
		else
			high = low + step;
		step *= 2;
	}
	while (ret == 0 && high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		ret = try_page(walk, middle, key, size, &before);
		if (before)
			low = middle;
		else
			high = middle;
	}
	if (ret)
		return ret;
	if (high == page_count(walk)) {
		walk->done = true;
		return 0;
	}
	ret = open_page(walk, high);
	return ret < 0 ? ret : 1;
}

int stele_keys_walk_seek(struct stele_keys_walk *walk, const char *key,
			 size_t key_size)
{
	int ret;

	if (walk->done)
		return 0;
	walk->opened = false;
	ret = seek_in_page(walk, key, key_size);
	return ret ? ret : seek_behind(walk, key, key_size);
}

void stele_keys_walk_release(struct stele_keys_walk *walk)
{
	stele_ahead_close(walk->ahead);
	free(walk->blocks);
	memset(walk, 0, sizeof(*walk));
	walk->done = true;
}

/* Nothing proves what a filter says. */
bool stele_segment_may_have(const struct stele_image *image,
			    const struct stele_segment *segment, uint64_t hash)
{
	return image->prover || !segment->filter ||
	       stele_filter_may_have(segment->filter,
				     segment->descriptor.filter_size, hash);
}

int stele_segment_find_key(const struct stele_image *image,
			   const struct stele_segment *segment, const char *key,
			   size_t key_size, uint64_t *number, uint64_t *size)
{
	struct stele_keys_walk walk;
	const struct stele_key *found = &walk.cursor.key;
	int ret;

	if (!stele_segment_may_have(image, segment,
				    stele_filter_hash(key, key_size)))
		return -ENOENT;
	ret = stele_keys_walk_open(image, segment, key, key_size, &walk);
	if (ret == 0)
		ret = stele_keys_walk_next(&walk);
	if (ret == 1 && stele_key_compare(found->key, found->key_size, key,
					  key_size) != 0)
		ret = 0;
	if (ret == 1) {
		*number = found->number;
		if (size)
			*size = found->size;
	}
	stele_keys_walk_release(&walk);
	if (ret < 0)
		return ret;
	return ret == 1 ? 0 : -ENOENT;
}
