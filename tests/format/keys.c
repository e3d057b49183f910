/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - pages of keys come back as they were written, or not at all
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/fixture/corrupt.h"
#include "tests/fixture/specimen.h"
#include "tests/tap.h"

static void test_round_trip(void)
{
	static const char *const keys[] = {"cat/1.jpg", "cat/10.jpg",
					   "cat/2.jpg", "dog", "dog/1.jpg"};
	struct stele_disk_block block;
	struct stele_keys_cursor cursor;

	specimen_keys(&block);
	is_int(0, stele_keys_open(&cursor, &block, NULL), "opens");
	for (unsigned int i = 0; i < 5; i++) {
		is_int(1, stele_keys_next(&cursor, NULL), "key %u", i);
		is_uint(strlen(keys[i]), cursor.key.key_size, "its size");
		is_blob(keys[i], cursor.key.key, strlen(keys[i]), "its bytes");
		is_uint(100 + i, cursor.key.number, "its number");
		is_uint(1000 * i, cursor.key.size, "size of its sample");
	}
	is_int(0, stele_keys_next(&cursor, NULL), "end of the page");
	is_int(0, stele_keys_next(&cursor, NULL), "and still");
}

/* The bytes of a page, by hand. */
static void test_golden(void)
{
	static const uint8_t wanted[] = {
		5,    0,    116,  0,   0,   0,   0,   0, /* head */
		0,    0,    9,    0,   100, 0,   0,   0,   0,    0,   0,
		0,    0,    0,    0,   0,   'c', 'a', 't', '/',  '1', '.',
		'j',  'p',  'g',  5,   0,   5,   0,   101, 0,    0,   0,
		0,    0,    0xe8, 3,   0,   0,   0,   0,   '0',  '.', 'j',
		'p',  'g',  4,    0,   5,   0,   102, 0,   0,    0,   0,
		0,    0xd0, 7,    0,   0,   0,   0,   '2', '.',  'j', 'p',
		'g',  0,    0,    3,   0,   103, 0,   0,   0,    0,   0,
		0xb8, 11,   0,    0,   0,   0,   'd', 'o', 'g',  3,   0,
		6,    0,    104,  0,   0,   0,   0,   0,   0xa0, 15,  0,
		0,    0,    0,    '/', '1', '.', 'j', 'p', 'g',  0,
	};
	struct stele_disk_block block;

	specimen_keys(&block);
	is_blob(wanted, block.payload, sizeof(wanted), "bytes of a page");
}

/* Numbered keys into pages until `count` are written; pages measured too. */
static void test_full_pages(void)
{
	struct stele_keys_writer writer, measure;
	struct stele_keys_cursor cursor;
	struct stele_disk_block block;
	unsigned int wrong = 0, pages = 0, i = 0;
	char key[32];

	memset(&block, 0xee, sizeof(block));
	while (i < 5000) {
		unsigned int first = i;

		stele_keys_begin(&writer, &block);
		stele_keys_begin(&measure, NULL);
		for (; i < 5000; i++) {
			int size = snprintf(key, sizeof(key), "k/%08u.x", i);
			bool added = stele_keys_add(&writer, key,
						    (uint32_t)size, i, i);

			wrong += stele_keys_add(&measure, key, (uint32_t)size,
						i, i) != added;
			if (!added)
				break;
		}
		stele_keys_end(&writer);
		stele_keys_end(&measure);
		wrong += writer.used != measure.used;
		wrong += stele_keys_open(&cursor, &block, NULL) != 0;
		for (; first < i; first++) {
			snprintf(key, sizeof(key), "k/%08u.x", first);
			wrong += stele_keys_next(&cursor, NULL) != 1 ||
				 cursor.key.key_size != 12 ||
				 memcmp(key, cursor.key.key, 12) != 0 ||
				 cursor.key.number != first;
		}
		wrong += stele_keys_next(&cursor, NULL) != 0;
		pages++;
	}
	is_uint(0, wrong, "5000 keys in pages, written, measured, read");
	ok(pages > 20 && pages < 40, "%u pages", pages);
}

