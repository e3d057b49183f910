/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - a block is accepted only whole and where it belongs; streams
 */
#include <errno.h>
#include <string.h>

#include "format/block.h"
#include "tests/fixture/corrupt.h"
#include "tests/tap.h"

#define OFFSET UINT64_C(0x200000)
#define OWNER  UINT64_C(0x1234567890abcdef)
#define BLOCKS 3

static void fill(struct stele_disk_block *blocks, size_t count)
{
	memset(blocks, 0, count * sizeof(*blocks));
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < STELE_BLOCK_PAYLOAD; k++)
			blocks[i].payload[k] = (uint8_t)(k * 3 + i);
	stele_blocks_seal(blocks, count, STELE_BLOCK_ORDER, OFFSET, OWNER);
}

static int decode(const uint8_t *bytes, const char **why)
{
	return stele_block_check((const struct stele_disk_block *)bytes,
				 STELE_BLOCK_ORDER, OFFSET, OWNER, why);
}

#define ROW(name, text) CORRUPT_ROW(struct stele_disk_block, 0, name, text)
static const struct corrupt_row rows[] = {
	{ROW(type, "block: wrong type")},
	{ROW(offset, "block: belongs to another offset"),
	 .sibling = offsetof(struct stele_disk_block, owner)},
	{ROW(owner, "block: belongs to another owner")},
	{ROW(payload, NULL)},
};

static void test_corruptions(void)
{
	struct stele_disk_block block;
	const struct corrupt_subject subject = {
		"block",
		(const uint8_t *)&block,
		sizeof(block),
		corrupt_repair_block,
		decode,
		-EBADMSG,
		"block: checksum mismatch",
	};

	fill(&block, 1);
	corrupt_run(&subject, CORRUPT_ROWS(rows));
	corrupt_covers(&subject, CORRUPT_ROWS(rows), 0x10, sizeof(block),
		       "all behind the checksum");
	corrupt_bits(&subject, sizeof(block));
}

