/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_parts.c - parts of a tree in a catalog: each field damaged, and each part missing
 */
#include <errno.h>
#include <string.h>

#include "format/crc32c.h"
#include "tests/fixture/corrupt.h"
#include "tests/fixture/specimen.h"
#include "tests/tap.h"

#define OFFSET SPECIMEN_TREE_OFFSET
#define END    (OFFSET + 0x20000u)

static uint64_t feature;
static uint32_t crc;

static void put(struct stele_disk_block *block)
{
	specimen_tree(block, OFFSET, 1);
	crc = stele_crc32c(0, block, sizeof(*block));
}

static void repair(uint8_t *bytes)
{
	corrupt_repair_block(bytes);
	crc = stele_crc32c(0, bytes, STELE_BLOCK_SIZE);
}

static uint32_t sound; /* crc of the specimen */

static int decode(const uint8_t *bytes, const char **why)
{
	const struct stele_superblock sb = {
		.generation = 1,
		.feature_ro_compat = feature,
		.feature_incompat = STELE_FEATURE_UNDELETE,
		.high_water = END,
		.catalog_offset = OFFSET,
		.catalog_size = STELE_BLOCK_SIZE,
		.catalog_crc = crc,
	};
	struct stele_catalog c;
	int ret = stele_catalog_decode(bytes, STELE_BLOCK_SIZE, &sb, &c, why);

	crc = sound;
	return ret;
}

#define SEGMENT(i) ((i) * 64u + STELE_BLOCK_HEADER_SIZE + 64u)
#define BUT	   CORRUPT_BUT
#define SET	   CORRUPT_SET
#define G(i, name, text)                                                       \
	CORRUPT_ROW(struct stele_disk_catalog_segment, SEGMENT(i), name, text)

static const char id_range[] = "catalog: segment id out of range";
static const char bounds[] = "catalog: segment out of bounds";
static const char order[] = "catalog: segments out of order";
static const char samples[] = "catalog: samples as a part of a tree";
static const char unknown[] = "catalog: unknown part of a tree";
static const char of_nothing[] = "catalog: part of a tree of nothing";
static const char inodes[] = "catalog: more inodes than fit a part";
static const char no_segment[] = "catalog: files of no segment in use";
static const char twice[] = "catalog: files of a segment twice";
static const char lacks[] = "catalog: segment without files in a tree";
static const char against[] = "catalog: files of a segment against its samples";
static const char no_snapshot[] = "catalog: directories of no snapshot";
static const char dir_twice[] = "catalog: directories of a snapshot twice";
static const char dir_lacks[] = "catalog: snapshot without directories in a tree";
static const char roots[] = "catalog: two roots in use";
static const char rootless[] = "catalog: parts in use without a root";
static const char before[] = "catalog: unused before 1970";
static const char reserved[] = "catalog: segment's reserved bytes";

static const struct corrupt_row rows[] = {
	{G(FILES_A, id, NULL), BUT({HOW_ZERO, id_range}, {HOW_ONES, id_range})},
	{G(FILES_A, id, "catalog: duplicate segment id"), SET(0xb)},
	{G(FILES_A, offset, bounds)},
	{G(FILES_A, offset, order), SET(0x208000)},
	{G(FILES_A, offset, order), SET(0x20a000)},
	{G(FILES_A, size, bounds)},
	{G(FILES_A, size, order), SET(0x3000)},
	{G(FILES_A, size, inodes), SET(0x1000)},
	{G(FILES_A, descriptor_size, samples), BUT({HOW_ZERO, NULL})},
	{G(FILES_A, count, inodes), BUT({HOW_ZERO, against}, {HOW_ADD, against},
					{HOW_SUB, against}, {HOW_LOW, against})},
	{G(FILES_A, count, against), SET(256)},
	{G(FILES_A, count, inodes), SET(257)},
	{G(FILES_A, unused_since, lacks),
	 BUT({HOW_ZERO, NULL}, {HOW_ONES, before}, {HOW_HIGH, before}, {HOW_SUB, before})},
	{G(FILES_A, of, no_segment), BUT({HOW_ZERO, of_nothing}, {HOW_ADD, twice},
					 {HOW_SUB, lacks}, {HOW_LOW, twice})},
	{G(FILES_A, of, lacks), SET(1)},
	{G(FILES_A, part, unknown), BUT({HOW_ADD, lacks}, {HOW_SUB, unknown})},
	{G(FILES_A, part, of_nothing), SET(STELE_PART_ROOT)},
	{G(FILES_A, reserved, reserved)},
	{G(DIRECTORIES_4, of, no_snapshot), BUT({HOW_ZERO, of_nothing}, {HOW_ADD, no_snapshot})},
	{G(DIRECTORIES_4, of, dir_twice), SET(1)},
	{G(DIRECTORIES_4, of, no_snapshot), SET(2)},
	{G(DIRECTORIES_4, unused_since, dir_lacks), SET(1)},
	{G(DIRECTORIES_4, part, no_segment), SET(STELE_PART_FILES)},
	{G(DIRECTORIES_4, count, NULL), SET(256)},
	{G(DIRECTORIES_4, count, inodes), SET(257)},
	{G(ROOT, of, of_nothing), SET(1)},
	{G(ROOT, part, of_nothing), SET(STELE_PART_DIRECTORIES)},
	{G(ROOT, unused_since, rootless), SET(1)},
	{G(ROOT, count, inodes), SET(257)},
	{G(OLD_ROOT, unused_since, roots), SET(0)},
	{G(OLD_FILES, unused_since, no_segment), SET(0)},
	{G(OLD_FILES, of, NULL), BUT({HOW_ZERO, of_nothing})},
	{G(OLD_FILES, count, NULL), SET(0)},
	{G(OLD_FILES, count, inodes), SET(129)},
	{G(OLD_FILES, part, unknown), SET(4)},
};

