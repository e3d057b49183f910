/* SPDX-License-Identifier: Apache-2.0 */
/*
 * specimen.c - see specimen.h
 */
#include "tests/specimen.h"

#include <string.h>

#include "format/crc32c.h"

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static const struct stele_catalog_segment segments[] = {
	{0x3333, 0x200000, 0x100000, 0x1000, 100, 0},
	{SPECIMEN_SEGMENT_ID, 0x400000, 0x200000, 0x2000, 2000, 0},
	{0x1111, 0x600000, 0x100000, 0x1000, 10, 0},
};

static const struct stele_catalog_snapshot snapshots[] = {
	{"v1", 1, 0, 1700000000, 0, 100, 70000, {1}, 0, 1, 0, 5, 0, 1},
	{"v2", 2, 1, -1, 1600000000, 1500, 123456, {2}, 1, 2, 5, 0, 1, 0},
	{"train-2026.11", 4, 2, 1700000002, -2, 1407, 4000, {3}, 3, 2, 5, 10, 1, 1},
};

static const struct stele_catalog_ref refs[] = {
	{0, 0, 0, 0},           {0, 0, 0, 0},         {1, 0x2800000, 600, 3},
	{1, 0x2800000, 600, 3}, {2, 0x2802000, 3, 7},
};

static const struct stele_catalog_free extents[] = {
	{0x300000, 0x10000},
	{0x320000, 0x1000},
	{0x800000, 0x100000},
};

static const char notes[] = "firstthird note";

static const struct stele_catalog_counts counts = {
	.segments = COUNT(segments),
	.snapshots = COUNT(snapshots),
	.refs = COUNT(refs),
	.free = COUNT(extents),
	.signatures = 2,
	.notes_size = sizeof(notes) - 1,
};

void specimen_catalog(struct stele_disk_block *block)
{
	uint8_t signatures[2 * STELE_SIGNATURE_SIZE];

	memset(signatures, 0x5a, sizeof(signatures));
	memset(block, 0, sizeof(*block));
	stele_catalog_begin(block, &counts, 9);
	for (uint32_t i = 0; i < counts.segments; i++)
		stele_catalog_put_segment(block, &counts, i, &segments[i]);
	for (uint32_t i = 0; i < counts.snapshots; i++)
		stele_catalog_put_snapshot(block, &counts, i, &snapshots[i]);
	for (uint32_t i = 0; i < counts.refs; i++)
		stele_catalog_put_ref(block, &counts, i, &refs[i]);
	for (uint32_t i = 0; i < counts.free; i++)
		stele_catalog_put_free(block, &counts, i, &extents[i]);
	stele_catalog_put_notes(block, &counts, notes);
	stele_catalog_put_signatures(block, &counts, signatures);
	stele_catalog_end(block, &counts, SPECIMEN_CATALOG_OFFSET, 7);
}

void specimen_superblock(struct stele_superblock *out)
{
	struct stele_disk_block catalog;

	specimen_catalog(&catalog);
	*out = (struct stele_superblock){
		.generation = 7,
		.state = STELE_STATE_READY,
		.fence_mode = STELE_FENCE_RESERVATION,
		.feature_compat = STELE_FEATURE_SIGNATURES,
		.feature_ro_compat = 0x100,
		.feature_incompat = STELE_FEATURE_DELETED,
		.uuid = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		.label = "cats and dogs",
		.image_size = 0x40000000,
		.high_water = 0x4000000,
		.catalog_offset = SPECIMEN_CATALOG_OFFSET,
		.catalog_size = STELE_BLOCK_SIZE,
		.catalog_crc = stele_crc32c(0, &catalog, sizeof(catalog)),
		.fence_epoch = 0x1122334455667788,
		.create_time = 1700000000,
		.commit_time = -2,
	};
}

static const struct stele_descriptor_field fields[] = {
	{.name = "image", .type = STELE_FIELD_BYTES},
	{.name = "caption", .type = STELE_FIELD_UTF8},
	{.name = "label", .type = STELE_FIELD_I64},
	{.name = "score", .type = STELE_FIELD_F64},
};

/* 400, 500 and 100 slots; a gap before the last run. */
static const struct stele_run runs[] = {
	{0, 0x1000, 1024},
	{400, 0x1000 + 409600, 3584},
	{900, 0x240000, 66048},
};
#define SLOTS_END (0x240000 + 100 * 66048)

