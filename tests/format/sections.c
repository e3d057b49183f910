/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.c - order, columns, the tree's shape, names, deleted lists
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/fixture/corrupt.h"
#include "tests/fixture/specimen.h"
#include "tests/tap.h"

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *state >> 13;
}

static void test_order_shape(void)
{
	is_uint(1, stele_order_width(0), "width for nothing");
	is_uint(1, stele_order_width(1), "for one");
	is_uint(1, stele_order_width(2), "for two");
	is_uint(2, stele_order_width(3), "for three");
	is_uint(10, stele_order_width(1024), "for 1024");
	is_uint(11, stele_order_width(1025), "for 1025");
	is_uint(48, stele_order_width(STELE_SAMPLES_MAX), "for all");
	is_uint(32512, stele_order_per_block(1), "bits in a block");
	is_uint(677, stele_order_per_block(48), "widest in a block");
	is_uint(0, stele_order_blocks(0), "blocks for nothing");
	is_uint(1, stele_order_blocks(1), "for one");
	is_uint(1, stele_order_blocks(2709), "for a full block of 12 bits");
	is_uint(2, stele_order_blocks(2710), "and for one more");
}

/* Every width: fill a block, then write over it, and read all of it back. */
static void test_order(void)
{
	struct stele_disk_block block;
	unsigned int wrong = 0;

	for (uint32_t width = 1; width <= 48; width++) {
		const uint32_t count = stele_order_per_block(width);
		const uint64_t mask = (UINT64_C(1) << width) - 1;
		uint64_t state = width;

		memset(&block, 0xff, sizeof(block));
		for (uint32_t i = count; i-- > 0;)
			stele_order_put(&block, width, i, 0);
		for (uint32_t i = 0; i < count; i++)
			stele_order_put(&block, width, i,
					next_random(&state) & mask);
		state = width;
		for (uint32_t i = 0; i < count; i++)
			wrong += stele_order_get(&block, width, i) !=
				 (next_random(&state) & mask);
		wrong += le64_get(block.owner) != UINT64_MAX;
	}
	is_uint(0, wrong, "numbers of each width come back");
}

static void test_order_golden(void)
{
	struct stele_disk_block block;

	memset(&block, 0, sizeof(block));
	stele_order_put(&block, 12, 0, 0xabc);
	stele_order_put(&block, 12, 1, 0xdef);
	is_blob("\xbc\xfa\xde", block.payload, 4, "low bits first");
}

static void test_column(void)
{
	struct stele_disk_column column = {0};

	is_uint(0, stele_column_blocks(0), "blocks of an empty column");
	is_uint(1, stele_column_blocks(506), "of a full one");
	is_uint(2, stele_column_blocks(507), "of one more");
	column.values[0] = le64_put(5);
	column.values[1] = le64_put((uint64_t)-3);
	column.values[2] = le64_put(4);
	column.values[3] = le64_put(1000);
	stele_column_summarise(&column, 3, STELE_FIELD_I64);
	is_int(-3, (int64_t)le64_get(column.min), "smallest of i64");
	is_int(5, (int64_t)le64_get(column.max),
	       "largest, of those that count");
	stele_column_summarise(&column, 0, STELE_FIELD_I64);
	is_int(INT64_MAX, (int64_t)le64_get(column.min), "smallest of none");
	is_int(INT64_MIN, (int64_t)le64_get(column.max), "largest of none");
}

static le64 f64(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return le64_put(bits);
}

static bool is_f64(double wanted, le64 seen)
{
	return le64_get(f64(wanted)) == le64_get(seen);
}

static void test_column_f64(void)
{
	struct stele_disk_column column = {0};

	column.values[0] = f64(NAN);
	column.values[1] = f64(2.5);
	column.values[2] = f64(-1e300);
	column.values[3] = f64(NAN);
	stele_column_summarise(&column, 4, STELE_FIELD_F64);
	ok(is_f64(-1e300, column.min), "smallest of f64, but for NaN");
	ok(is_f64(2.5, column.max), "largest");
	stele_column_summarise(&column, 1, STELE_FIELD_F64);
	ok(is_f64(INFINITY, column.min), "smallest of NaN alone");
	ok(is_f64(-INFINITY, column.max), "largest");
	column.values[0] = f64(INFINITY);
	stele_column_summarise(&column, 1, STELE_FIELD_F64);
	ok(is_f64(INFINITY, column.min) && is_f64(INFINITY, column.max),
	   "infinity is a value");
}

