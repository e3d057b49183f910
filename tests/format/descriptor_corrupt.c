/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptor_corrupt.c - each field of a descriptor, damaged in each way
 */
#include <errno.h>
#include <string.h>

#include "tests/fixture/corrupt.h"
#include "tests/fixture/specimen.h"
#include "tests/tap.h"

static int decode(const uint8_t *bytes, const char **why)
{
	struct stele_descriptor d;

	return stele_descriptor_decode(bytes, STELE_BLOCK_SIZE, 0x400000,
				       SPECIMEN_SEGMENT_ID, &d, why);
}

#define HEAD STELE_BLOCK_HEADER_SIZE
#define BUT  CORRUPT_BUT
#define SET  CORRUPT_SET

#define FIELD(i)   ((i)*128u + HEAD + 256u)
#define RUN(i)     ((i)*24u + FIELD(4))
#define SECTION(i) ((i)*40u + RUN(3))
#define FILTER     SECTION(7)
#define END        (FILTER + SPECIMEN_FILTER_SIZE)

#define H(name, text)                                                          \
	CORRUPT_ROW(struct stele_disk_descriptor, HEAD, name, text)
#define F(i, name, text)                                                       \
	CORRUPT_ROW(struct stele_disk_field, FIELD(i), name, text)
#define R(i, name, text) CORRUPT_ROW(struct stele_disk_run, RUN(i), name, text)
#define S(i, name, text)                                                       \
	CORRUPT_ROW(struct stele_disk_section, SECTION(i), name, text)
#define PLACE(what, at, n, text)                                               \
	.field = what, .position = (at), .size = (n), .why = (text)

static const char another[] = "descriptor: belongs to another segment";
static const char stream[] = "descriptor: stream size against counts";
static const char bounds[] = "descriptor: segment out of bounds";
static const char ends[] = "descriptor: not at an end of its segment";
static const char larger[] = "descriptor: larger than its segment";
static const char many[] = "descriptor: too many samples";
static const char run_count[] = "descriptor: run count out of range";
static const char field_count[] = "descriptor: field count out of range";
static const char section_count[] = "descriptor: too many sections";
static const char filter_range[] = "descriptor: filter out of range";
static const char boundary[] = "descriptor: bad boundary";
static const char granule[] = "descriptor: unknown granule";
static const char slots[] = "descriptor: slots out of bounds";
static const char over[] = "descriptor: run beyond the slots' end";
static const char behind[] = "descriptor: slots end after the runs";
static const char first[] = "descriptor: first run not first";
static const char order[] = "descriptor: runs not ascending";
static const char class[] = "descriptor: slot size of no class";
static const char misaligned[] = "descriptor: misaligned run";
static const char on_run[] = "descriptor: run overlaps the previous one";
static const char records[] = "descriptor: records larger than slots";
static const char payload[] = "descriptor: payload larger than records";
static const char tails[] = "descriptor: records without tails";
static const char reserved[] = "descriptor: reserved bytes not zero";
static const char padded[] = "descriptor: field name not zero-padded";
static const char bad_name[] = "descriptor: bad name of a field";
static const char name_twice[] = "descriptor: duplicate field name";
static const char type[] = "unknown type of a field";
static const char element[] = "unknown element type of a tensor";
static const char shape[] = "a shape without a tensor";
static const char f_reserved[] = "descriptor: field's reserved bytes";
static const char s_type[] = "descriptor: unknown type of a section";
static const char s_field[] = "descriptor: section with a field";
static const char s_none[] = "descriptor: section of no field";
static const char s_wrong[] = "descriptor: section of a wrong field";
static const char s_twice[] = "descriptor: duplicate section";
static const char s_bounds[] = "descriptor: section out of bounds";
static const char s_data[] = "descriptor: section on other data";
static const char s_samples[] = "descriptor: section against samples";
static const char s_tree[] = "descriptor: tree against the sections";
static const char s_size[] = "descriptor: section size against count";
static const char s_stream[] = "descriptor: section is not a stream";
static const char keys_samples[] = "descriptor: keys against samples";
static const char keys_pages[] = "descriptor: keys against their pages";
static const char names_range[] = "descriptor: names' size out of range";
static const char names_block[] = "descriptor: names against their blocks";
static const char names_size[] = "descriptor: names against their size";

