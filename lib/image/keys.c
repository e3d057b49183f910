/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - look-up and walk over the keys section of one segment
 *
 * Both begin with the last page whose first key is not above the wanted one:
 * a binary search that reads one block per step. A walk of all keys needs none.
 */
#include "lib/image/section.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int bad_page(const struct stele_keys_walk *walk, const char *why)
{
	stele_log_error(&walk->image->log,
			"block of keys at %" PRIu64 ": %s",
			walk->segment->descriptor.offset +
				walk->section.offset +
				walk->page * STELE_BLOCK_SIZE,
			why);
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

/* Read a page, and have the cursor at its first key. */
static int open_page(struct stele_keys_walk *walk, uint64_t page)
{
	const char *why = "";
	int ret;

	walk->page = page;
	ret = stele_section_read(walk->image, walk->segment, &walk->section,
				 page, 1, walk->block);
	if (ret < 0)
		return ret;
	if (stele_keys_open(&walk->cursor, walk->block, &why) < 0)
		return bad_page(walk, why);
	ret = next_in_page(walk);
	return ret < 0 ? ret : 0;
}

/* Have the cursor at the first key of the last page that begins at or below. */
static int seek_page(struct stele_keys_walk *walk, const char *key, size_t size)
{
	uint64_t low = 0, high = walk->section.size / STELE_BLOCK_SIZE;
	int ret;

	while (size && high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		ret = open_page(walk, middle);
		if (ret < 0)
			return ret;
		if (stele_key_compare(walk->cursor.key.key,
				      walk->cursor.key.key_size, key, size) > 0)
			high = middle;
		else
			low = middle;
	}
	return open_page(walk, low);
}

/* On to the next key, over the end of a page. */
static int advance(struct stele_keys_walk *walk)
{
	int ret = next_in_page(walk);

	if (ret != 0)
		return ret;
	if (walk->page + 1 >= walk->section.size / STELE_BLOCK_SIZE) {
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
	walk->block = stele_device_alloc(image->dev, STELE_BLOCK_SIZE);
	if (!walk->block)
		return -ENOMEM;
	ret = seek_page(walk, from, from_size);
	while (ret >= 0 && !walk->done &&
	       stele_key_compare(walk->cursor.key.key,
				 walk->cursor.key.key_size, from,
				 from_size) < 0)
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

void stele_keys_walk_release(struct stele_keys_walk *walk)
{
	free(walk->block);
	memset(walk, 0, sizeof(*walk));
	walk->done = true;
}

int stele_segment_find_key(const struct stele_image *image,
			   const struct stele_segment *segment, const char *key,
			   size_t key_size, uint64_t *number, uint64_t *size)
{
	struct stele_keys_walk walk;
	const struct stele_key *found = &walk.cursor.key;
	int ret;

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
