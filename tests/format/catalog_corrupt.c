/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_corrupt.c - each field of a catalog, damaged in each way
 */
#include <errno.h>
#include <string.h>

#include "format/crc32c.h"
#include "tests/fixture/corrupt.h"
#include "tests/fixture/specimen.h"
#include "tests/tap.h"

static struct stele_superblock sb;

static void reset_superblock(void)
{
	specimen_superblock(&sb);
	sb.feature_incompat |= STELE_FEATURE_UNDELETE;
}

static void repair(uint8_t *bytes)
{
	corrupt_repair_block(bytes);
	sb.catalog_crc = stele_crc32c(0, bytes, STELE_BLOCK_SIZE);
}

static int decode(const uint8_t *bytes, const char **why)
{
	struct stele_catalog c;
	int ret = stele_catalog_decode(bytes, STELE_BLOCK_SIZE, &sb, &c, why);

	reset_superblock();
	return ret;
}

#define HEAD STELE_BLOCK_HEADER_SIZE
#define BUT  CORRUPT_BUT
#define SET  CORRUPT_SET

/* Positions of the entries that the rows damage. */
#define SEGMENT(i)   ((i)*64u + HEAD + 64u)
#define SNAPSHOT(i)  ((i)*192u + SEGMENT(3))
#define REF(i)       ((i)*64u + SNAPSHOT(3))
#define FREE(i)      ((i)*16u + REF(4))
#define SIGNATURE(i) ((i)*112u + FREE(3))
#define NOTES        SIGNATURE(2)
#define END          (NOTES + 15u)

#define H(name, text) CORRUPT_ROW(struct stele_disk_catalog, HEAD, name, text)
#define G(i, name, text)                                                       \
	CORRUPT_ROW(struct stele_disk_catalog_segment, SEGMENT(i), name, text)
#define S(i, name, text)                                                       \
	CORRUPT_ROW(struct stele_disk_snapshot, SNAPSHOT(i), name, text)
#define R(i, name, text) CORRUPT_ROW(struct stele_disk_ref, REF(i), name, text)
#define F(i, name, text)                                                       \
	CORRUPT_ROW(struct stele_disk_free, FREE(i), name, text)
#define PLACE(what, at, n, text)                                               \
	.field = what, .position = (at), .size = (n), .why = (text)

static const char stream[] = "catalog: stream size against counts";
static const char id_range[] = "catalog: segment id out of range";
static const char id_twice[] = "catalog: duplicate segment id";
static const char segment_bounds[] = "catalog: segment out of bounds";
static const char segment_order[] = "catalog: segments out of order";
static const char descriptor[] = "catalog: descriptor size out of range";
static const char tree[] = "catalog: tree without the feature";
static const char samples[] = "catalog: more samples than fit a segment";
static const char as_part[] = "catalog: samples as a part of a tree";
static const char before[] = "catalog: unused before 1970";
static const char own_segment[] = "catalog: lies in a segment";
static const char own_free[] = "catalog: lies in a free extent";
static const char free_bounds[] = "catalog: free extent out of bounds";
static const char free_order[] = "catalog: free extents out of order";
static const char free_segment[] = "catalog: free extent in a segment";
static const char padded[] = "catalog: snapshot name not zero-padded";
static const char bad_name[] = "catalog: bad name of a snapshot";
static const char ascending[] = "catalog: snapshot ids not ascending";
static const char over_next[] = "catalog: snapshot id beyond the next one";
static const char parent[] = "catalog: snapshot older than its parent";
static const char count[] = "catalog: sample count of a snapshot";
static const char payload[] = "catalog: payload size of a snapshot";
static const char ref_count[] = "catalog: references of a snapshot";
static const char ref_left[] = "catalog: references of no snapshot";
static const char note_offset[] = "catalog: note offset of a snapshot";
static const char note_size[] = "catalog: note size of a snapshot";
static const char note_left[] = "catalog: notes of no snapshot";
static const char first_sig[] = "catalog: first signature of a snapshot";
static const char sig_count[] = "catalog: signatures of a snapshot";
static const char sig_left[] = "catalog: signatures of no snapshot";
static const char no_segment[] = "catalog: reference to no segment";
static const char twice[] = "catalog: segment twice in a snapshot";
static const char no_list[] = "catalog: deleted without a list";
static const char del_count[] = "catalog: deleted count out of range";
static const char del_size[] = "catalog: size of a deleted list";
static const char del_owner[] = "catalog: deleted list of no generation";
static const char del_bounds[] = "catalog: deleted list out of bounds";
static const char del_data[] = "catalog: deleted list on other data";
static const char ref_reserved[] = "catalog: reference's reserved bytes";

