/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section.h - reading the sections of a segment: the cold path
 *
 * Blocking reads of whole blocks, each checked (type, own offset, segment,
 * crc) before use, and proven up to the segment's root if
 * the image has a prover. Thread-safe.
 */
#ifndef STELE_IMAGE_SECTION_H
#define STELE_IMAGE_SECTION_H

#include "format/keys.h"
#include "format/sections.h"
#include "lib/image/ahead.h"
#include "lib/image/snapshot.h"

/* "keys", "order", ...: of a type of blocks of sections. */
const char *stele_section_name(uint32_t type);
/*
 * Read `count` blocks of a section, the first with this index, into `blocks`
 * (from stele_device_alloc()).
 * Return: 0; -ERANGE; -EBADMSG, -EMEDIUMTYPE, -EUCLEAN (logged); device errno.
 */
int stele_section_read(const struct stele_image *image,
		       const struct stele_segment *segment,
		       const struct stele_section *section, uint64_t index,
		       uint64_t count, struct stele_disk_block *blocks);
/* The same for blocks that the caller has read. */
int stele_section_check(const struct stele_image *image,
			const struct stele_segment *segment,
			const struct stele_section *section, uint64_t index,
			uint64_t count, const struct stele_disk_block *blocks);
/* Only that: of blocks that are sound by themselves. */
int stele_section_prove(const struct stele_image *image,
			const struct stele_segment *segment,
			const struct stele_section *section, uint64_t index,
			uint64_t count, const struct stele_disk_block *blocks);
/* The first two without a proof, for building one. */
int stele_section_fetch(const struct stele_image *image,
			const struct stele_segment *segment,
			const struct stele_section *section, uint64_t index,
			uint64_t count, struct stele_disk_block *blocks);
int stele_section_examine(const struct stele_image *image,
			  const struct stele_segment *segment,
			  const struct stele_section *section, uint64_t index,
			  uint64_t count, const struct stele_disk_block *blocks);

/*
 * Have all samples of the segment, deleted ones too, that value of an i64 field?
 * Return: 1; 0; -EUCLEAN (it has no such column); -ENOMEM; errors of stele_section_read().
 */
int stele_column_is(const struct stele_image *image, const struct stele_segment *segment,
		    uint32_t field, int64_t value);

/* False: its filter says that the segment has no such key, without a read. */
bool stele_segment_may_have(const struct stele_image *image,
			    const struct stele_segment *segment, uint64_t hash);

/* Key -> number and size. Return: 0; -ENOENT; errors of read. */
int stele_segment_find_key(const struct stele_image *image,
			   const struct stele_segment *segment, const char *key,
			   size_t key_size, uint64_t *number, uint64_t *size);

/*
 * Does the record of this number have this key? An entry of the keys section is only
 * a hint. The record's checksum is not checked.
 * Return: 0; -EUCLEAN (it has another one); -EBADMSG (not a record); -ENOMEM;
 * device errno.
 */
int stele_segment_check_key(const struct stele_image *image,
			    const struct stele_segment *segment,
			    uint64_t number, const char *key, size_t key_size);

/*
 * Walks the keys of one segment in order, from the first >= prefix on. Consecutive
 * pages are read several at a time, others one by one. One thread at a time.
 */
struct stele_keys_walk {
	const struct stele_image *image;
	const struct stele_segment *segment;
	struct stele_section section;
	struct stele_disk_block *blocks; /* owned: pages that were read */
	uint64_t first;			 /* index of the first of them */
	uint32_t count, room;		 /* of them; that fit */
	uint32_t ahead_max;		 /* of them; 0: a default, and none meanwhile */
	struct stele_ahead *ahead;	 /* owned; NULL: not yet, or it does without */
	uint64_t page;			 /* index of the cursor's */
	struct stele_keys_cursor cursor;
	bool opened, done; /* opened: the first key has not been handed out */
};
/* Return: 0; errors of read. Release with stele_keys_walk_release(). */
int stele_keys_walk_open(const struct stele_image *image,
			 const struct stele_segment *segment, const char *from,
			 size_t from_size, struct stele_keys_walk *walk);
/* Return: 1 (walk->cursor.key is set); 0 at the end; errors of read. */
int stele_keys_walk_next(struct stele_keys_walk *walk);
/*
 * Advance to the first key >= `key`, possibly the current one; never
 * back. Reads a number of pages logarithmic in the distance.
 * Return: as next.
 */
int stele_keys_walk_seek(struct stele_keys_walk *walk, const char *key,
			 size_t key_size);
void stele_keys_walk_release(struct stele_keys_walk *walk);

/* Digest of a number, from the digests section. */
int stele_segment_digest(const struct stele_image *image,
			 const struct stele_segment *segment, uint64_t number,
			 uint8_t digest[32]);

#endif
