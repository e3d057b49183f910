/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptor.c - a descriptor comes back as it was stored, or not at all
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture/specimen.h"
#include "tests/tap.h"

static void test_header(void)
{
	struct stele_disk_block block;
	struct stele_descriptor put, d;

	specimen_descriptor(&block, &put);
	is_int(0,
	       stele_descriptor_decode(&block, sizeof(block), put.offset,
				       SPECIMEN_SEGMENT_ID, &d, NULL),
	       "decodes");
	ok(d.id == put.id && d.offset == put.offset && d.size == put.size,
	   "identity");
	ok(d.sample_count == 1000 && d.payload_size == 8000000 &&
		   d.records_size == 8500000,
	   "sums");
	ok(d.slots_offset == put.slots_offset &&
		   d.slots_size == put.slots_size && d.granule == 512 &&
		   d.order == STELE_SLOT_ORDER_SOURCE && d.boundary == 0,
	   "slots");
	ok(d.field_count == 4 && d.run_count == 3 && d.section_count == 7,
	   "counts");
	is_blob(put.tree_root, d.tree_root, 32, "root of the tree");
	is_blob(put.schema_digest, d.schema_digest, 32, "digest of the schema");
}

static void test_tables(void)
{
	struct stele_disk_block block;
	struct stele_descriptor d;
	struct stele_descriptor_field field;
	struct stele_record_shape shape;
	struct stele_section section;
	struct stele_run run;

	specimen_descriptor(&block, &d);
	stele_descriptor_decode(&block, sizeof(block), d.offset, d.id, &d,
				NULL);
	stele_descriptor_field(&d, 2, &field);
	is_string("label", field.name, "name of a field");
	is_uint(STELE_FIELD_I64, field.type, "its type");
	stele_descriptor_run(&d, 2, &run);
	ok(run.first == 900 && run.offset == 0x240000 && run.slot_size == 66048,
	   "run");
	stele_descriptor_section(&d, 6, &section);
	ok(section.type == STELE_BLOCK_NAMES && section.field == 2 &&
		   section.offset == 0x8b4000 && section.size == 0x1000 &&
		   section.count == 5 && section.stream_size == 50,
	   "section");
	is_int(0,
	       stele_descriptor_find_section(&d, STELE_BLOCK_COLUMN, 3,
					     &section),
	       "a section is found");
	is_hex(0x8a8000, section.offset, "the right one");
	is_int(-ENOENT,
	       stele_descriptor_find_section(&d, STELE_BLOCK_COLUMN, 1,
					     &section),
	       "or not");
	stele_descriptor_shape(&d, &shape);
	ok(shape.bytes_count == 2 && shape.scalar_count == 2, "shape");
}

static void test_copies(void)
{
	struct stele_disk_block block;
	struct stele_descriptor put, d;
	uint64_t last;

	specimen_descriptor(&block, &put);
	last = put.offset + put.size - sizeof(block);
	is_int(0,
	       stele_descriptor_decode(&block, sizeof(block), put.offset,
				       STELE_OWNER_ANY, &d, NULL),
	       "salvage learns the id");
	is_hex(SPECIMEN_SEGMENT_ID, d.id, "this one");
	is_int(-EUCLEAN,
	       stele_descriptor_decode(&block, sizeof(block), put.offset, 1, &d,
				       NULL),
	       "another id is another segment");
	stele_descriptor_seal(&block, &put, last);
	is_int(0,
	       stele_descriptor_decode(&block, sizeof(block), last, put.id, &d,
				       NULL),
	       "the copy at the end");
	is_hex(put.offset, d.offset, "says where the segment begins");
	stele_descriptor_seal(&block, &put, last - 4096);
	is_int(-EUCLEAN,
	       stele_descriptor_decode(&block, sizeof(block), last - 4096,
				       put.id, &d, NULL),
	       "a copy elsewhere is none");
}