static void test_long_keys(void)
{
	static char key[STELE_RECORD_KEY_MAX];
	struct stele_keys_writer writer;
	struct stele_keys_cursor cursor;
	struct stele_disk_block block;

	memset(key, 'a', sizeof(key));
	stele_keys_begin(&writer, &block);
	ok(stele_keys_add(&writer, key, sizeof(key), 1, 1),
	   "a fresh page has room for the longest key");
	key[sizeof(key) - 1] = 'b';
	ok(stele_keys_add(&writer, key, sizeof(key), 2, STELE_PAYLOAD_SIZE_MAX),
	   "and for its neighbour");
	ok(!stele_keys_add(&writer, "b", 32, 3, 0), "and is full then");
	stele_keys_end(&writer);
	stele_keys_open(&cursor, &block, NULL);
	is_int(1, stele_keys_next(&cursor, NULL), "the first");
	is_int(1, stele_keys_next(&cursor, NULL), "the second");
	is_uint(sizeof(key), cursor.key.key_size, "is whole");
	is_blob(key, cursor.key.key, sizeof(key), "to the last byte");
	is_int(0, stele_keys_next(&cursor, NULL), "the end");
}

/* 8 of the head, 16 + 4000 and 16 + 24 are all that a payload holds. */
static void test_exact_fit(void)
{
	static char key[STELE_RECORD_KEY_MAX];
	struct stele_keys_writer writer;
	struct stele_keys_cursor cursor;
	struct stele_disk_block block;

	memset(key, 'a', sizeof(key));
	stele_keys_begin(&writer, &block);
	stele_keys_add(&writer, key, sizeof(key), 1, 1);
	memset(key + 3975, 'b', 25);
	ok(!stele_keys_add(&writer, key, sizeof(key), 2, 2), "a byte too many");
	key[3975] = 'a';
	ok(stele_keys_add(&writer, key, sizeof(key), 2, 2), "an exact fit");
	stele_keys_end(&writer);
	is_int(0, stele_keys_open(&cursor, &block, NULL), "opens");
	is_int(1, stele_keys_next(&cursor, NULL), "the first");
	is_int(1, stele_keys_next(&cursor, NULL), "the second");
	is_blob(key, cursor.key.key, sizeof(key), "is whole");
	is_int(0, stele_keys_next(&cursor, NULL), "the end");
}

static void test_compare(void)
{
	ok(stele_key_compare("a", 1, "b", 1) < 0, "a before b");
	ok(stele_key_compare("b", 1, "a", 1) > 0, "b behind a");
	ok(stele_key_compare("a", 1, "ab", 2) < 0, "shorter first");
	ok(stele_key_compare("ab", 2, "a", 1) > 0, "longer second");
	ok(stele_key_compare("ab", 2, "ab", 2) == 0, "equal");
	ok(stele_key_compare("\xff", 1, "a", 1) > 0, "bytes are unsigned");
	ok(stele_key_compare("", 0, "a", 1) < 0, "nothing first");
}

static int decode(const uint8_t *bytes, const char **why)
{
	const struct stele_disk_block *block =
		(const struct stele_disk_block *)bytes;
	struct stele_keys_cursor cursor;
	int ret;

	ret = stele_block_check(block, STELE_BLOCK_KEYS, 0x5000,
				SPECIMEN_SEGMENT_ID, why);
	if (ret == 0)
		ret = stele_keys_open(&cursor, block, why);
	if (ret < 0)
		return ret;
	do
		ret = stele_keys_next(&cursor, why);
	while (ret > 0);
	return ret;
}

#define HEAD STELE_BLOCK_HEADER_SIZE
#define HEAD_ROW(name, text)                                                   \
	CORRUPT_ROW(struct stele_disk_keys_page, HEAD, name, text)
/* Entries begin at 8, 33, 54, 75 and 94; the page ends at 116. */
#define ROW(at, name, text)                                                    \
	CORRUPT_ROW(struct stele_disk_key, HEAD + (at), name, text)
#define BYTE(at, text)                                                         \
	.field = "suffix", .position = HEAD + (at), .size = 1, .why = (text)
#define BUT CORRUPT_BUT

static const char early[] = "keys: entries end before used size";
static const char entry[] = "keys: entry beyond used size";
static const char suffix[] = "keys: suffix beyond used size";
static const char shares[] = "keys: shares more than the previous key";
static const char repeated[] = "keys: shared bytes repeated";
static const char nul[] = "keys: NUL byte in a key";
static const char order[] = "keys: not ascending";
static const char range[] = "keys: sample size out of range";

