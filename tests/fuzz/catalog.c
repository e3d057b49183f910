/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.c - fuzz target: any bytes as a catalog
 *
 * Bits 1 to 4: the superblock has the features DELETED, SIGNATURES, UNDELETE and POSIX.
 */
#include "format/catalog.h"
#include "format/crc32c.h"
#include "tests/fuzz/input.h"

static void use(const struct stele_catalog *c)
{
	struct stele_catalog_snapshot snapshot;
	struct stele_catalog_segment segment;
	struct stele_catalog_free extent;
	struct stele_catalog_ref ref;
	uint32_t directories = 0, roots = 0;

	for (uint32_t i = 0; i < c->counts.snapshots + c->counts.deleted; i++) {
		char *note;

		stele_catalog_snapshot(c, i, &snapshot);
		input_assert(
			stele_name_ok(snapshot.name, strlen(snapshot.name)));
		note = malloc(snapshot.note_size + 1);
		stele_catalog_note(c, i, note);
		input_touch(note, snapshot.note_size);
		free(note);
	}
	for (uint32_t i = 0; i < c->counts.refs; i++) {
		stele_catalog_ref(c, i, &ref);
		stele_catalog_segment(c, ref.segment, &segment);
		input_assert(ref.deleted_count <= segment.sample_count);
	}
	for (uint32_t i = 0; i < c->counts.segments; i++) {
		stele_catalog_segment(c, i, &segment);
		input_assert(!segment.part == !stele_catalog_is_tree(&segment));
		directories += segment.part == STELE_PART_DIRECTORIES && !segment.unused_since;
		roots += segment.part == STELE_PART_ROOT && !segment.unused_since;
	}
	input_assert(directories == (roots ? c->counts.snapshots : 0) && roots <= 1);
	for (uint32_t i = 0; i < c->counts.free; i++) {
		stele_catalog_free(c, i, &extent);
		input_assert(extent.offset + extent.size <= 0x4000000);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t count;
	struct stele_disk_block *blocks =
		input_blocks(data, size, STELE_BLOCK_CATALOG, &count);
	struct stele_superblock sb = {
		.generation = INPUT_OWNER,
		.high_water = 0x4000000,
		.catalog_offset = INPUT_OFFSET,
	};
	struct stele_catalog c;
	const char *why = NULL;

	if (!blocks)
		return 0;
	sb.feature_incompat = data[0] & 2 ? STELE_FEATURE_DELETED : 0;
	sb.feature_incompat |= data[0] & 8 ? STELE_FEATURE_UNDELETE : 0;
	sb.feature_compat = data[0] & 4 ? STELE_FEATURE_SIGNATURES : 0;
	sb.feature_ro_compat = data[0] & 16 ? STELE_FEATURE_POSIX : 0;
	sb.catalog_size = count * STELE_BLOCK_SIZE;
	sb.catalog_crc = stele_crc32c(0, blocks, sb.catalog_size);
	if (stele_catalog_decode(blocks, sb.catalog_size, &sb, &c, &why) == 0)
		use(&c);
	else
		input_assert(why != NULL);
	free(blocks);
	return 0;
}