#define TOO_MANY(text)                                                         \
	BUT({HOW_ONES, text}, {HOW_HIGH, text}, {HOW_RANDOM, text})

static const struct corrupt_row header_rows[] = {
	{PLACE("block type", 0x08, 4, "block: wrong type")},
	{PLACE("block offset", 0x10, 8, "block: belongs to another offset")},
	{PLACE("block owner", 0x18, 8, "block: belongs to another owner")},
	{H(stream_size, stream)},
	{H(segment_count, stream), TOO_MANY("catalog: too many segments")},
	{H(segment_count, stream), SET(16384)},
	{H(segment_count, "catalog: too many segments"), SET(16385)},
	{H(snapshot_count, stream), TOO_MANY("catalog: too many snapshots")},
	{H(snapshot_count, stream), SET(16384)},
	{H(snapshot_count, "catalog: too many snapshots"), SET(16385)},
	{H(ref_count, stream), TOO_MANY("catalog: too many references")},
	{H(ref_count, "catalog: too many references"), SET((1 << 20) + 1)},
	{H(free_count, stream), TOO_MANY("catalog: too many free extents")},
	{H(free_count, "catalog: too many free extents"), SET(65537)},
	{H(signature_count, stream), TOO_MANY("catalog: too many signatures")},
	{H(signature_count, "catalog: too many signatures"), SET(65537)},
	{H(notes_size, stream), TOO_MANY("catalog: notes too long")},
	{H(notes_size, "catalog: notes too long"), SET((1 << 24) + 1)},
	{H(next_snapshot_id, NULL),
	 BUT({HOW_ZERO, "catalog: no next snapshot id"})},
	{H(next_snapshot_id, NULL), SET(5)},
	{H(next_snapshot_id, over_next), SET(4)},
	{H(deleted_count, stream),
	 BUT({HOW_ONES, "catalog: too many snapshots"}, {HOW_HIGH, "catalog: too many snapshots"},
	     {HOW_RANDOM, "catalog: too many snapshots"},
	     {HOW_SUB, "catalog: too many snapshots"})},
	{H(deleted_count, stream), SET(16381)},
	{H(deleted_count, "catalog: too many snapshots"), SET(16382)},
	{H(reserved, "catalog: reserved bytes not zero")},
	{PLACE("bytes behind", END, 4096 - END,
	       "catalog: nonzero bytes after it")},
};

static const struct corrupt_row segment_rows[] = {
	{G(1, id, NULL), BUT({HOW_ZERO, id_range}, {HOW_ONES, id_range})},
	{G(1, id, id_twice), SET(0x1111)},
	{G(1, id, id_twice), SET(0x3333)},
	{G(1, offset, segment_bounds), BUT({HOW_SWAP, segment_order}),
	 .sibling = SEGMENT(2) + 8},
	{G(1, offset, segment_order), SET(0x2ff000)},
	{G(1, offset, segment_order), SET(0x401000)},
	{G(0, offset, segment_bounds), SET(0x1ff000)},
	{G(0, offset, free_segment), SET(0x201000)},
	{G(2, offset, own_segment), SET(0x2fff000)},
	{G(2, offset, own_segment), SET(0x2f01000)},
	{G(2, offset, del_data), SET(0x2701000)},
	{G(2, offset, NULL), SET(0x2700000)},
	{G(2, offset, NULL), SET(0x2f00000)},
	{G(2, offset, NULL), SET(0x3001000)},
	{G(2, offset, NULL), SET(0x3f00000)},
	{G(2, offset, segment_bounds), SET(0x3f01000)},
	{G(2, offset, segment_bounds), SET(UINT64_MAX - 4095)},
	{G(1, size, segment_bounds)},
	{G(1, size, segment_order), SET(0x201000)},
	{G(1, size, descriptor), SET(0x3000)},
	{G(1, size, samples), SET(0x7000)},
	{G(1, size, NULL), SET(0x8000)},
	{G(1, size, segment_bounds), SET(UINT64_MAX - 4095)},
	{G(1, descriptor_size, descriptor), BUT({HOW_ZERO, tree})},
	{G(1, descriptor_size, NULL), SET(0x100000)},
	{G(1, descriptor_size, descriptor), SET(0x101000)},
	{G(1, count, samples),
	 BUT({HOW_ZERO, del_size}, {HOW_ADD, count}, {HOW_SUB, count},
	     {HOW_LOW, count})},
	{G(1, count, count), SET(0x200000 / 16)},
	{G(1, count, samples), SET(0x200000 / 16 + 1)},
	{G(1, unused_since, "catalog: unused, but referred to"),
	 BUT({HOW_ONES, before}, {HOW_HIGH, before}, {HOW_SUB, before})},
	{G(1, of, as_part)},
	{G(1, part, as_part)},
	{G(1, reserved, "catalog: segment's reserved bytes")},
};

