/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h - pages of the keys section: key -> number and exact size
 *
 * Keys of a segment in byte order (a prefix before the longer key), each
 * once. A page is one KEYS block and self-contained: its first
 * key is complete, each further one omits what it shares with the previous one. A
 * lookup is a binary search over the pages' first keys. stele-format(5), "Keys".
 */
#ifndef STELE_FORMAT_KEYS_H
#define STELE_FORMAT_KEYS_H

#include "format/block.h"
#include "format/record.h"

struct stele_disk_keys_page {
/*00*/	le16 count; /* entries, at least 1 */
/*02*/	le16 used;  /* bytes of the payload, including this header */
/*04*/	le32 reserved;
};
STELE_CHECK_SIZE(struct stele_disk_keys_page, 8);

/* Followed by the suffix. */
struct stele_disk_key {
/*00*/	le16 shared; /* bytes shared with the previous key */
/*02*/	le16 suffix_size;
/*04*/	le48 number;
/*0a*/	le48 size; /* of the sample's payload */
};
STELE_CHECK_SIZE(struct stele_disk_key, 16);

struct stele_key {
	char key[STELE_RECORD_KEY_MAX];
	uint32_t key_size;
	uint64_t number;
	uint64_t size;
};

/* Builds one page; with `block` NULL, only measures. */
struct stele_keys_writer {
	struct stele_disk_block *block;
	uint32_t used, count;
	char last[STELE_RECORD_KEY_MAX];
	uint32_t last_size;
};

void stele_keys_begin(struct stele_keys_writer *writer,
		      struct stele_disk_block *block);
/* Keys in order. False: the page is full (a fresh one always has room). */
bool stele_keys_add(struct stele_keys_writer *writer, const char *key,
		    uint32_t key_size, uint64_t number, uint64_t size);
/* Write the page's header; sealing is up to the caller. */
void stele_keys_end(struct stele_keys_writer *writer);

struct stele_keys_cursor {
	const struct stele_disk_block *block;
	uint32_t position, index, count, used;
	struct stele_key key; /* the current one */
};

/*
 * Begin reading a page whose block has been checked. Return: 0; -EUCLEAN
 * (count 0, used out of bounds, reserved).
 */
int stele_keys_open(struct stele_keys_cursor *cursor,
		    const struct stele_disk_block *block, const char **why);
/*
 * Return: 1 (cursor->key is set); 0 (end of page; used is exact, zeros after it);
 * -EUCLEAN (entry outside the page, shared exceeds the last key, less shared than
 * possible, empty or too long key, NUL byte in it, keys not ascending).
 */
int stele_keys_next(struct stele_keys_cursor *cursor, const char **why);

/* memcmp order, shorter first. */
int stele_key_compare(const char *a, size_t a_size, const char *b,
		      size_t b_size);

#endif
