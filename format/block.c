/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - seal and check metadata blocks, copy out of and into streams
 *
 * The checks are in order of trust: the magic says that the bytes are
 * ours at all, the checksum that they are intact, the rest that they
 * belong here.
 */
#include "format/block.h"

#include "format/crc32c.h"
#include "format/decode.h"

#define CRC_OFFSET offsetof(struct stele_disk_block, crc)

static const uint8_t block_magic[] = STELE_BLOCK_MAGIC;
#define MAGIC_SIZE sizeof(((struct stele_disk_block *)0)->magic)
_Static_assert(sizeof(block_magic) == MAGIC_SIZE + 1, "magic is not 8 bytes");

uint32_t stele_block_crc(const struct stele_disk_block *block)
{
	static const uint8_t zero[sizeof(block->crc)];
	const uint8_t *bytes = (const uint8_t *)block;
	const size_t rest = CRC_OFFSET + sizeof(zero);
	uint32_t crc;

	crc = stele_crc32c(0, bytes, CRC_OFFSET);
	crc = stele_crc32c(crc, zero, sizeof(zero));
	return stele_crc32c(crc, bytes + rest, STELE_BLOCK_SIZE - rest);
}

void stele_block_seal(struct stele_disk_block *block,
		      enum stele_block_type type, uint64_t offset,
		      uint64_t owner)
{
	memcpy(block->magic, block_magic, MAGIC_SIZE);
	block->type = le32_put((uint32_t)type);
	block->offset = le64_put(offset);
	block->owner = le64_put(owner);
	block->crc = le32_put(stele_block_crc(block));
}

void stele_blocks_seal(struct stele_disk_block *blocks, uint64_t count,
		       enum stele_block_type type, uint64_t offset,
		       uint64_t owner)
{
	for (uint64_t i = 0; i < count; i++)
		stele_block_seal(&blocks[i], type,
				 offset + i * STELE_BLOCK_SIZE, owner);
}

int stele_block_check(const struct stele_disk_block *block,
		      enum stele_block_type type, uint64_t offset,
		      uint64_t owner, const char **why)
{
	if (memcmp(block->magic, block_magic, MAGIC_SIZE) != 0)
		return refuse(why, -EMEDIUMTYPE, "block: not one of a Stele image");
	if (le32_get(block->crc) != stele_block_crc(block))
		return refuse(why, -EBADMSG, "block: checksum mismatch");
	if (le32_get(block->type) != (uint32_t)type)
		return unclean(why, "block: wrong type");
	if (le64_get(block->offset) != offset)
		return unclean(why, "block: belongs to another offset");
	if (owner != STELE_OWNER_ANY && le64_get(block->owner) != owner)
		return unclean(why, "block: belongs to another owner");
	return 0;
}

int stele_blocks_check(const struct stele_disk_block *blocks, uint64_t count,
		       enum stele_block_type type, uint64_t offset,
		       uint64_t owner, const char **why)
{
	for (uint64_t i = 0; i < count; i++) {
		int ret =
			stele_block_check(&blocks[i], type, offset, owner, why);

		if (ret < 0)
			return ret;
		offset += STELE_BLOCK_SIZE;
	}
	return 0;
}

uint64_t stele_stream_blocks(uint64_t size)
{
	return ceil_div(size, STELE_BLOCK_PAYLOAD);
}

static bool stream_range_ok(uint64_t count, uint64_t position, uint64_t size)
{
	uint64_t limit;

	return checked_mul(count, STELE_BLOCK_PAYLOAD, &limit) &&
	       range_ok(position, size, limit);
}

bool stele_stream_get(const struct stele_disk_block *blocks, uint64_t count,
		      uint64_t position, void *data, size_t size)
{
	const struct stele_disk_block *block;
	size_t at = position % STELE_BLOCK_PAYLOAD;
	uint8_t *out = data;

	if (!stream_range_ok(count, position, size))
		return false;
	block = blocks + position / STELE_BLOCK_PAYLOAD;
	while (size > 0) {
		size_t room = STELE_BLOCK_PAYLOAD - at;
		size_t part = size < room ? size : room;

		memcpy(out, block->payload + at, part);
		out += part;
		size -= part;
		at = 0;
		block++;
	}
	return true;
}

bool stele_stream_put(struct stele_disk_block *blocks, uint64_t count,
		      uint64_t position, const void *data, size_t size)
{
	struct stele_disk_block *block;
	size_t at = position % STELE_BLOCK_PAYLOAD;
	const uint8_t *in = data;

	if (!stream_range_ok(count, position, size))
		return false;
	block = blocks + position / STELE_BLOCK_PAYLOAD;
	while (size > 0) {
		size_t room = STELE_BLOCK_PAYLOAD - at;
		size_t part = size < room ? size : room;

		memcpy(block->payload + at, in, part);
		in += part;
		size -= part;
		at = 0;
		block++;
	}
	return true;
}

bool stele_stream_zero_from(const struct stele_disk_block *blocks,
			    uint64_t count, uint64_t position)
{
	size_t at = position % STELE_BLOCK_PAYLOAD;

	for (uint64_t i = position / STELE_BLOCK_PAYLOAD; i < count; i++) {
		if (!bytes_zero(blocks[i].payload + at,
				STELE_BLOCK_PAYLOAD - at))
			return false;
		at = 0;
	}
	return true;
}