static void test_tree(void)
{
	struct stele_tree_shape s;

	stele_tree_shape(0, &s);
	ok(s.level_count == 0 && s.tree_blocks == 0, "no blocks, no tree");
	stele_tree_shape(1, &s);
	ok(s.level_count == 1 && s.blocks[0] == 1 && s.tree_blocks == 0,
	   "one block is its own top");
	stele_tree_shape(2, &s);
	ok(s.level_count == 2 && s.blocks[0] == 2 && s.blocks[1] == 1 &&
		   s.first[1] == 0 && s.tree_blocks == 1,
	   "two have one above");
	stele_tree_shape(127 * 127 + 1, &s);
	ok(s.level_count == 4 && s.blocks[0] == 127 * 127 + 1 &&
		   s.blocks[1] == 128 && s.blocks[2] == 2 && s.blocks[3] == 1,
	   "levels of 127^2 + 1");
	ok(s.first[1] == 0 && s.first[2] == 128 && s.first[3] == 130 &&
		   s.tree_blocks == 131,
	   "and where they begin");
	stele_tree_shape(STELE_IMAGE_SIZE_MAX / STELE_BLOCK_SIZE, &s);
	ok(s.level_count == STELE_TREE_LEVELS_MAX &&
		   s.blocks[s.level_count - 1] == 1,
	   "the largest target");
	stele_tree_shape(UINT64_MAX, &s);
	ok(s.level_count <= STELE_TREE_LEVELS_MAX, "an absurd count");
}

static int next_name(const struct stele_disk_block *block, uint64_t size,
		     uint64_t at, char *name)
{
	return stele_names_next(block, 1, size, &at, name);
}

static void test_names(void)
{
	struct stele_disk_block block;
	uint64_t at = 0, size = specimen_names(&block);
	char name[4001];

	is_int(3, stele_names_next(&block, 1, size, &at, name), "first name");
	is_string("cat", name, "is this");
	is_int(3, stele_names_next(&block, 1, size, &at, name), "second name");
	is_string("dog", name, "is this");
	is_int(5, stele_names_next(&block, 1, size, &at, name), "third name");
	is_string("zebra", name, "is this");
	is_uint(size, at, "and no more");
	is_int(-EUCLEAN, next_name(&block, size, at, name), "at the end");
	is_int(-EUCLEAN, next_name(&block, size, UINT64_MAX, name), "wraps");
	is_int(-EUCLEAN, next_name(&block, 1, 0, name), "half a size");
	is_int(-EUCLEAN, next_name(&block, 4, 0, name), "half a name");
	is_int(-EUCLEAN, next_name(&block, 99999, 4063, name),
	       "over the block");
	block.payload[3] = 0;
	is_int(-EUCLEAN, next_name(&block, size, 0, name), "a NUL");
	block.payload[0] = 0;
	is_int(-EUCLEAN, next_name(&block, size, 0, name), "an empty name");
	at = 0;
	stele_names_next(&block, 1, size, &at, name);
	is_uint(0, at, "a refusal leaves the position");
}

static void test_names_long(void)
{
	struct stele_disk_block block;
	char name[4001];

	memset(&block, 'n', sizeof(block));
	block.payload[0] = 4000 & 0xff;
	block.payload[1] = 4000 >> 8;
	is_int(4000, next_name(&block, 4064, 0, name), "the longest name");
	block.payload[0]++;
	is_int(-EUCLEAN, next_name(&block, 4064, 0, name), "and one more byte");
}

static int decode_names(const uint8_t *bytes, const char **why)
{
	const struct stele_disk_block *block =
		(const struct stele_disk_block *)bytes;
	uint64_t at = 0;
	char name[4001];
	int ret = stele_block_check(block, STELE_BLOCK_NAMES, 0x6000,
				    SPECIMEN_SEGMENT_ID, why);

	for (int i = 0; i < 3 && ret >= 0; i++) {
		ret = stele_names_next(block, 1, 17, &at, name);
		if (ret < 0)
			*why = "name";
	}
	return ret < 0 ? ret : 0;
}

