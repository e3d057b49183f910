/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - the 4 KiB metadata block, and streams laid over such blocks
 *
 * Every metadata block begins with one header: what it is, a checksum of all
 * its bytes, its own offset (a misdirected read or write shows) and its owner
 * (a stale one shows). stele-format(5), "Blocks".
 *
 * A *stream* is the concatenated payloads of consecutive blocks of one type;
 * structures longer than a payload are streams. Bytes after a stream's end,
 * up to the end of its last block, are zero.
 */
#ifndef STELE_FORMAT_BLOCK_H
#define STELE_FORMAT_BLOCK_H

#include "format/checked.h"
#include "format/le.h"

#define STELE_BLOCK_SIZE	4096u
#define STELE_BLOCK_HEADER_SIZE 32u
#define STELE_BLOCK_PAYLOAD	(STELE_BLOCK_SIZE - STELE_BLOCK_HEADER_SIZE)

/* Not text in any encoding, and hurt by every newline or sign conversion. */
#define STELE_BLOCK_MAGIC "\x93STELE\r\n"

enum stele_block_type {
	STELE_BLOCK_SUPERBLOCK = 1, /* owner: generation */
	STELE_BLOCK_CATALOG = 2,    /* owner: generation */
	STELE_BLOCK_DELETED = 3,    /* owner: generation that wrote it */
	STELE_BLOCK_DESCRIPTOR = 4, /* owner of this and all below: segment id */
	STELE_BLOCK_KEYS = 5,
	STELE_BLOCK_ORDER = 6,
	STELE_BLOCK_COLUMN = 7,
	STELE_BLOCK_DIGESTS = 8,
	STELE_BLOCK_TREE = 9,
	STELE_BLOCK_NAMES = 10,
	STELE_BLOCK_INTENT = 11, /* owner: generation */
};

struct stele_disk_block {
/*000*/	uint8_t magic[8];
/*008*/	le32 type;   /* enum stele_block_type */
/*00c*/	le32 crc;    /* crc32c of the 4096 bytes with this field zero */
/*010*/	le64 offset; /* of this block on the target */
/*018*/	le64 owner;  /* segment id or generation, by type */
/*020*/	uint8_t payload[STELE_BLOCK_PAYLOAD];
};
STELE_CHECK_SIZE(struct stele_disk_block, 4096);
STELE_CHECK_OFFSET(struct stele_disk_block, payload, 0x20);

/* Fill in the header of a block whose payload is complete. */
void stele_block_seal(struct stele_disk_block *block,
		      enum stele_block_type type, uint64_t offset,
		      uint64_t owner);
/* The same for `count` consecutive blocks, the first at `offset`. */
void stele_blocks_seal(struct stele_disk_block *blocks, uint64_t count,
		       enum stele_block_type type, uint64_t offset,
		       uint64_t owner);

/* For checks where the owner is not known yet (superblock, salvage). */
#define STELE_OWNER_ANY UINT64_MAX

/*
 * Is this the block that should lie there? `why` (may be NULL) gets a static
 * text that names the step that failed.
 * Return: 0; -EMEDIUMTYPE (magic); -EBADMSG (crc); -EUCLEAN (type, offset,
 * owner).
 */
int stele_block_check(const struct stele_disk_block *block,
		      enum stele_block_type type, uint64_t offset,
		      uint64_t owner, const char **why);
int stele_blocks_check(const struct stele_disk_block *blocks, uint64_t count,
		       enum stele_block_type type, uint64_t offset,
		       uint64_t owner, const char **why);

/* The crc that a block with these bytes should carry. */
uint32_t stele_block_crc(const struct stele_disk_block *block);

/* Blocks that a stream of `size` bytes takes; 0 for 0. */
uint64_t stele_stream_blocks(uint64_t size);

/* Copy out of or into a stream; false when it does not lie within. */
bool stele_stream_get(const struct stele_disk_block *blocks, uint64_t count,
		      uint64_t position, void *data, size_t size);
bool stele_stream_put(struct stele_disk_block *blocks, uint64_t count,
		      uint64_t position, const void *data, size_t size);
/* Are all bytes from `position` to the end of the last block zero? */
bool stele_stream_zero_from(const struct stele_disk_block *blocks,
			    uint64_t count, uint64_t position);

#endif
