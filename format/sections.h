/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.h - arithmetic and entries of the sections but the keys
 *
 * order: source ordinal <-> number, bit-packed. column: one scalar field by
 * number, with min and max per block. digests and tree: SHA-256 per sample,
 * and hashes of blocks above them. names: class names of a field. deleted:
 * which numbers a snapshot leaves out. No entry but a name crosses a block.
 * stele-format(5), "Sections".
 */
#ifndef STELE_FORMAT_SECTIONS_H
#define STELE_FORMAT_SECTIONS_H

#include "format/block.h"

/*
 * Order: two arrays of `count` numbers of `width` bits, ordinal -> number and
 * then, beginning in a block of its own, number -> ordinal. Bit i of a block's payload is bit
 * i mod 8 of byte i / 8.
 */
uint32_t stele_order_width(uint64_t count);	 /* bits of count - 1, 1..48 */
uint32_t stele_order_per_block(uint32_t width);
uint64_t stele_order_blocks(uint64_t count);	 /* of one array */
uint64_t stele_order_get(const struct stele_disk_block *block, uint32_t width,
			 uint32_t index);
void stele_order_put(struct stele_disk_block *block, uint32_t width,
		     uint32_t index, uint64_t value);

/* Column: le64 min, le64 max, then 506 values; f64 as its IEEE 754 bits. */
#define STELE_COLUMN_PER_BLOCK 506u
struct stele_disk_column {
/*00*/	le64 min; /* over the block; f64: NaN left out, +inf/-inf when none */
/*08*/	le64 max;
/*10*/	le64 values[STELE_COLUMN_PER_BLOCK];
};
STELE_CHECK_SIZE(struct stele_disk_column, STELE_BLOCK_PAYLOAD);

uint64_t stele_column_blocks(uint64_t count);
/* Set min and max over the first `count` values. type: enum stele_field_type. */
void stele_column_summarise(struct stele_disk_column *column, uint32_t count,
			    uint32_t type);

/*
 * Digests: 127 SHA-256 to a block, by number. Tree: level 0 is the blocks of all
 * other sections, in the order of their references; level 1 holds the hash of
 * each of them, level 2 of each level 1 block, ... up to a level of one block.
 * The TREE section holds levels 1, 2, ... one after the other.
 *
 *	leaf = SHA-256(00 || payload || tail without its crc)
 *	hash of a block = SHA-256(01 || its 4064 payload bytes)
 *	root = SHA-256(05 || the section references but TREE's, their offsets
 *	zero || hash of the topmost block); 32 zero bytes for no samples
 */
#define STELE_DIGESTS_PER_BLOCK 127u
#define STELE_TREE_LEVELS_MAX	9u
#define STELE_HASH_LEAF		0x00u
#define STELE_HASH_BLOCK	0x01u
#define STELE_HASH_SNAPSHOT	0x02u
#define STELE_HASH_SCHEMA	0x03u
#define STELE_HASH_DELETED	0x04u
#define STELE_HASH_ROOT		0x05u

struct stele_tree_shape {
	uint32_t level_count;			 /* level 0 included */
	uint64_t blocks[STELE_TREE_LEVELS_MAX];	 /* of level 0, 1, ... */
	uint64_t first[STELE_TREE_LEVELS_MAX];	 /* level 1, ...: index in TREE */
	uint64_t tree_blocks;			 /* of the TREE section */
};
/* `leaf_blocks`: of level 0. */
void stele_tree_shape(uint64_t leaf_blocks, struct stele_tree_shape *out);

/* Of the digests or the hashes of a level, the one with this index, in its block. */
static inline const uint8_t *
stele_digest_entry(const struct stele_disk_block *block, uint64_t index)
{
	return block->payload + index % STELE_DIGESTS_PER_BLOCK * 32;
}

/* Names: a stream of le16 size, bytes (1 to 4000, no NUL). */
#define STELE_NAMES_SIZE_MAX (UINT64_C(16) << 20)
/*
 * The name at *position of a names stream of `stream_size` bytes: size, and
 * *position moved past it; `name` (4001 bytes) gets it, terminated.
 * Return: size; -EUCLEAN.
 */
int stele_names_next(const struct stele_disk_block *blocks, uint64_t count,
		     uint64_t stream_size, uint64_t *position, char *name);

/*
 * Deleted: 254 words to a block. Bit i of a word: is number 64 * index + i deleted?
 * Ascending by index; a word without a bit is not there.
 */
#define STELE_DELETED_PER_WORD	64u
#define STELE_DELETED_PER_BLOCK 254u
struct stele_disk_word {
/*00*/	le64 index;
/*08*/	le64 bits;
};
STELE_CHECK_SIZE(struct stele_disk_word, 16);
/* Of `count` words. */
uint64_t stele_deleted_blocks(uint64_t count);
void stele_deleted_get(const struct stele_disk_block *blocks, uint64_t at,
		       uint64_t *index, uint64_t *bits);
void stele_deleted_put(struct stele_disk_block *blocks, uint64_t at,
		       uint64_t index, uint64_t bits);
/*
 * Check a list of `count` words whose blocks have been checked, all
 * stele_deleted_blocks() of them: numbers below sample_count, words ascending, none
 * of them 0, zeros after them. Return: 0; -EUCLEAN.
 */
int stele_deleted_check(const struct stele_disk_block *blocks, uint64_t count,
			uint64_t sample_count, const char **why);

#endif
