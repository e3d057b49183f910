/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - write and read one page of the keys section
 *
 * A page has a unique encoding: each key omits all that it shares with the previous
 * one. So one comparison of two bytes, the first that differ, proves both
 * the order and the encoding.
 */
#include "format/keys.h"

#include "format/decode.h"

#define HEAD_SIZE  ((uint32_t)sizeof(struct stele_disk_keys_page))
#define ENTRY_SIZE ((uint32_t)sizeof(struct stele_disk_key))

void stele_keys_begin(struct stele_keys_writer *writer,
		      struct stele_disk_block *block)
{
	writer->block = block;
	writer->used = HEAD_SIZE;
	writer->count = 0;
	writer->last_size = 0;
}

static uint32_t shared_size(const struct stele_keys_writer *writer,
			    const char *key, uint32_t key_size)
{
	uint32_t limit =
		key_size < writer->last_size ? key_size : writer->last_size;
	uint32_t i = 0;

	while (i < limit && key[i] == writer->last[i])
		i++;
	return i;
}

bool stele_keys_add(struct stele_keys_writer *writer, const char *key,
		    uint32_t key_size, uint64_t number, uint64_t size)
{
	uint32_t shared = shared_size(writer, key, key_size);
	uint32_t suffix = key_size - shared;

	if (suffix > STELE_BLOCK_PAYLOAD - ENTRY_SIZE ||
	    writer->used > STELE_BLOCK_PAYLOAD - ENTRY_SIZE - suffix)
		return false;
	if (writer->block) {
		const struct stele_disk_key entry = {
			.shared = le16_put((uint16_t)shared),
			.suffix_size = le16_put((uint16_t)suffix),
			.number = le48_put(number),
			.size = le48_put(size),
		};
		uint8_t *p = writer->block->payload + writer->used;

		memcpy(p, &entry, sizeof(entry));
		memcpy(p + ENTRY_SIZE, key + shared, suffix);
	}
	memcpy(writer->last + shared, key + shared, suffix);
	writer->last_size = key_size;
	writer->used += ENTRY_SIZE + suffix;
	writer->count++;
	return true;
}

void stele_keys_end(struct stele_keys_writer *writer)
{
	const struct stele_disk_keys_page page = {
		.count = le16_put((uint16_t)writer->count),
		.used = le16_put((uint16_t)writer->used),
	};

	if (!writer->block)
		return;
	memcpy(writer->block->payload, &page, sizeof(page));
	memset(writer->block->payload + writer->used, 0,
	       STELE_BLOCK_PAYLOAD - writer->used);
}

int stele_keys_open(struct stele_keys_cursor *cursor,
		    const struct stele_disk_block *block, const char **why)
{
	struct stele_disk_keys_page page;

	memcpy(&page, block->payload, sizeof(page));
	cursor->block = block;
	cursor->position = HEAD_SIZE;
	cursor->index = 0;
	cursor->count = le16_get(page.count);
	cursor->used = le16_get(page.used);
	cursor->key.key_size = 0;
	if (cursor->count == 0)
		return unclean(why, "keys: empty page");
	if (cursor->used < HEAD_SIZE || cursor->used > STELE_BLOCK_PAYLOAD)
		return unclean(why, "keys: used size out of range");
	if (le32_get(page.reserved) != 0)
		return unclean(why, "keys: reserved bytes not zero");
	return 0;
}

static int check_end(const struct stele_keys_cursor *cursor, const char **why)
{
	if (cursor->position != cursor->used)
		return unclean(why, "keys: entries end before used size");
	if (!bytes_zero(cursor->block->payload + cursor->used,
			STELE_BLOCK_PAYLOAD - cursor->used))
		return unclean(why, "keys: nonzero bytes after entries");
	return 0;
}

/* Does key[0, shared) || suffix follow the key, with all shared dropped? */
static int check_order(const struct stele_key *key, uint32_t shared,
		       const uint8_t *suffix, const char **why)
{
	uint8_t old;

	if (shared == key->key_size)
		return 0;
	old = (uint8_t)key->key[shared];
	if (suffix[0] == old)
		return unclean(why, "keys: shared bytes repeated");
	if (suffix[0] < old)
		return unclean(why, "keys: not ascending");
	return 0;
}

int stele_keys_next(struct stele_keys_cursor *cursor, const char **why)
{
	struct stele_key *key = &cursor->key;
	const uint32_t left = cursor->used - cursor->position;
	const uint8_t *p = cursor->block->payload + cursor->position;
	struct stele_disk_key entry;
	uint32_t shared, suffix;
	int ret;

	if (cursor->index == cursor->count)
		return check_end(cursor, why);
	if (left < ENTRY_SIZE)
		return unclean(why, "keys: entry beyond used size");
	memcpy(&entry, p, sizeof(entry));
	p += ENTRY_SIZE;
	shared = le16_get(entry.shared);
	suffix = le16_get(entry.suffix_size);
	if (suffix > left - ENTRY_SIZE)
		return unclean(why, "keys: suffix beyond used size");
	if (shared > key->key_size)
		return unclean(why, "keys: shares more than the previous key");
	if (suffix == 0)
		return unclean(why, "keys: empty suffix");
	if (shared + suffix > STELE_RECORD_KEY_MAX)
		return unclean(why, "keys: key too long");
	ret = check_order(key, shared, p, why);
	if (ret < 0)
		return ret;
	if (memchr(p, '\0', suffix))
		return unclean(why, "keys: NUL byte in a key");
	if (le48_get(entry.size) > STELE_PAYLOAD_SIZE_MAX)
		return unclean(why, "keys: sample size out of range");
	memcpy(key->key + shared, p, suffix);
	key->key_size = shared + suffix;
	key->number = le48_get(entry.number);
	key->size = le48_get(entry.size);
	cursor->position += ENTRY_SIZE + suffix;
	cursor->index++;
	return 1;
}

int stele_key_compare(const char *a, size_t a_size, const char *b,
		      size_t b_size)
{
	size_t common = a_size < b_size ? a_size : b_size;
	int order = common ? memcmp(a, b, common) : 0;

	return order ? order : (a_size > b_size) - (a_size < b_size);
}