#define BYTES(at, n, what, text)                                               \
	.field = what, .position = STELE_BLOCK_HEADER_SIZE + (at),             \
	.size = (n), .why = (text)

static const struct corrupt_row name_rows[] = {
	{BYTES(0, 2, "size", "name")},
	{BYTES(2, 3, "name", NULL), CORRUPT_BUT({HOW_ZERO, "name"})},
	{BYTES(10, 2, "last size", "name"),
	 CORRUPT_BUT({HOW_SUB, NULL}, {HOW_LOW, NULL})},
};

static void test_names_corrupt(void)
{
	struct stele_disk_block block;
	const struct corrupt_subject subject = {
		"names",
		(const uint8_t *)&block,
		sizeof(block),
		corrupt_repair_block,
		decode_names,
		-EBADMSG,
		"block: checksum mismatch",
	};

	specimen_names(&block);
	corrupt_run(&subject, CORRUPT_ROWS(name_rows));
	corrupt_covers(&subject, CORRUPT_ROWS(name_rows), 32, 37, "a name");
	corrupt_bits(&subject, sizeof(block));
}

#define DELETED_COUNT 300
static struct stele_disk_block deleted[2];

/* Of words 0, 3, 6, ... the first and the last number. */
static void fill_deleted(void)
{
	memset(deleted, 0, sizeof(deleted));
	for (uint64_t i = 0; i < DELETED_COUNT; i++)
		stele_deleted_put(deleted, i, i * 3, UINT64_C(1) << 63 | 1);
}

static const char *check_deleted(uint64_t sample_count)
{
	const char *why = NULL;
	int ret =
		stele_deleted_check(deleted, DELETED_COUNT, sample_count, &why);

	return ret == 0 ? "good" : ret == -EUCLEAN ? why : "wrong error";
}

static void is_word(uint64_t at, uint64_t wanted, const char *what)
{
	uint64_t index, bits;

	stele_deleted_get(deleted, at, &index, &bits);
	is_uint(wanted, index, "%s", what);
	is_uint(UINT64_C(1) << 63 | 1, bits, "its bits");
}

static void test_deleted(void)
{
	static const char order[] = "deleted: not ascending";
	static const char range[] = "deleted: number out of range";
	static const char behind[] = "deleted: nonzero bytes after the list";
	const uint64_t most = 64 * (3 * (DELETED_COUNT - 1) + 1);

	is_uint(0, stele_deleted_blocks(0), "blocks of an empty list");
	is_uint(1, stele_deleted_blocks(254), "of a full block");
	is_uint(2, stele_deleted_blocks(255), "of one more");
	fill_deleted();
	is_word(253, 253 * 3, "last of a block");
	is_word(254, 254 * 3, "first of the next");
	is_string("good", check_deleted(most), "a list");
	is_string("good", check_deleted(most + 1), "of a larger segment");
	is_string(range, check_deleted(most - 1), "of a smaller segment");
	is_string(range, check_deleted(most - 64), "without the last word");
	is_string(range, check_deleted(0), "of an empty one");
	stele_deleted_put(deleted, 254, 253 * 3, 1);
	is_string(order, check_deleted(most), "a word twice");
	stele_deleted_put(deleted, 254, 253 * 3 - 1, 1);
	is_string(order, check_deleted(most), "a step back");
	stele_deleted_put(deleted, 254, UINT64_MAX, 1);
	is_string(range, check_deleted(most), "an absurd word");
	stele_deleted_put(deleted, 254, UINT64_C(1) << 58, 1);
	is_string(range, check_deleted(most), "one whose numbers overflow");
	stele_deleted_put(deleted, 254, 254 * 3, 0);
	is_string("deleted: empty word", check_deleted(most), "a word of none");
	fill_deleted();
	stele_deleted_put(deleted, DELETED_COUNT, 0, 1);
	is_string(behind, check_deleted(most), "more than there should be");
}

int main(void)
{
	plan_lazy();
	test_order_shape();
	test_order();
	test_order_golden();
	test_column();
	test_column_f64();
	test_tree();
	test_names();
	test_names_long();
	test_names_corrupt();
	test_deleted();
	return done();
}
