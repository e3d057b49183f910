/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptor.c - fuzz target: any bytes as a descriptor
 *
 * Bit 1: as a salvage would read it, not knowing the segment's id.
 */
#include "format/segment.h"
#include "tests/fuzz/input.h"

static void use(const struct stele_descriptor *d)
{
	const uint64_t slots_end = d->slots_offset + d->slots_size;
	uint64_t before = d->sample_count;
	struct stele_descriptor_field field;
	struct stele_section section, found;
	struct stele_record_shape shape;
	struct stele_run run;

	for (uint32_t i = 0; i < d->field_count; i++) {
		stele_descriptor_field(d, i, &field);
		input_assert(field.name[0] != '\0');
	}
	/* Backwards: the last number of a run is the one before the next. */
	for (uint32_t i = d->run_count; i-- > 0; before = run.first) {
		uint64_t slot;

		stele_descriptor_run(d, i, &run);
		slot = stele_run_slot(&run, before - 1, d->boundary);
		input_assert(slot >= d->slots_offset && slot < slots_end &&
			     run.slot_size <= slots_end - slot);
	}
	for (uint32_t i = 0; i < d->section_count; i++) {
		stele_descriptor_section(d, i, &section);
		input_assert(section.offset + section.size < d->size);
		input_assert(stele_descriptor_find_section(d, section.type,
							   section.field,
							   &found) == 0 &&
			     found.offset == section.offset);
	}
	stele_descriptor_shape(d, &shape);
	input_assert(shape.bytes_count + shape.scalar_count == d->field_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t count;
	struct stele_disk_block *blocks =
		input_blocks(data, size, STELE_BLOCK_DESCRIPTOR, &count);
	struct stele_descriptor d;
	const char *why = NULL;

	if (!blocks)
		return 0;
	if (stele_descriptor_decode(blocks, count * STELE_BLOCK_SIZE,
				    INPUT_OFFSET,
				    data[0] & 2 ? STELE_OWNER_ANY : INPUT_OWNER,
				    &d, &why) == 0)
		use(&d);
	else
		input_assert(why != NULL);
	free(blocks);
	return 0;
}