static void test_magic(void)
{
	struct stele_disk_block block;
	unsigned int wrong = 0;

	fill(&block, 1);
	for (unsigned int bit = 0; bit < 64; bit++) {
		const char *why = NULL;

		block.magic[bit / 8] ^= (uint8_t)(1u << bit % 8);
		corrupt_repair_block((uint8_t *)&block);
		if (decode((uint8_t *)&block, &why) != -EMEDIUMTYPE || !why ||
		    strcmp(why, "block: not one of a Stele image") != 0)
			wrong++;
		block.magic[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	is_uint(0, wrong, "no bit of the magic may differ");
}

static void test_owner(void)
{
	struct stele_disk_block block;

	fill(&block, 1);
	is_int(0,
	       stele_block_check(&block, STELE_BLOCK_ORDER, OFFSET,
				 STELE_OWNER_ANY, NULL),
	       "any owner");
	is_int(-EUCLEAN,
	       stele_block_check(&block, STELE_BLOCK_ORDER, OFFSET, OWNER + 1,
				 NULL),
	       "another owner");
}

static void test_many(void)
{
	struct stele_disk_block blocks[BLOCKS], swap;

	fill(blocks, BLOCKS);
	is_int(0,
	       stele_blocks_check(blocks, BLOCKS, STELE_BLOCK_ORDER, OFFSET,
				  OWNER, NULL),
	       "blocks in a row");
	is_int(0,
	       stele_blocks_check(blocks, 0, STELE_BLOCK_ORDER, OFFSET, OWNER,
				  NULL),
	       "no block at all");
	is_hex(OFFSET + 2 * STELE_BLOCK_SIZE, le64_get(blocks[2].offset),
	       "the third one knows its place");
	blocks[2].payload[7] ^= 1;
	is_int(-EBADMSG,
	       stele_blocks_check(blocks, BLOCKS, STELE_BLOCK_ORDER, OFFSET,
				  OWNER, NULL),
	       "the last one is damaged");
	blocks[2].payload[7] ^= 1;
	swap = blocks[0];
	blocks[0] = blocks[1];
	blocks[1] = swap;
	is_int(-EUCLEAN,
	       stele_blocks_check(blocks, BLOCKS, STELE_BLOCK_ORDER, OFFSET,
				  OWNER, NULL),
	       "two have changed places");
}

static void test_stream_size(void)
{
	is_uint(0, stele_stream_blocks(0), "a stream of nothing");
	is_uint(1, stele_stream_blocks(1), "of a byte");
	is_uint(1, stele_stream_blocks(4064), "of a block");
	is_uint(2, stele_stream_blocks(4065), "of a byte more");
	is_uint(UINT64_MAX / 4064 + 1, stele_stream_blocks(UINT64_MAX),
		"of all bytes");
}

static void test_stream(void)
{
	struct stele_disk_block blocks[BLOCKS];
	uint8_t data[STELE_BLOCK_PAYLOAD + 200], seen[sizeof(data)];

	memset(blocks, 0xee, sizeof(blocks));
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 5 + 1);
	ok(stele_stream_put(blocks, BLOCKS, 4000, data, sizeof(data)),
	   "put over two borders");
	ok(stele_stream_get(blocks, BLOCKS, 4000, seen, sizeof(seen)), "get");
	is_blob(data, seen, sizeof(data), "the same bytes");
	is_int(data[64], blocks[1].payload[0], "a payload holds the next one");
	is_int(data[4128], blocks[2].payload[0], "and the one behind it");
	is_hex(0xeeeeeeeeeeeeeeee, le64_get(blocks[1].owner),
	       "headers are left alone");
	is_hex(0xee, blocks[0].payload[3999], "and so is what lies before");
	is_hex(0xee, blocks[2].payload[136], "and behind");
}

static void test_stream_bounds(void)
{
	struct stele_disk_block blocks[BLOCKS];
	const uint64_t end = BLOCKS * STELE_BLOCK_PAYLOAD;
	uint8_t byte[2] = {0};

	memset(blocks, 0, sizeof(blocks));
	ok(stele_stream_get(blocks, BLOCKS, end - 2, byte, 2), "to the end");
	ok(!stele_stream_get(blocks, BLOCKS, end - 1, byte, 2), "over it");
	ok(stele_stream_get(blocks, BLOCKS, end, byte, 0), "nothing at it");
	ok(!stele_stream_get(blocks, BLOCKS, end + 1, byte, 0), "behind it");
	ok(!stele_stream_get(blocks, BLOCKS, UINT64_MAX, byte, 2), "a wrap");
	ok(!stele_stream_get(blocks, UINT64_MAX, 0, byte, 2), "absurd count");
	ok(!stele_stream_put(blocks, BLOCKS, end - 1, byte, 2), "put over it");
	ok(!stele_stream_put(blocks, BLOCKS, UINT64_MAX, byte, 2), "put wraps");
}

static void test_stream_zero(void)
{
	struct stele_disk_block blocks[BLOCKS];

	memset(blocks, 0xff, sizeof(blocks));
	for (size_t i = 1; i < BLOCKS; i++)
		memset(blocks[i].payload, 0, STELE_BLOCK_PAYLOAD);
	ok(stele_stream_zero_from(blocks, BLOCKS, 4064), "zero from a border");
	ok(!stele_stream_zero_from(blocks, BLOCKS, 4063), "a byte before it");
	blocks[2].payload[4063] = 1;
	ok(!stele_stream_zero_from(blocks, BLOCKS, 4064), "the last byte");
	ok(!stele_stream_zero_from(blocks, BLOCKS, 3 * 4064 - 1), "alone");
	ok(stele_stream_zero_from(blocks, BLOCKS, 3 * 4064), "nothing left");
}

int main(void)
{
	plan_lazy();
	test_corruptions();
	test_magic();
	test_owner();
	test_many();
	test_stream_size();
	test_stream();
	test_stream_bounds();
	test_stream_zero();
	return done();
}