static const struct corrupt_row snapshot_rows[] = {
	{S(1, name, padded), BUT({HOW_ZERO, bad_name}, {HOW_LOW, NULL})},
	{S(1, name, bad_name), SET('.')},
	{S(1, name, bad_name), SET('-')},
	{S(1, name, bad_name), SET('/')},
	{S(1, name, "catalog: duplicate snapshot name"), SET('v' | '1' << 8)},
	{S(0, name, "catalog: duplicate snapshot name"), SET('v' | '2' << 8)},
	{S(1, id, over_next),
	 BUT({HOW_ZERO, ascending}, {HOW_SUB, ascending}, {HOW_ADD, NULL},
	     {HOW_LOW, NULL}, {HOW_SWAP, ascending}),
	 .sibling = SNAPSHOT(1) + 0x48},
	{S(1, id, ascending), SET(4)},
	{S(2, id, NULL), SET(8)},
	{S(2, id, over_next), SET(9)},
	{S(0, id, ascending), SET(0)},
	{S(1, parent, parent),
	 BUT({HOW_ZERO, NULL}, {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{S(1, time, NULL)},
	{S(1, source_time, NULL)},
	{S(1, sample_count, count)},
	{S(1, payload_size, payload), BUT({HOW_ZERO, NULL}, {HOW_ADD, NULL},
					  {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	/* Of the segments at 0x200000 and 0x400000. */
	{S(1, payload_size, NULL), SET(0x300000)},
	{S(1, payload_size, payload), SET(0x300001)},
	{S(1, digest, NULL)},
	{S(2, first_ref, ref_count), BUT({HOW_ZERO, count}, {HOW_SUB, twice})},
	{S(1, first_ref, ref_count), BUT({HOW_ADD, twice}, {HOW_LOW, twice})},
	{S(1, first_ref, count), SET(2)},
	{S(1, first_ref, ref_count), SET(3)},
	{S(1, ref_count, ref_count), BUT({HOW_ZERO, count}, {HOW_ADD, twice},
					 {HOW_SUB, count}, {HOW_LOW, twice})},
	{S(2, ref_count, ref_count), BUT({HOW_ZERO, count}, {HOW_SUB, count})},
	{S(1, note_offset, note_offset)},
	{S(2, note_size, note_size),
	 BUT({HOW_ZERO, note_left}, {HOW_SUB, note_left})},
	{S(1, note_size, note_size),
	 BUT({HOW_ADD, note_offset}, {HOW_LOW, note_offset})},
	{S(1, first_signature, first_sig)},
	{S(1, signature_count, sig_count),
	 BUT({HOW_ADD, first_sig}, {HOW_LOW, first_sig})},
	{S(2, signature_count, sig_count),
	 BUT({HOW_ZERO, sig_left}, {HOW_SUB, sig_left}, {HOW_LOW, sig_left})},
	{S(1, deleted_time, "catalog: snapshot with a time of deletion")},
	{S(1, reserved, "catalog: snapshot's reserved bytes")},
};

static const struct corrupt_row ref_rows[] = {
	{R(2, segment, no_segment),
	 BUT({HOW_ZERO, del_size}, {HOW_ADD, del_size}, {HOW_SUB, del_size},
	     {HOW_LOW, del_size})},
	{R(3, segment, twice), SET(1)},
	{R(3, reserved, ref_reserved), SET(1)},
	{R(2, segment, no_segment), SET(3)},
	{R(0, segment, count), SET(1)},
	{R(2, reserved, ref_reserved)},
	{R(2, lists[0].offset, del_bounds), BUT({HOW_ZERO, no_list})},
	{R(2, lists[0].offset, del_bounds), SET(0x1ff000)},
	{R(2, lists[0].offset, del_data), SET(0x200000)},
	{R(2, lists[0].offset, del_data), SET(0x2ff000)},
	{R(2, lists[0].offset, NULL), SET(0x3ff000)},
	{R(2, lists[0].offset, del_data), SET(0x400000)},
	{R(2, lists[0].offset, del_data), SET(0x320000)},
	{R(2, lists[0].offset, del_data), SET(0x600000)},
	{R(2, lists[0].offset, NULL), SET(0x31f000)},
	{R(2, lists[0].offset, del_data), SET(0x3000000)},
	{R(2, lists[0].offset, NULL), SET(0x2fff000)},
	{R(2, lists[0].offset, del_bounds), SET(0x4000000)},
	{R(2, lists[0].count, del_size),
	 BUT({HOW_ADD, NULL}, {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{R(2, lists[0].count, NULL), SET(32)},
	{R(2, lists[0].count, del_size), SET(33)},
	{R(2, lists[0].owner, del_owner),
	 BUT({HOW_ADD, NULL}, {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{R(2, lists[0].owner, NULL), SET(7)},
	{R(2, lists[0].owner, del_owner), SET(8)},
	{R(2, lists[1].offset, del_bounds), BUT({HOW_ZERO, no_list})},
	{R(2, lists[1].offset, del_data), SET(0x200000)},
	{R(2, lists[1].count, del_size),
	 BUT({HOW_ADD, NULL}, {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{R(2, lists[1].count, NULL), SET(32)},
	{R(2, lists[1].count, del_size), SET(33)},
	{R(2, lists[1].owner, del_owner),
	 BUT({HOW_ADD, NULL}, {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{R(2, lists[1].owner, del_owner), SET(8)},
	{R(2, deleted_count, del_count),
	 BUT({HOW_ADD, count}, {HOW_SUB, count}, {HOW_LOW, count})},
	{R(2, deleted_count, count), SET(26)},
	{R(2, deleted_count, del_count), SET(25)},
	{R(2, deleted_count, count), SET(2000)},
	{R(2, deleted_count, del_count), SET(2001)},
	{R(0, lists[0].offset, del_size)},
	{R(0, lists[0].count, no_list)},
	{R(0, lists[0].owner, no_list)},
	{R(0, lists[1].offset, no_list)},
	{R(0, lists[1].count, no_list)},
	{R(0, lists[1].owner, no_list)},
	{R(0, deleted_count, del_count)},
};

static const struct corrupt_row other_rows[] = {
	{F(1, offset, free_bounds), BUT({HOW_SWAP, free_bounds}),
	 .sibling = FREE(1) + 8},
	{F(1, offset, free_order), SET(0x30f000)},
	{F(1, offset, free_order), SET(0x310000)},
	{F(1, offset, NULL), SET(0x311000)},
	{F(0, offset, free_bounds), SET(0x1ff000)},
	{F(0, offset, free_segment), SET(0x2ff000)},
	{F(1, offset, free_segment), SET(0x400000)},
	{F(1, offset, free_segment), SET(0x6ff000)},
	{F(2, offset, own_free), SET(0x2f01000)},
	{F(2, offset, own_free), SET(0x3000000)},
	{F(2, offset, NULL), SET(0x3001000)},
	{F(2, offset, del_data), SET(0x2800000)},
	{F(1, size, free_bounds)},
	{F(0, size, free_order), SET(0x20000)},
	{F(1, size, free_segment), SET(0xe1000)},
	{F(1, size, NULL), SET(0xe0000)},
	{F(2, size, free_bounds), SET(UINT64_MAX - 4095)},
	{PLACE("signature.key_id", SIGNATURE(0), 32, NULL)},
	{PLACE("signature.sequence", SIGNATURE(0) + 0x20, 8, NULL)},
	{PLACE("signature.reserved", SIGNATURE(0) + 0x28, 8, NULL)},
	{PLACE("signature.signature", SIGNATURE(0) + 0x30, 64, NULL)},
	{PLACE("notes", NOTES, 15, NULL)},
};

static void test_corruptions(void)
{
	struct stele_disk_block block;
	const struct corrupt_subject s = {
		"catalog",
		(const uint8_t *)&block,
		sizeof(block),
		repair,
		decode,
		-EBADMSG,
		"catalog: checksum differs from the superblock",
	};

	specimen_catalog(&block);
	corrupt_run(&s, CORRUPT_ROWS(header_rows));
	corrupt_run(&s, CORRUPT_ROWS(segment_rows));
	corrupt_run(&s, CORRUPT_ROWS(snapshot_rows));
	corrupt_run(&s, CORRUPT_ROWS(ref_rows));
	corrupt_run(&s, CORRUPT_ROWS(other_rows));
	corrupt_covers(&s, CORRUPT_ROWS(header_rows), HEAD, SEGMENT(0),
		       "the header");
	corrupt_covers(&s, CORRUPT_ROWS(header_rows), END, 4096, "the rest");
	corrupt_covers(&s, CORRUPT_ROWS(segment_rows), SEGMENT(1), SEGMENT(2),
		       "a segment");
	corrupt_covers(&s, CORRUPT_ROWS(snapshot_rows), SNAPSHOT(1),
		       SNAPSHOT(2), "a snapshot");
	corrupt_covers(&s, CORRUPT_ROWS(ref_rows), REF(2), REF(3),
		       "a reference");
	corrupt_covers(&s, CORRUPT_ROWS(other_rows), FREE(1), FREE(2),
		       "a free extent");
	corrupt_covers(&s, CORRUPT_ROWS(other_rows), SIGNATURE(0), SIGNATURE(1),
		       "a signature");
	corrupt_covers(&s, CORRUPT_ROWS(other_rows), NOTES, END, "the notes");
	corrupt_bits(&s, sizeof(block));
}

/* A snapshot gives up references, and what they add to its samples. */
static void test_left_over(void)
{
	static const struct {
		uint32_t snapshot, first, count;
		uint64_t samples;
		const char *why;
	} cases[] = {
		{0, 3, 0, 0, NULL}, /* none; the second one has the first one's */
		{1, 0, 1, 100, ref_left},
		{2, 2, 1, 1400, ref_left},
		{2, 1, 1, 1400, ref_left},
		{2, 4, 0, 0, ref_left},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stele_disk_block block;
		struct stele_disk_snapshot *snapshot =
			(struct stele_disk_snapshot *)((uint8_t *)&block +
						       SNAPSHOT(cases[i].snapshot));
		const char *why = NULL;

		specimen_catalog(&block);
		snapshot->first_ref = le32_put(cases[i].first);
		snapshot->ref_count = le32_put(cases[i].count);
		snapshot->sample_count = le64_put(cases[i].samples);
		snapshot->payload_size = le64_put(0);
		repair((uint8_t *)&block);
		is_int(cases[i].why ? -EUCLEAN : 0,
		       decode((uint8_t *)&block, &why), "case %zu", i);
		if (cases[i].why)
			is_string(cases[i].why, why, "says why");
	}
}

/* The first one, which two snapshots have. */
static void test_first_left_over(void)
{
	struct stele_disk_block block;
	struct stele_disk_snapshot *first =
		(struct stele_disk_snapshot *)((uint8_t *)&block + SNAPSHOT(0));
	const char *why = NULL;

	specimen_catalog(&block);
	first[0].first_ref = le32_put(4);
	first[0].ref_count = le32_put(0);
	first[0].sample_count = first[0].payload_size = le64_put(0);
	first[1].first_ref = first[1].ref_count = le32_put(1);
	first[1].sample_count = le64_put(1400);
	repair((uint8_t *)&block);
	is_int(-EUCLEAN, decode((uint8_t *)&block, &why), "the first is left");
	is_string(ref_left, why, "says why");
}

/* The last snapshot is deleted, and has a segment that no other one has. */
static void test_deleted(void)
{
	static const struct {
		uint64_t id, time, since;
		const char *why;
		char name[4];
	} cases[] = {
		{4, 1, 1, NULL, "v3"},
		{3, 1, 1, NULL, "v3"},
		{4, 1, 1, NULL, "v1"}, /* the name of another one */
		{4, INT64_MAX, 5, NULL, "v3"},
		{4, 0, 1, "catalog: deleted snapshot without a time", "v3"},
		{4, UINT64_MAX, 1, "catalog: deleted snapshot without a time", "v3"},
		{4, 1, 0, "catalog: unused, but no time since", "v3"},
		{0, 1, 1, ascending, "v3"},
		{1, 1, 1, "catalog: deleted snapshot with the id of another", "v3"},
		{2, 1, 1, "catalog: deleted snapshot with the id of another", "v3"},
		{9, 1, 1, over_next, "v3"},
		{4, 1, 1, bad_name, "-3"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stele_disk_block block;
		uint8_t *bytes = (uint8_t *)&block;
		struct stele_disk_catalog *head = (void *)(bytes + HEAD);
		struct stele_disk_catalog_segment *segment = (void *)(bytes + SEGMENT(2));
		struct stele_disk_snapshot *deleted = (void *)(bytes + SNAPSHOT(2));
		const char *why = NULL;

		specimen_catalog(&block);
		head->snapshot_count = le32_put(2);
		head->deleted_count = le32_put(1);
		segment->unused_since = le64_put(cases[i].since);
		memset(deleted->name, 0, sizeof(deleted->name));
		memcpy(deleted->name, cases[i].name, 2);
		deleted->id = le64_put(cases[i].id);
		deleted->parent = le64_put(0);
		deleted->deleted_time = le64_put(cases[i].time);
		repair(bytes);
		is_int(cases[i].why ? -EUCLEAN : 0, decode(bytes, &why),
		       "deleted snapshot, case %zu", i);
		is_string(cases[i].why, why, "says why");
	}
}

/* Where they begin, ids do so, too; and each of them needs the feature. */
static void test_all_deleted(void)
{
	struct stele_disk_block block;
	uint8_t *bytes = (uint8_t *)&block;
	const char *why = NULL;

	specimen_catalog(&block);
	((struct stele_disk_catalog *)(bytes + HEAD))->snapshot_count = le32_put(0);
	((struct stele_disk_catalog *)(bytes + HEAD))->deleted_count = le32_put(3);
	for (uint32_t i = 0; i < 3; i++) {
		((struct stele_disk_snapshot *)(bytes + SNAPSHOT(i)))->deleted_time =
			le64_put(7);
		((struct stele_disk_catalog_segment *)(bytes + SEGMENT(i)))->unused_since =
			le64_put(7);
	}
	repair(bytes);
	is_int(0, decode(bytes, &why), "all snapshots are deleted");
	is_string(NULL, why, "without complaint");
	repair(bytes);
	sb.feature_incompat &= ~(uint64_t)STELE_FEATURE_UNDELETE;
	is_int(-EUCLEAN, decode(bytes, &why), "but without the feature");
	is_string("catalog: deleted snapshots without the feature", why, "says why");
}

/* Damage that the checksum of the whole forgives, but not the block's. */
static void test_block_checksum(void)
{
	struct stele_disk_block block;
	struct stele_catalog c;
	const char *why = NULL;

	reset_superblock();
	specimen_catalog(&block);
	block.payload[NOTES - HEAD] ^= 1;
	sb.catalog_crc = stele_crc32c(0, &block, sizeof(block));
	is_int(-EBADMSG,
	       stele_catalog_decode(&block, sizeof(block), &sb, &c, &why),
	       "a block's own checksum");
	is_string("block: checksum mismatch", why, "says why");
	reset_superblock();
}

/* What the superblock says must fit, too. */
static void test_superblock(void)
{
	static const char size[] = "catalog: size differs from the superblock";
	struct stele_disk_block block[2] = {0};
	struct stele_catalog c;
	const char *why;

	specimen_catalog(block);
	reset_superblock();
	is_int(-EUCLEAN, stele_catalog_decode(block, 0, &sb, &c, &why),
	       "empty");
	is_string(size, why, "says why");
	is_int(-EUCLEAN, stele_catalog_decode(block, 8192, &sb, &c, &why),
	       "another size");
	sb.catalog_size = 4095;
	is_int(-EUCLEAN, stele_catalog_decode(block, 4095, &sb, &c, &why),
	       "half a block");
	reset_superblock();
	stele_blocks_seal(block, 2, STELE_BLOCK_CATALOG,
			  SPECIMEN_CATALOG_OFFSET, 7);
	sb.catalog_size = 8192;
	sb.catalog_crc = stele_crc32c(0, block, 8192);
	is_int(-EUCLEAN, stele_catalog_decode(block, 8192, &sb, &c, &why),
	       "a block too many");
	is_string("catalog: size against stream size", why, "says why");
	reset_superblock();
	sb.feature_compat = 0;
	is_int(-EUCLEAN, decode((uint8_t *)block, &why), "no such feature");
	is_string("catalog: signatures without the feature", why, "says why");
	sb.feature_incompat = 0;
	is_int(-EUCLEAN, decode((uint8_t *)block, &why), "nor the other");
	is_string("catalog: deleted without the feature", why, "says why");
}

int main(void)
{
	plan_lazy();
	reset_superblock();
	test_corruptions();
	test_left_over();
	test_first_left_over();
	test_deleted();
	test_all_deleted();
	test_block_checksum();
	test_superblock();
	return done();
}