static void test_sizes(void)
{
	struct stele_disk_block block[2] = {0};
	struct stele_descriptor put, d;
	const char *why = NULL;

	specimen_descriptor(block, &put);
	is_int(-EUCLEAN,
	       stele_descriptor_decode(block, 0, put.offset, put.id, &d, &why),
	       "nothing");
	is_string("descriptor: size out of range", why, "says why");
	is_int(-EUCLEAN,
	       stele_descriptor_decode(block, 4095, put.offset, put.id, &d,
				       NULL),
	       "half a block");
	is_int(-EUCLEAN,
	       stele_descriptor_decode(block, STELE_DESCRIPTOR_SIZE_MAX + 4096,
				       put.offset, put.id, &d, NULL),
	       "more than there may be");
	stele_blocks_seal(block, 2, STELE_BLOCK_DESCRIPTOR, put.offset, put.id);
	is_int(-EUCLEAN,
	       stele_descriptor_decode(block, sizeof(block), put.offset, put.id,
				       &d, &why),
	       "a block too many");
	is_string("descriptor: size against stream size", why, "says why");
}

/* Two blocks or more, each of which knows its segment. */
#define RUNS 1000u
static void put_large(struct stele_disk_block *blocks,
		      struct stele_descriptor *d)
{
	const struct stele_descriptor_field field = {.name = "data",
						     .type = STELE_FIELD_BYTES};

	stele_descriptor_put_header(blocks, d);
	stele_descriptor_put_field(blocks, d, 0, &field);
	for (uint32_t i = 0; i < RUNS; i++) {
		const struct stele_run run = {i, d->slots_offset + i * 64, 64};

		stele_descriptor_put_run(blocks, d, i, &run);
	}
	stele_descriptor_seal(blocks, d, d->offset);
}

static void test_large(void)
{
	const uint64_t size = stele_descriptor_stream_size(1, RUNS, 0, 0);
	const uint64_t count = stele_stream_blocks(size);
	struct stele_disk_block *blocks = calloc(count, sizeof(*blocks));
	struct stele_descriptor seen, d = {
					      .id = 77,
					      .offset = 0x200000,
					      .size = 0x100000,
					      .sample_count = RUNS,
					      .payload_size = 10,
					      .records_size = 17000,
					      .slots_offset = 0x10000,
					      .slots_size = 64 * RUNS,
					      .granule = 16,
					      .field_count = 1,
					      .run_count = RUNS,
				      };
	struct stele_run run;

	if (!blocks)
		sysbail("calloc");
	is_uint(6, count, "blocks of %u runs", RUNS);
	put_large(blocks, &d);
	is_int(0,
	       stele_descriptor_decode(blocks, count * 4096, d.offset, 77,
				       &seen, NULL),
	       "decodes");
	stele_descriptor_run(&seen, RUNS - 1, &run);
	ok(run.first == 999 && run.offset == 0x10000 + 999 * 64, "last run");
	stele_block_seal(&blocks[5], STELE_BLOCK_DESCRIPTOR,
			 d.offset + 5 * 4096, 78);
	is_int(-EUCLEAN,
	       stele_descriptor_decode(blocks, count * 4096, d.offset,
				       STELE_OWNER_ANY, &seen, NULL),
	       "a block of another segment, in salvage too");
	free(blocks);
}

static int decode_boundary(struct stele_descriptor *d, uint64_t slot_size,
			   uint64_t run_offset, const char **why)
{
	const struct stele_run run = {0, run_offset, slot_size};
	const struct stele_descriptor_field field = {.name = "data",
						     .type = STELE_FIELD_BYTES};
	struct stele_disk_block block = {0};
	struct stele_descriptor seen;

	stele_descriptor_put_header(&block, d);
	stele_descriptor_put_field(&block, d, 0, &field);
	stele_descriptor_put_run(&block, d, 0, &run);
	stele_descriptor_seal(&block, d, d->offset);
	return stele_descriptor_decode(&block, 4096, d->offset, d->id, &seen,
				       why);
}