static const struct corrupt_row rows[] = {
	{HEAD_ROW(count, entry), BUT({HOW_ZERO, "keys: empty page"},
				     {HOW_SUB, early}, {HOW_LOW, early})},
	{HEAD_ROW(used, "keys: used size out of range"),
	 BUT({HOW_ADD, early}, {HOW_SUB, suffix}, {HOW_LOW, early})},
	{HEAD_ROW(used, "keys: used size out of range"), CORRUPT_SET(4065)},
	{HEAD_ROW(used, early), CORRUPT_SET(4064)},
	{HEAD_ROW(used, entry), CORRUPT_SET(8)},
	{HEAD_ROW(reserved, "keys: reserved bytes not zero")},
	{ROW(8, shared, shares)},
	{ROW(8, suffix_size, suffix), BUT({HOW_ZERO, "keys: empty suffix"})},
	{ROW(8, number, NULL), .sibling = HEAD + 8 + 10},
	{ROW(8, size, NULL), BUT({HOW_ONES, range}, {HOW_SUB, range},
				 {HOW_HIGH, range}, {HOW_RANDOM, range})},
	{ROW(8, size, NULL), CORRUPT_SET(STELE_PAYLOAD_SIZE_MAX)},
	{ROW(8, size, range), CORRUPT_SET(STELE_PAYLOAD_SIZE_MAX + 1)},
	{BYTE(24, NULL),
	 BUT({HOW_ONES, order}, {HOW_ADD, repeated}, {HOW_HIGH, order},
	     {HOW_RANDOM, order}, {HOW_ZERO, nul})},
	{BYTE(25, NULL), BUT({HOW_ZERO, nul})},
	{ROW(33, shared, order),
	 BUT({HOW_ONES, shares}, {HOW_HIGH, shares}, {HOW_RANDOM, shares})},
	{ROW(33, shared, shares), CORRUPT_SET(10)},
	{BYTE(49, NULL), BUT({HOW_ZERO, order})},
	{BYTE(49, repeated), CORRUPT_SET('.')},
	{BYTE(49, NULL), CORRUPT_SET('/')},
	{.field = "bytes behind",
	 .position = HEAD + 116,
	 .size = STELE_BLOCK_PAYLOAD - 116,
	 .why = "keys: nonzero bytes after entries"},
};

static void test_corruptions(void)
{
	struct stele_disk_block block;
	const struct corrupt_subject subject = {
		"keys",
		(const uint8_t *)&block,
		sizeof(block),
		corrupt_repair_block,
		decode,
		-EBADMSG,
		"block: checksum mismatch",
	};

	specimen_keys(&block);
	corrupt_run(&subject, CORRUPT_ROWS(rows));
	corrupt_covers(&subject, CORRUPT_ROWS(rows), HEAD, HEAD + 24,
		       "the head and an entry");
	corrupt_bits(&subject, sizeof(block));
}

static void test_too_long(void)
{
	static char key[STELE_RECORD_KEY_MAX];
	struct stele_keys_writer writer;
	struct stele_disk_block block;
	const char *why = NULL;

	memset(key, 'a', sizeof(key));
	stele_keys_begin(&writer, &block);
	stele_keys_add(&writer, key, sizeof(key) - 1, 1, 1);
	stele_keys_add(&writer, key, sizeof(key), 2, 1);
	stele_keys_end(&writer);
	stele_block_seal(&block, STELE_BLOCK_KEYS, 0x5000, SPECIMEN_SEGMENT_ID);
	is_int(0, decode((uint8_t *)&block, &why), "a key of 4000 bytes");
	/* One byte more of suffix, for which there is room. */
	block.payload[8 + 16 + 3999 + 2]++;
	block.payload[2]++;
	corrupt_repair_block((uint8_t *)&block);
	is_int(-EUCLEAN, decode((uint8_t *)&block, &why), "of 4001");
	is_string("keys: key too long", why, "says why");
}

int main(void)
{
	plan_lazy();
	test_round_trip();
	test_golden();
	test_full_pages();
	test_long_keys();
	test_exact_fit();
	test_compare();
	test_corruptions();
	test_too_long();
	return done();
}
