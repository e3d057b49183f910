/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.c - a catalog comes back as it was stored, or not at all
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/crc32c.h"
#include "tests/fixture/specimen.h"
#include "tests/tap.h"

static void test_round_trip(void)
{
	struct stele_superblock sb;
	struct stele_disk_block block;
	struct stele_catalog c;
	struct stele_catalog_segment segment;
	struct stele_catalog_snapshot snapshot;
	struct stele_catalog_ref ref;
	struct stele_catalog_free extent;
	char note[16] = "";

	specimen_catalog(&block);
	specimen_superblock(&sb);
	is_int(0, stele_catalog_decode(&block, sizeof(block), &sb, &c, NULL),
	       "decodes");
	is_uint(9, c.next_snapshot_id, "next snapshot id");
	stele_catalog_segment(&c, 1, &segment);
	ok(segment.id == 0x2222 && segment.offset == 0x400000 &&
		   segment.size == 0x200000 &&
		   segment.descriptor_size == 0x2000 &&
		   segment.sample_count == 2000,
	   "segment");
	stele_catalog_snapshot(&c, 1, &snapshot);
	ok(snapshot.id == 2 && snapshot.parent == 1 && snapshot.time == -1 &&
		   snapshot.source_time == 1600000000 &&
		   snapshot.payload_size == 123456 &&
		   snapshot.sample_count == 1500 && snapshot.digest[0] == 2 &&
		   snapshot.first_ref == 0 && snapshot.ref_count == 2,
	   "snapshot");
	is_string("v2", snapshot.name, "its name");
	stele_catalog_snapshot(&c, 2, &snapshot);
	is_string("train-2026.11", snapshot.name, "a longer one");
	stele_catalog_ref(&c, 2, &ref);
	ok(ref.segment == 1 && ref.deleted_count == 600 &&
		   ref.lists[0].offset == 0x2800000 && ref.lists[0].count == 24 &&
		   ref.lists[0].owner == 3 && ref.lists[1].offset == 0x2900000 &&
		   ref.lists[1].count == 2 && ref.lists[1].owner == 5,
	   "reference");
	stele_catalog_free(&c, 2, &extent);
	ok(extent.offset == 0x800000 && extent.size == 0x100000, "free extent");
	stele_catalog_note(&c, 2, note);
	is_string("third note", note, "note");
}

/* The bytes of what says that the last two are deleted, and the rest in its place. */
static void test_deleted(void)
{
	static const uint8_t counts[] = {1, 0, 0, 0}, deleted[] = {2, 0, 0, 0};
	static const uint8_t time[] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
	const struct stele_catalog_counts two = {
		.segments = 1, .snapshots = 1, .deleted = 2, .refs = 1, .notes_size = 6};
	const struct stele_catalog_segment segment = {
		0x1234, 0x201000, 0x4000, 0x1000, 1, 0, 0, 0, 0};
	const struct stele_catalog_ref ref = {0};
	struct stele_superblock sb = {
		.generation = 1,
		.feature_incompat = STELE_FEATURE_UNDELETE,
		.high_water = 0x205000,
		.catalog_offset = 0x200000,
		.catalog_size = 0x1000,
	};
	struct stele_disk_block block = {0};
	const uint8_t *bytes = block.payload;
	struct stele_catalog_snapshot snapshot;
	struct stele_catalog c;
	const char *why = "";
	char note[2];

	stele_catalog_begin(&block, &two, 9);
	stele_catalog_put_segment(&block, &two, 0, &segment);
	for (uint32_t i = 0; i < 3; i++) {
		snapshot = (struct stele_catalog_snapshot){
			.name = "v", .id = i ? 4 + i : 8, .ref_count = 1, .sample_count = 1,
			.note_offset = 2 * i, .note_size = 2,
			.deleted_time = i ? 0x1122334455667788 : 0};
		stele_catalog_put_snapshot(&block, &two, i, &snapshot);
	}
	stele_catalog_put_ref(&block, &two, 0, &ref);
	stele_catalog_put_notes(&block, &two, "aabbcc");
	stele_catalog_end(&block, &two, 0x200000, 1);
	ok(!memcmp(bytes + 0x0c, counts, 4), "snapshots at 0c");
	ok(!memcmp(bytes + 0x28, deleted, 4), "deleted ones at 28");
	ok(!memcmp(bytes + 64 + 64 + 192 + 0xa8, time, 8), "time of deletion at a8");
	is_uint(64 + 64 + 3 * 192 + 64 + 6, stele_catalog_stream_size(&two), "size");
	sb.catalog_crc = stele_crc32c(0, &block, sizeof(block));
	is_int(0, stele_catalog_decode(&block, 4096, &sb, &c, &why), "decodes %s", why);
	is_uint(2, c.counts.deleted, "two deleted");
	stele_catalog_snapshot(&c, 2, &snapshot);
	is_uint(6, snapshot.id, "the second of them");
	is_int(0x1122334455667788, snapshot.deleted_time, "its time");
	stele_catalog_note(&c, 2, note);
	ok(!memcmp(note, "cc", 2), "its note");
}