static void test_boundary(void)
{
	struct stele_descriptor d = {
		.id = 5,
		.offset = 0x400000,
		.size = 0x200000,
		.sample_count = 11,
		.payload_size = 10,
		.records_size = 1000,
		.slots_offset = 0x10000,
		/* Five slots of 0x3000 to a boundary, and one more. */
		.slots_size = 2 * 0x10000 + 0x3000,
		.boundary = 0x10000,
		.granule = 4096,
		.field_count = 1,
		.run_count = 1,
	};
	const char *why = NULL;

	is_int(0, decode_boundary(&d, 0x3000, 0x10000, &why), "a boundary");
	/* Two slots before the next one, five, and four. */
	d.slots_offset = 0x9000;
	d.slots_size = 0x7000 + 0x10000 + 4 * 0x3000;
	is_int(0, decode_boundary(&d, 0x3000, 0x9000, &why),
	       "a run that does not begin at one");
	d.slots_size -= 0x3000;
	is_int(-EUCLEAN, decode_boundary(&d, 0x3000, 0x9000, &why),
	       "one slot less");
	is_string("descriptor: run beyond the slots' end", why, "says why");
	d.slots_offset = 0xd000;
	d.slots_size = 0x3000 + 0x10000 + 5 * 0x3000;
	is_int(0, decode_boundary(&d, 0x3000, 0xd000, &why),
	       "one slot before the next, which it reaches");
	d.slots_offset = 0xe000;
	is_int(-EUCLEAN, decode_boundary(&d, 0x3000, 0xe000, &why),
	       "a first slot that crosses one");
	is_string("descriptor: slot across a boundary", why, "says why");
	d.slots_offset = 0x10000;
	d.slots_size = 2 * 0x10000 + 0x3000;
	d.offset = 0x401000;
	is_int(-EUCLEAN, decode_boundary(&d, 0x3000, 0x10000, &why),
	       "a segment that does not");
	is_string("descriptor: bad boundary", why, "says why");
	d.offset = 0x400000;
	d.sample_count = 3;
	d.slots_size = 3 * 0x14000;
	is_int(0, decode_boundary(&d, 0x14000, 0x10000, &why),
	       "slots that are larger");
	d.slots_offset = 0x11000;
	is_int(0, decode_boundary(&d, 0x14000, 0x11000, &why),
	       "slots that are larger, and begin anywhere");
}

static void test_empty(void)
{
	const struct stele_descriptor_field field = {.name = "data",
						     .type = STELE_FIELD_BYTES};
	struct stele_descriptor seen, d = {
					      .id = 5,
					      .offset = 0x200000,
					      .size = 0x2000,
					      .slots_offset = 0x1000,
					      .granule = 4096,
					      .field_count = 1,
				      };
	struct stele_disk_block block = {0};

	stele_descriptor_put_header(&block, &d);
	stele_descriptor_put_field(&block, &d, 0, &field);
	stele_descriptor_seal(&block, &d, d.offset);
	is_int(0,
	       stele_descriptor_decode(&block, 4096, d.offset, 5, &seen, NULL),
	       "a segment without samples");
}

/* A section that such a segment cannot have. */
static void test_section_of_nothing(void)
{
	const struct stele_descriptor_field field = {.name = "data",
						     .type = STELE_FIELD_BYTES};
	const struct stele_section section = {
		.type = STELE_BLOCK_ORDER,
		.field = STELE_NO_FIELD,
		.offset = 0x1000,
		.size = 0x2000,
	};
	struct stele_descriptor seen, d = {
					      .id = 5,
					      .offset = 0x200000,
					      .size = 0x4000,
					      .slots_offset = 0x1000,
					      .granule = 4096,
					      .field_count = 1,
					      .section_count = 1,
				      };
	struct stele_disk_block block = {0};
	const char *why = NULL;

	stele_descriptor_put_header(&block, &d);
	stele_descriptor_put_field(&block, &d, 0, &field);
	stele_descriptor_put_section(&block, &d, 0, &section);
	stele_descriptor_seal(&block, &d, d.offset);
	is_int(-EUCLEAN,
	       stele_descriptor_decode(&block, 4096, d.offset, 5, &seen, &why),
	       "order of no samples");
	is_string("descriptor: section of nothing", why, "says why");
}