static const struct corrupt_row header_rows[] = {
	{PLACE("block type", 0x08, 4, "block: wrong type")},
	{PLACE("block offset", 0x10, 8, "block: belongs to another offset")},
	{PLACE("block owner", 0x18, 8, "block: belongs to another owner")},
	{H(id, another)},
	{H(stream_size, stream)},
	{H(offset, bounds), BUT({HOW_SWAP, ends}), .sibling = HEAD + 0x18},
	{H(offset, bounds), SET(0x1ff000)},
	{H(offset, ends), SET(0x200000)},
	{H(offset, ends), SET(0x401000)},
	{H(offset, bounds), SET((UINT64_C(1) << 62) - 0x8b5000)},
	{H(offset, ends), SET((UINT64_C(1) << 62) - 0x8b6000)},
	{H(offset, bounds), SET(UINT64_MAX - 4095)},
	{H(size, bounds), BUT({HOW_ZERO, larger})},
	{H(size, larger), SET(0x1000)},
	{H(size, slots), SET(0x2000)},
	{H(size, s_bounds), SET(0x8b5000)},
	{H(size, NULL), SET(0x8b7000)},
	{H(size, bounds), SET(UINT64_C(1) << 62)},
	{H(sample_count, many), BUT({HOW_ZERO, run_count}, {HOW_ADD, over},
				    {HOW_SUB, behind}, {HOW_LOW, over})},
	{H(sample_count, over), SET(UINT64_C(1) << 48)},
	{H(sample_count, many), SET((UINT64_C(1) << 48) + 1)},
	{H(sample_count, run_count), SET(2)},
	{H(sample_count, order), SET(900)},
	{H(payload_size, payload),
	 BUT({HOW_ZERO, NULL}, {HOW_ADD, NULL}, {HOW_SUB, NULL},
	     {HOW_LOW, NULL}, {HOW_SWAP, payload}),
	 .sibling = HEAD + 0x30},
	{H(payload_size, NULL), SET(8500000 - 40000)},
	{H(payload_size, tails), SET(8500000 - 39999)},
	{H(payload_size, payload), SET(8500001)},
	{H(records_size, records), BUT({HOW_ZERO, payload}, {HOW_ADD, NULL},
				       {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{H(slots_offset, slots)},
	{H(slots_offset, slots), SET(0xe00)},
	{H(slots_offset, first), SET(0x1200)},
	{H(slots_size, slots), BUT({HOW_ZERO, over}, {HOW_ADD, behind},
				   {HOW_SUB, over}, {HOW_LOW, behind})},
	{H(boundary, boundary), BUT({HOW_HIGH, boundary})},
	{H(boundary, boundary), SET(2048)},
	{H(boundary, on_run), SET(4096)},
	{H(boundary, boundary), SET(12288)},
	{H(boundary, boundary), SET(0x800000)},
	{H(granule, granule)},
	{H(granule, granule), SET(32)},
	{H(granule, NULL), SET(16)},
	{H(granule, class), SET(4096)},
	{H(order, "descriptor: unknown slot order"),
	 BUT({HOW_ZERO, NULL}, {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{H(field_count, field_count),
	 BUT({HOW_ADD, stream}, {HOW_SUB, stream}, {HOW_LOW, stream})},
	{H(field_count, stream), SET(64)},
	{H(field_count, field_count), SET(65)},
	{H(run_count, run_count),
	 BUT({HOW_ADD, stream}, {HOW_SUB, stream}, {HOW_LOW, stream})},
	{H(section_count, section_count),
	 BUT({HOW_ZERO, stream}, {HOW_ADD, stream}, {HOW_SUB, stream},
	     {HOW_LOW, stream})},
	{H(section_count, stream), SET(1024)},
	{H(section_count, section_count), SET(1025)},
	{H(filter_size, filter_range),
	 BUT({HOW_ZERO, stream}, {HOW_ADD, stream}, {HOW_SUB, stream},
	     {HOW_LOW, stream})},
	{H(filter_size, stream), SET(4064)},
	{H(filter_size, filter_range), SET(4065)},
	{H(tree_root, NULL)},
	{H(schema_digest, NULL)},
	{H(reserved1, reserved)},
	{PLACE("filter", FILTER, SPECIMEN_FILTER_SIZE, NULL)},
	{PLACE("bytes behind", END, 4096 - END,
	       "descriptor: nonzero bytes after it")},
};

static const struct corrupt_row field_rows[] = {
	{F(2, name, padded), BUT({HOW_ZERO, bad_name}, {HOW_LOW, NULL})},
	{F(2, name, bad_name), SET('.')},
	{F(2, name, name_twice), SET(UINT64_C(0x6567616d69))}, /* image */
	{F(2, type, type), BUT({HOW_ADD, s_wrong}, {HOW_LOW, s_wrong},
				{HOW_SUB, element})},
	{F(3, type, NULL), SET(4)},
	{F(2, type, element), SET(3)},
	{F(2, type, type), SET(6)},
	{F(2, type, s_wrong), SET(1)},
	{F(2, dtype, shape)},
	{F(2, rank, shape)},
	{F(2, reserved0, f_reserved)},
	{F(2, dims, shape)},
	{F(2, reserved1, f_reserved)},
};

static const struct corrupt_row run_rows[] = {
	{R(1, first, order),
	 BUT({HOW_ADD, on_run}, {HOW_SUB, NULL}, {HOW_LOW, on_run})},
	{R(2, first, order), SET(400)},
	{R(1, first, NULL), SET(399)},
	{R(0, first, first)},
	{R(1, offset, misaligned),
	 BUT({HOW_ZERO, on_run}, {HOW_HIGH, over}, {HOW_SWAP, on_run}),
	 .sibling = RUN(2) + 8},
	{R(1, offset, misaligned), SET(0x65001)},
	{R(1, offset, on_run), SET(0x64e00)},
	{R(1, offset, NULL), SET(0x65200)},
	{R(0, offset, first)},
	{R(2, offset, over), SET(0x240200)},
	{R(2, offset, behind), SET(0x23fe00)},
	{R(1, slot_size, class)},
	{R(1, slot_size, NULL), SET(3072)},
	{R(1, slot_size, on_run), SET(4096)},
	{R(2, slot_size, class), SET(66048 + 256)},
	{R(2, slot_size, over), SET(66048 + 512)},
	{R(2, slot_size, class), SET((UINT64_C(1) << 49))},
	{R(2, slot_size, over), SET((UINT64_C(1) << 48))},
};

static const struct corrupt_row section_rows[] = {
	{S(2, type, s_type),
	 BUT({HOW_ADD, s_field}, {HOW_SUB, s_field}, {HOW_LOW, s_field})},
	{S(2, type, s_type), SET(4)},
	{S(2, type, s_type), SET(11)},
	{S(2, type, names_range), SET(10)},
	{S(1, type, s_twice), SET(5)},
	{S(2, field, s_none), BUT({HOW_ZERO, s_wrong}, {HOW_ADD, s_twice},
				  {HOW_SUB, s_wrong}, {HOW_LOW, s_twice})},
	{S(6, field, s_wrong), SET(3)},
	{S(1, field, s_field)},
	{S(2, offset, s_bounds), BUT({HOW_ZERO, s_data}, {HOW_SWAP, s_data}),
	 .sibling = SECTION(2) + 0x10},
	{S(2, offset, s_data), SET(0x8a5000)},
	{S(0, offset, s_data), SET(0x88c000)},
	{S(6, offset, NULL), SET(0x8b3000)},
	{S(6, offset, s_bounds), SET(0x8b5000)},
	{S(6, offset, s_bounds), SET(UINT64_MAX - 4095)},
	{S(2, size, s_bounds)},
	{S(2, size, s_size), SET(0x1000)},
	{S(2, size, s_size), SET(0x3000)},
	{S(2, count, s_samples)},
	{S(2, stream_size, s_stream)},
	{S(0, size, s_data), SET(0x15000)},
	{S(0, count, keys_samples)},
	{S(0, size, keys_pages), SET(0x4000)},
	{S(0, size, s_tree), SET(0x5000)},
	{S(5, count, s_tree)},
	{S(6, count, names_size),
	 BUT({HOW_ADD, NULL}, {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{S(6, count, NULL), SET(1)},
	{S(6, count, NULL), SET(16)},
	{S(6, count, names_size), SET(17)},
	{S(6, stream_size, names_range),
	 BUT({HOW_ADD, NULL}, {HOW_SUB, NULL}, {HOW_LOW, NULL})},
	{S(6, stream_size, names_block), SET(4065)},
	{S(6, stream_size, NULL), SET(4064)},
	{S(6, stream_size, names_block), SET(16 << 20)},
	{S(6, stream_size, names_range), SET((16 << 20) + 1)},
	{S(6, stream_size, names_size), SET(14)},
};

static void test_corruptions(void)
{
	struct stele_disk_block block;
	struct stele_descriptor d;
	const struct corrupt_subject s = {
		"descriptor",
		(const uint8_t *)&block,
		sizeof(block),
		corrupt_repair_block,
		decode,
		-EBADMSG,
		"block: checksum mismatch",
	};

	specimen_descriptor(&block, &d);
	corrupt_run(&s, CORRUPT_ROWS(header_rows));
	corrupt_run(&s, CORRUPT_ROWS(field_rows));
	corrupt_run(&s, CORRUPT_ROWS(run_rows));
	corrupt_run(&s, CORRUPT_ROWS(section_rows));
	corrupt_covers(&s, CORRUPT_ROWS(header_rows), HEAD, FIELD(0),
		       "the header");
	corrupt_covers(&s, CORRUPT_ROWS(header_rows), END, 4096, "the rest");
	corrupt_covers(&s, CORRUPT_ROWS(field_rows), FIELD(2), FIELD(3),
		       "a field");
	corrupt_covers(&s, CORRUPT_ROWS(run_rows), RUN(1), RUN(2), "a run");
	corrupt_covers(&s, CORRUPT_ROWS(section_rows), SECTION(2), SECTION(3),
		       "a section");
	corrupt_bits(&s, sizeof(block));
}

int main(void)
{
	plan_lazy();
	test_corruptions();
	return done();
}