#define MANY 16384u

/* The first snapshot has all segments, the others none. */
static void put_many(struct stele_disk_block *blocks,
		     const struct stele_catalog_counts *counts)
{
	stele_catalog_begin(blocks, counts, MANY + 2);
	for (uint32_t i = 0; i < MANY; i++) {
		struct stele_catalog_segment segment = {
			.id = UINT64_C(0x9e3779b97f4a7c15) * (i + 1),
			.offset = 0x200000 + i * UINT64_C(0x2000),
			.size = 0x2000,
			.descriptor_size = 0x1000,
		};
		struct stele_catalog_snapshot snapshot = {
			.id = i + 1,
			.first_ref = i ? MANY : 0,
			.ref_count = i ? 0 : MANY,
		};
		const struct stele_catalog_ref ref = {.segment = i};

		snprintf(snapshot.name, sizeof(snapshot.name), "s%u",
			 i * 7919 % MANY);
		stele_catalog_put_segment(blocks, counts, i, &segment);
		stele_catalog_put_snapshot(blocks, counts, i, &snapshot);
		stele_catalog_put_ref(blocks, counts, i, &ref);
	}
}

/* As many as there may be, and then one of them twice. */
static void test_many(void)
{
	static const struct stele_catalog_counts counts = {.segments = MANY,
							   .snapshots = MANY,
							   .refs = MANY};
	const uint64_t block_count =
		stele_stream_blocks(stele_catalog_stream_size(&counts));
	struct stele_disk_block *blocks = calloc(block_count, sizeof(*blocks));
	struct stele_superblock many = {
		.generation = 5,
		.high_water = 0x40000000,
		.catalog_offset = 0x20000000,
		.catalog_size = block_count * sizeof(*blocks),
	};
	struct stele_catalog_snapshot snapshot;
	struct stele_catalog c;
	const char *why = NULL;

	if (!blocks)
		sysbail("calloc");
	put_many(blocks, &counts);
	stele_catalog_end(blocks, &counts, many.catalog_offset, 5);
	many.catalog_crc = stele_crc32c(0, blocks, many.catalog_size);
	is_int(0,
	       stele_catalog_decode(blocks, many.catalog_size, &many, &c, &why),
	       "%u of each", MANY);
	stele_catalog_snapshot(&c, MANY - 1, &snapshot);
	is_uint(MANY, snapshot.id, "the last one");
	stele_catalog_snapshot(&c, 5, &snapshot);
	snapshot.id = MANY;
	stele_catalog_put_snapshot(blocks, &counts, MANY - 1, &snapshot);
	stele_catalog_end(blocks, &counts, many.catalog_offset, 5);
	many.catalog_crc = stele_crc32c(0, blocks, many.catalog_size);
	is_int(-EUCLEAN,
	       stele_catalog_decode(blocks, many.catalog_size, &many, &c, &why),
	       "one name twice");
	is_string("catalog: duplicate snapshot name", why, "says why");
	free(blocks);
}