static void test_filter(void)
{
	const struct stele_descriptor_field field = {.name = "data",
						     .type = STELE_FIELD_BYTES};
	const struct stele_run run = {0, 0x1000, 16};
	static const uint8_t bits[24] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct stele_descriptor seen, d = {
					      .id = 5,
					      .offset = 0x200000,
					      .size = 0x3000,
					      .sample_count = 10,
					      .records_size = 160,
					      .slots_offset = 0x1000,
					      .slots_size = 160,
					      .granule = 16,
					      .field_count = 1,
					      .run_count = 1,
				      };
	uint8_t got[24];

	for (d.filter_size = 8; d.filter_size <= 24; d.filter_size += 8) {
		const bool good = d.filter_size == 16;
		struct stele_disk_block block = {0};
		const char *why = "";

		stele_descriptor_put_header(&block, &d);
		stele_descriptor_put_field(&block, &d, 0, &field);
		stele_descriptor_put_run(&block, &d, 0, &run);
		stele_descriptor_put_filter(&block, &d, bits);
		stele_descriptor_seal(&block, &d, d.offset);
		is_int(good ? 0 : -EUCLEAN,
		       stele_descriptor_decode(&block, 4096, d.offset, 5,
					       &seen, &why),
		       "a filter of %u bytes for 10 keys", d.filter_size);
		is_string(good ? "" : "descriptor: filter against samples", why,
			  "says why");
		if (!good)
			continue;
		stele_descriptor_filter(&seen, got);
		is_blob(bits, got, 16, "its bytes");
	}
}

/* One sample, whose key cannot take two pages. */
static void test_pages(void)
{
	const struct stele_descriptor_field field = {.name = "data",
						     .type = STELE_FIELD_BYTES};
	struct stele_section keys = {
		.type = STELE_BLOCK_KEYS,
		.field = STELE_NO_FIELD,
		.offset = 0x2000,
		.size = 0x1000,
		.count = 1,
	};
	const struct stele_run run = {0, 0x1000, 4096};
	struct stele_descriptor seen, d = {
					      .id = 5,
					      .offset = 0x200000,
					      .size = 0x5000,
					      .sample_count = 1,
					      .records_size = 100,
					      .slots_offset = 0x1000,
					      .slots_size = 0x1000,
					      .granule = 4096,
					      .field_count = 1,
					      .run_count = 1,
					      .section_count = 1,
				      };
	struct stele_disk_block block = {0};
	const char *why = NULL;

	stele_descriptor_put_header(&block, &d);
	stele_descriptor_put_field(&block, &d, 0, &field);
	stele_descriptor_put_run(&block, &d, 0, &run);
	stele_descriptor_put_section(&block, &d, 0, &keys);
	stele_descriptor_seal(&block, &d, d.offset);
	is_int(0,
	       stele_descriptor_decode(&block, 4096, d.offset, 5, &seen, &why),
	       "one key in a page");
	keys.size = 0x2000;
	stele_descriptor_put_section(&block, &d, 0, &keys);
	stele_descriptor_seal(&block, &d, d.offset);
	is_int(-EUCLEAN,
	       stele_descriptor_decode(&block, 4096, d.offset, 5, &seen, &why),
	       "in two");
	is_string("descriptor: keys against their pages", why, "says why");
}

static void test_geometry(void)
{
	uint64_t count, size;

	ok(stele_section_geometry(STELE_BLOCK_ORDER, 1000, &count, &size) &&
		   count == 1000 && size == 0x2000,
	   "order");
	ok(stele_section_geometry(STELE_BLOCK_COLUMN, 1000, &count, &size) &&
		   count == 1000 && size == 0x2000,
	   "column");
	ok(stele_section_geometry(STELE_BLOCK_DIGESTS, 1000, &count, &size) &&
		   count == 1000 && size == 0x8000,
	   "digests");
	stele_tree_geometry(8, &count, &size);
	ok(count == 8 && size == 0x1000, "tree");
	/* 158 hashes in 2 blocks; 2 in 1. */
	stele_tree_geometry(158, &count, &size);
	ok(count == 160 && size == 0x3000, "tree of three levels");
	stele_tree_geometry(1, &count, &size);
	ok(count == 0 && size == 0, "no tree over one block");
	ok(!stele_section_geometry(STELE_BLOCK_TREE, 1000, &count, &size),
	   "a tree does not follow from samples");
	ok(!stele_section_geometry(STELE_BLOCK_ORDER, 0, &count, &size),
	   "nothing of no samples");
	ok(!stele_section_geometry(STELE_BLOCK_KEYS, 10, &count, &size),
	   "keys have no fixed size");
}

int main(void)
{
	plan_lazy();
	test_header();
	test_tables();
	test_copies();
	test_sizes();
	test_large();
	test_boundary();
	test_empty();
	test_section_of_nothing();
	test_filter();
	test_pages();
	test_geometry();
	return done();
}
