/* SPDX-License-Identifier: Apache-2.0 */
/*
 * superblock.c - a superblock comes back as it was stored, or not at all
 */
#include <errno.h>
#include <string.h>

#include "tests/fixture/corrupt.h"
#include "tests/fixture/specimen.h"
#include "tests/tap.h"

#define OFFSET 0x1000

static void test_round_trip(void)
{
	struct stele_superblock sb, seen;
	struct stele_disk_superblock disk;

	specimen_superblock(&sb);
	stele_superblock_encode(&sb, OFFSET, &disk);
	is_int(0, stele_superblock_decode(&disk, OFFSET, &seen, NULL),
	       "decodes");
	ok(stele_superblock_same(&sb, &seen), "is the same as before");
	is_uint(7, seen.generation, "generation");
	is_string("cats and dogs", seen.label, "label");
	is_uint(0x40000000, seen.image_size, "image size");
	is_int(-2, seen.commit_time, "a time before 1970");
	is_blob(sb.uuid, seen.uuid, sizeof(sb.uuid), "uuid");
}

/* One difference in each field, in turn. */
static void test_same(void)
{
	static const size_t offsets[] = {
#define FIELD(name) offsetof(struct stele_superblock, name)
		FIELD(generation),
		FIELD(parent),
		FIELD(state),
		FIELD(fence_mode),
		FIELD(feature_compat),
		FIELD(feature_ro_compat),
		FIELD(feature_incompat),
		FIELD(uuid),
		FIELD(label),
		FIELD(image_size),
		FIELD(high_water),
		FIELD(catalog_offset),
		FIELD(catalog_size),
		FIELD(catalog_crc),
		FIELD(mirror_offset),
		FIELD(mirror_crc),
		FIELD(fence_epoch),
		FIELD(create_time),
		FIELD(commit_time),
		FIELD(lost),
#undef FIELD
	};
	struct stele_superblock a, b;
	unsigned int missed = 0;

	specimen_superblock(&a);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		b = a;
		((uint8_t *)&b)[offsets[i]] ^= 1;
		missed += stele_superblock_same(&a, &b);
	}
	is_uint(0, missed, "a difference in any field shows");
	b = a;
	b.label[40] = 'x';
	ok(stele_superblock_same(&a, &b), "what lies behind a label does not");
}

static void test_golden(void)
{
	static const uint8_t head[] = {
		0x93, 'S',  'T',  'E',  'L',  'E',  '\r', '\n', /* magic */
		0x01, 0x00, 0x00, 0x00,                         /* type */
		0xd5, 0xc8, 0x23, 0x4c,                         /* crc */
		0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* offset */
		0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* owner */
		0x01, 0x00, 0x00, 0x00,                         /* version */
		0x01, 0x00, 0x00, 0x00,                         /* state */
		0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* compat */
		0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* ro_compat */
		0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* incompat */
		0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, /* uuid */
		0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
		'c',  'a',  't',  's',  ' ',  'a',  'n',  'd', /* label */
	};
	static const uint8_t tail[] = {
		0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, /* image size */
		0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, /* high water */
		0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, /* catalog */
		0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* its size */
		0x44, 0x33, 0x22, 0x11,                         /* its crc */
		0x02, 0x00, 0x00, 0x00,                         /* fence mode */
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* epoch */
		0x00, 0xf1, 0x53, 0x65, 0x00, 0x00, 0x00, 0x00, /* created */
		0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* committed */
		0x00, 0x20, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, /* mirror */
		0x88, 0x77, 0x66, 0x55,                         /* its crc */
		0x00, 0x00, 0x00, 0x00,
		0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* parent */
		'v',  '1',  0x00, 0x00,                         /* lost */
	};
	struct stele_superblock sb;
	struct stele_disk_superblock disk;

	specimen_superblock(&sb);
	sb.catalog_crc = 0x11223344;
	sb.mirror_crc = 0x55667788;
	strcpy(sb.lost, "v1");
	stele_superblock_encode(&sb, OFFSET, &disk);
	is_blob(head, &disk, sizeof(head), "the first 88 bytes");
	is_blob(tail, (uint8_t *)&disk + 0x90, sizeof(tail),
		"from the size on");
}

static int decode(const uint8_t *bytes, const char **why)
{
	struct stele_superblock sb;

	return stele_superblock_decode(
		(const struct stele_disk_superblock *)bytes, OFFSET, &sb, why);
}