static void test_corruptions(void)
{
	struct stele_disk_block block;
	const struct corrupt_subject s = {
		"part",
		(const uint8_t *)&block,
		sizeof(block),
		repair,
		decode,
		-EBADMSG,
		"catalog: checksum differs from the superblock",
	};

	put(&block);
	sound = crc;
	corrupt_run(&s, CORRUPT_ROWS(rows));
	corrupt_covers(&s, CORRUPT_ROWS(rows), SEGMENT(FILES_A), SEGMENT(FILES_B), "a part");
}

static void expect(struct stele_disk_block *block, const char *wanted, const char *what)
{
	const char *why = NULL;

	repair((uint8_t *)block);
	is_int(wanted ? -EUCLEAN : 0, decode((uint8_t *)block, &why), "%s", what);
	is_string(wanted, why, "says why");
}

static void test_whole(void)
{
	struct stele_disk_block block;
	struct stele_disk_catalog_segment *table =
		(void *)((uint8_t *)&block + SEGMENT(0));
	const le64 gone = le64_put(5);

	put(&block);
	expect(&block, NULL, "a whole tree");
	table[SEGMENT_B].unused_since = gone;
	expect(&block, "catalog: unused, but referred to", "a segment that is not in use");
	put(&block);
	for (uint32_t i = FILES_A; i <= ROOT; i++)
		table[i].unused_since = gone;
	expect(&block, NULL, "none in use");
	put(&block);
	table[FILES_A].of = le64_put(0xb);
	table[FILES_A].count = le64_put(10);
	expect(&block, twice, "two parts of a segment");
	put(&block);
	feature = 0;
	expect(&block, "catalog: tree without the feature", "nor the feature");
	feature = STELE_FEATURE_POSIX;
}

static void test_round_trip(void)
{
	struct stele_disk_block block;
	const uint8_t *bytes = (const uint8_t *)&block + SEGMENT(FILES_A);
	struct stele_catalog c = {.blocks = &block, .block_count = 1,
				  .counts = specimen_tree_counts};
	struct stele_catalog_segment s;

	put(&block);
	ok(bytes[0x20] == 200 && bytes[0x30] == 0xa && bytes[0x38] == STELE_PART_FILES,
	   "inodes at 20, what it is of at 30, part at 38");
	stele_catalog_segment(&c, FILES_A, &s);
	ok(s.part == STELE_PART_FILES && s.of == 0xa && s.inode_count == 200 && !s.sample_count,
	   "and back");
	stele_catalog_segment(&c, SEGMENT_A, &s);
	ok(s.part == STELE_PART_NONE && !s.of && !s.inode_count && s.sample_count == 200,
	   "unlike samples");
}

int main(void)
{
	plan_lazy();
	feature = STELE_FEATURE_POSIX;
	test_round_trip();
	test_corruptions();
	test_whole();
	return done();
}