static const struct stele_section sections[] = {
	{STELE_BLOCK_KEYS, STELE_NO_FIELD, 0x890000, 0x14000, 1000, 0},
	{STELE_BLOCK_ORDER, STELE_NO_FIELD, 0x8a4000, 0x2000, 1000, 0},
	{STELE_BLOCK_COLUMN, 2, 0x8a6000, 0x2000, 1000, 0},
	{STELE_BLOCK_COLUMN, 3, 0x8a8000, 0x2000, 1000, 0},
	{STELE_BLOCK_DIGESTS, STELE_NO_FIELD, 0x8aa000, 0x8000, 1000, 0},
	{STELE_BLOCK_TREE, STELE_NO_FIELD, 0x8b2000, 0x1000, 35, 0},
	{STELE_BLOCK_NAMES, 2, 0x8b4000, 0x1000, 5, 50},
};

void specimen_descriptor(struct stele_disk_block *block,
			 struct stele_descriptor *out)
{
	*out = (struct stele_descriptor){
		.id = SPECIMEN_SEGMENT_ID,
		.offset = 0x400000,
		.size = 0x8b6000,
		.sample_count = 1000,
		.payload_size = 8000000,
		.records_size = 8500000,
		.slots_offset = 0x1000,
		.slots_size = SLOTS_END - 0x1000,
		.granule = 512,
		.order = STELE_SLOT_ORDER_SOURCE,
		.field_count = COUNT(fields),
		.run_count = COUNT(runs),
		.section_count = COUNT(sections),
		.tree_root = {0xaa, 0xbb},
		.schema_digest = {0xcc, 0xdd},
	};
	memset(block, 0, sizeof(*block));
	stele_descriptor_put_header(block, out);
	for (uint32_t i = 0; i < COUNT(fields); i++)
		stele_descriptor_put_field(block, out, i, &fields[i]);
	for (uint32_t i = 0; i < COUNT(runs); i++)
		stele_descriptor_put_run(block, out, i, &runs[i]);
	for (uint32_t i = 0; i < COUNT(sections); i++)
		stele_descriptor_put_section(block, out, i, &sections[i]);
	stele_descriptor_seal(block, out, out->offset);
}

/* Three fields with bytes, two scalars. */
const struct stele_record_shape specimen_shape = {3, 2};

void specimen_record(uint8_t *slot)
{
	static const uint64_t ends[] = {500, 650}, scalars[] = {7, UINT64_MAX};
	struct stele_disk_trailer trailer;
	uint8_t *end = slot + SPECIMEN_SLOT_SIZE;

	for (uint32_t i = 0; i < SPECIMEN_SLOT_SIZE; i++)
		slot[i] = i < 700 ? (uint8_t)(i * 7) : 0;
	stele_record_put_tail(&specimen_shape, end, 700, "cat/1.jpg", 9, ends,
			      scalars, 0);
	memcpy(&trailer, end - sizeof(trailer), sizeof(trailer));
	trailer.crc =
		le32_put(stele_record_crc(SPECIMEN_SEGMENT_ID, SPECIMEN_NUMBER,
					  slot, SPECIMEN_SLOT_SIZE));
	memcpy(end - sizeof(trailer), &trailer, sizeof(trailer));
}

void specimen_keys(struct stele_disk_block *block)
{
	static const char *const keys[] = {"cat/1.jpg", "cat/10.jpg",
					   "cat/2.jpg", "dog", "dog/1.jpg"};
	struct stele_keys_writer writer;

	memset(block, 0, sizeof(*block));
	stele_keys_begin(&writer, block);
	for (uint32_t i = 0; i < COUNT(keys); i++)
		stele_keys_add(&writer, keys[i], (uint32_t)strlen(keys[i]),
			       100 + i, 1000 * i);
	stele_keys_end(&writer);
	stele_block_seal(block, STELE_BLOCK_KEYS, 0x5000, SPECIMEN_SEGMENT_ID);
}

uint64_t specimen_names(struct stele_disk_block *block)
{
	static const char *const names[SPECIMEN_NAMES] = {"cat", "dog",
							  "zebra"};
	uint64_t at = 0;

	memset(block, 0, sizeof(*block));
	for (uint32_t i = 0; i < SPECIMEN_NAMES; i++) {
		const size_t size = strlen(names[i]);
		const le16 head = le16_put((uint16_t)size);

		stele_stream_put(block, 1, at, &head, sizeof(head));
		at += sizeof(head);
		stele_stream_put(block, 1, at, names[i], size);
		at += size;
	}
	stele_block_seal(block, STELE_BLOCK_NAMES, 0x6000, SPECIMEN_SEGMENT_ID);
	return at;
}