#define ROW(name, text) CORRUPT_ROW(struct stele_disk_superblock, 0, name, text)
#define BUT             CORRUPT_BUT
#define SET_TO          CORRUPT_SET

static const char image_size[] = "superblock: image size out of range";
static const char high_water[] = "superblock: high water out of range";
static const char catalog_offset[] = "superblock: catalog offset out of range";
static const char catalog_size[] = "superblock: catalog size out of range";
static const char generation[] = "superblock: generation out of range";
static const char parent[] = "superblock: made from a newer generation";
static const char version[] = "superblock: unknown version";
static const char feature[] = "superblock: unknown incompat feature";
static const char state[] = "superblock: unknown state";
static const char label[] = "superblock: label not zero-padded";
static const char fence[] = "superblock: unknown fence mode";
static const char mirror[] = "superblock: offset of the catalog mirror out of range";
static const char mirror_size[] = "superblock: catalog too large for a mirror";
static const char no_feature[] = "superblock: a catalog mirror without its feature";
static const char no_mirror[] = "superblock: checksum of no catalog mirror";
static const char lost[] = "superblock: what is lost not zero-padded";
static const char reserved[] = "superblock: reserved bytes not zero";

static const struct corrupt_row rows[] = {
	{.field = "type",
	 .position = 0x08,
	 .size = 4,
	 .why = "block: wrong type"},
	{.field = "offset",
	 .position = 0x10,
	 .size = 8,
	 .why = "block: belongs to another offset"},
	{.field = "generation",
	 .position = 0x18,
	 .size = 8,
	 .why = NULL,
	 BUT({HOW_ZERO, generation}, {HOW_ONES, generation})},
	{ROW(version, version), .error = -EOPNOTSUPP},
	{ROW(state, state),
	 BUT({HOW_ZERO, "superblock: unfinished with a generation"},
	     {HOW_SUB, "superblock: unfinished with a generation"},
	     {HOW_LOW, "superblock: unfinished with a generation"})},
	{ROW(feature_compat, NULL)},
	{ROW(feature_ro_compat, NULL)},
	{ROW(feature_incompat, feature),
	 BUT({HOW_ZERO, no_feature, -EUCLEAN}, {HOW_ADD, NULL}, {HOW_SUB, NULL},
	     {HOW_LOW, NULL}),
	 .error = -EOPNOTSUPP},
	{ROW(feature_incompat, feature), SET_TO(32), .error = -EOPNOTSUPP},
	{ROW(feature_incompat, NULL), SET_TO(31)},
	{ROW(feature_incompat, no_feature), SET_TO(15)},
	{ROW(uuid, NULL)},
	{ROW(label, label), BUT({HOW_ZERO, NULL}, {HOW_LOW, NULL})},
	{ROW(image_size, image_size)},
	{ROW(image_size, high_water), SET_TO(0x201000)},
	{ROW(image_size, image_size), SET_TO(0x200000)},
	{ROW(image_size, NULL), SET_TO(0x4000000)},
	{ROW(image_size, NULL), SET_TO(UINT64_C(1) << 62)},
	{ROW(image_size, image_size), SET_TO((UINT64_C(1) << 62) + 4096)},
	{ROW(high_water, high_water),
	 .sibling = offsetof(struct stele_disk_superblock, image_size)},
	{ROW(high_water, high_water), SET_TO(0x1ff000)},
	{ROW(high_water, catalog_offset), SET_TO(0x200000)},
	{ROW(high_water, catalog_offset), SET_TO(0x3000000)},
	{ROW(high_water, NULL), SET_TO(0x3001000)},
	{ROW(high_water, NULL), SET_TO(0x40000000)},
	{ROW(high_water, high_water), SET_TO(0x40001000)},
	{ROW(catalog_offset, catalog_offset),
	 .sibling = offsetof(struct stele_disk_superblock, catalog_size)},
	{ROW(catalog_offset, catalog_offset), SET_TO(0x1ff000)},
	{ROW(catalog_offset, NULL), SET_TO(0x200000)},
	{ROW(catalog_offset, NULL), SET_TO(0x3fff000)},
	{ROW(catalog_offset, catalog_offset), SET_TO(0x4000000)},
	{ROW(catalog_offset, catalog_offset), SET_TO(UINT64_MAX - 4095)},
	{ROW(catalog_size, catalog_size)},
	{ROW(catalog_size, NULL), SET_TO(0x7e000)},
	{ROW(catalog_size, mirror_size), SET_TO(0x7f000)},
	{ROW(catalog_size, catalog_offset), SET_TO(64 << 20)},
	{ROW(catalog_size, catalog_size), SET_TO((64 << 20) + 4096)},
	{ROW(catalog_crc, NULL)},
	{ROW(fence_mode, fence), BUT({HOW_ZERO, NULL}, {HOW_ADD, NULL},
				     {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{ROW(fence_mode, fence), SET_TO(4)},
	{ROW(fence_epoch, NULL)},
	{ROW(create_time, NULL),
	 .sibling = offsetof(struct stele_disk_superblock, commit_time)},
	{ROW(commit_time, NULL)},
	{ROW(mirror_offset, mirror), BUT({HOW_ZERO, no_mirror})},
	{ROW(mirror_offset, NULL), SET_TO(0x102000)},
	{ROW(mirror_offset, NULL), SET_TO(0x181000)},
	{ROW(mirror_offset, mirror), SET_TO(0x180000)},
	{ROW(mirror_offset, mirror), SET_TO(0x200000)},
	{ROW(mirror_crc, NULL)},
	{ROW(unused, reserved)},
	{ROW(parent, parent), BUT({HOW_ZERO, NULL}, {HOW_ADD, NULL}, {HOW_SUB, NULL},
				  {HOW_LOW, NULL})},
	{ROW(parent, NULL), SET_TO(6)},
	{ROW(parent, parent), SET_TO(7)},
	{ROW(lost, lost), BUT({HOW_ZERO, NULL}, {HOW_LOW, NULL})},
	{ROW(reserved, reserved)},
};

/* The same for one that is unfinished: there must be no catalog. */
static const char catalog[] = "superblock: unfinished with a catalog";
static const struct corrupt_row unfinished_rows[] = {
	{.field = "generation",
	 .position = 0x18,
	 .size = 8,
	 .why = "superblock: unfinished with a generation"},
	{ROW(parent, "superblock: unfinished with a generation")},
	{ROW(state, state), BUT({HOW_ADD, generation}, {HOW_LOW, generation})},
	{ROW(catalog_offset, catalog)},
	{ROW(catalog_size, catalog)},
	{ROW(catalog_crc, catalog)},
	{ROW(mirror_offset, catalog)},
	{ROW(mirror_crc, catalog)},
	{ROW(image_size, image_size)},
	{ROW(high_water, high_water)},
	{ROW(high_water, "superblock: unfinished with data"), SET_TO(0x201000)},
	{ROW(lost, "superblock: unfinished with a second label"), BUT({HOW_ZERO, NULL})},
};

static void test_corruptions(void)
{
	struct stele_disk_superblock disk;
	struct stele_superblock sb;
	const struct corrupt_subject subject = {
		"superblock",
		(const uint8_t *)&disk,
		sizeof(disk),
		corrupt_repair_block,
		decode,
		-EBADMSG,
		"block: checksum mismatch",
	};
	const struct corrupt_subject unfinished = {
		"unfinished",
		(const uint8_t *)&disk,
		sizeof(disk),
		corrupt_repair_block,
		decode,
		-EBADMSG,
		"block: checksum mismatch",
	};

	specimen_superblock(&sb);
	stele_superblock_encode(&sb, OFFSET, &disk);
	corrupt_run(&subject, CORRUPT_ROWS(rows));
	corrupt_covers(&subject, CORRUPT_ROWS(rows), 0x08, 0x0c, "the type");
	corrupt_covers(&subject, CORRUPT_ROWS(rows), 0x10, sizeof(disk),
		       "the rest");
	corrupt_bits(&subject, sizeof(disk));

	sb.state = STELE_STATE_UNFINISHED;
	sb.generation = sb.parent = sb.catalog_offset = sb.catalog_size = 0;
	sb.catalog_crc = sb.mirror_offset = sb.mirror_crc = 0;
	sb.high_water = STELE_DATA_OFFSET;
	sb.lost[0] = '\0';
	stele_superblock_encode(&sb, OFFSET, &disk);
	corrupt_run(&unfinished, CORRUPT_ROWS(unfinished_rows));
}

int main(void)
{
	plan_lazy();
	test_round_trip();
	test_same();
	test_golden();
	test_corruptions();
	return done();
}