/* References count in each snapshot that has them. */
static void test_shared(void)
{
	static const struct stele_catalog_counts counts = {.segments = MANY,
							   .snapshots = MANY,
							   .refs = MANY};
	const uint32_t most = STELE_REFS_MAX / MANY;
	const uint64_t block_count =
		stele_stream_blocks(stele_catalog_stream_size(&counts));
	struct stele_disk_block *blocks = calloc(block_count, sizeof(*blocks));
	struct stele_superblock many = {
		.generation = 5,
		.high_water = 0x40000000,
		.catalog_offset = 0x20000000,
		.catalog_size = block_count * sizeof(*blocks),
	};
	struct stele_catalog_snapshot snapshot;
	struct stele_catalog c = {.blocks = blocks, .block_count = block_count,
				  .counts = counts};
	const char *why = "";

	if (!blocks)
		sysbail("calloc");
	put_many(blocks, &counts);
	for (uint32_t i = 0; i <= most; i++) {
		stele_catalog_snapshot(&c, i, &snapshot);
		snapshot.first_ref = 0;
		snapshot.ref_count = MANY;
		if (i < most)
			stele_catalog_put_snapshot(blocks, &counts, i, &snapshot);
	}
	stele_catalog_end(blocks, &counts, many.catalog_offset, 5);
	many.catalog_crc = stele_crc32c(0, blocks, many.catalog_size);
	is_int(0,
	       stele_catalog_decode(blocks, many.catalog_size, &many, &c, &why),
	       "%u snapshots with the same %u: %s", most, MANY, why);
	stele_catalog_put_snapshot(blocks, &counts, most, &snapshot);
	stele_catalog_end(blocks, &counts, many.catalog_offset, 5);
	many.catalog_crc = stele_crc32c(0, blocks, many.catalog_size);
	is_int(-EUCLEAN,
	       stele_catalog_decode(blocks, many.catalog_size, &many, &c, &why),
	       "one more");
	is_string("catalog: too many references", why, "says why");
	free(blocks);
}

static void test_empty(void)
{
	static const struct stele_catalog_counts counts = {0};
	struct stele_disk_block block = {0};
	struct stele_superblock empty = {
		.generation = 1,
		.high_water = 0x202000,
		.catalog_offset = 0x200000,
		.catalog_size = 0x1000,
	};
	struct stele_catalog c;

	stele_catalog_begin(&block, &counts, 1);
	stele_catalog_end(&block, &counts, 0x200000, 1);
	empty.catalog_crc = stele_crc32c(0, &block, sizeof(block));
	is_uint(64, stele_catalog_stream_size(&counts), "size of an empty one");
	is_int(0, stele_catalog_decode(&block, 4096, &empty, &c, NULL),
	       "an empty catalog");
}

/* Of a segment that no snapshot names. */
static void test_unused(void)
{
	static const struct stele_catalog_counts counts = {.segments = 1};
	static const struct {
		int64_t since;
		const char *why;
	} cases[] = {
		{1, NULL},
		{INT64_MAX, NULL},
		{0, "catalog: unused, but no time since"},
		{-1, "catalog: unused before 1970"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stele_catalog_segment segment = {
			0x1234, 0x201000, 0x4000, 0x1000, 1, cases[i].since, 0, 0, 0};
		struct stele_superblock unused = {
			.generation = 1,
			.high_water = 0x205000,
			.catalog_offset = 0x200000,
			.catalog_size = 0x1000,
		};
		struct stele_disk_block block = {0};
		struct stele_catalog c;
		const char *why = NULL;

		stele_catalog_begin(&block, &counts, 1);
		stele_catalog_put_segment(&block, &counts, 0, &segment);
		stele_catalog_end(&block, &counts, 0x200000, 1);
		unused.catalog_crc = stele_crc32c(0, &block, sizeof(block));
		is_int(cases[i].why ? -EUCLEAN : 0,
		       stele_catalog_decode(&block, 4096, &unused, &c, &why),
		       "a segment unused since %jd",
		       (intmax_t)cases[i].since);
		is_string(cases[i].why, why, "says why");
		if (cases[i].why)
			continue;
		stele_catalog_segment(&c, 0, &segment);
		ok(segment.unused_since == cases[i].since, "round trip");
	}
}

static void test_names(void)
{
	char name[65];

	memset(name, 'a', sizeof(name));
	ok(stele_name_ok(name, 63), "63 bytes");
	ok(!stele_name_ok(name, 64), "64 bytes");
	ok(!stele_name_ok(name, 0), "no byte");
	ok(stele_name_ok("Az09._-", 7), "all kinds of bytes");
	ok(stele_name_ok("_", 1) && stele_name_ok("0", 1), "may begin so");
	ok(!stele_name_ok(".a", 2) && !stele_name_ok("-a", 2), "may not");
	for (unsigned int c = 0; c < 256; c++) {
		bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
		bool good = letter || (c >= '0' && c <= '9') || c == '.' ||
			    c == '_' || c == '-';

		name[1] = (char)c;
		if (stele_name_ok(name, 3) != good)
			ok(false, "byte 0x%02x", c);
	}
}

int main(void)
{
	plan_lazy();
	test_round_trip();
	test_deleted();
	test_many();
	test_shared();
	test_empty();
	test_unused();
	test_names();
	return done();
}
