/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_unit.c - where one unit ends and the next one begins
 */
#include "lib/segment/copy_unit.h"

uint64_t stele_copy_slot(const struct stele_segment *segment, uint64_t number,
			 uint64_t *slot_size)
{
	const struct stele_descriptor *d = &segment->descriptor;
	uint64_t offset;

	if (number == d->sample_count) {
		*slot_size = 0;
		return round_up(d->slots_offset + d->slots_size,
				STELE_BLOCK_SIZE);
	}
	stele_segment_slot(segment, number, &offset, slot_size);
	return offset - d->offset;
}

/* What lies between a slot and the next one goes with it. */
static void take_slots(struct stele_copy_units *units,
		       struct stele_copy_unit *unit)
{
	const uint64_t count = units->segment->descriptor.sample_count;
	uint64_t slot_size, end = unit->offset;

	unit->kind = STELE_COPY_SLOTS;
	unit->first = units->number;
	while (units->number < count &&
	       unit->count < STELE_COPY_UNIT_SAMPLES) {
		end = stele_copy_slot(units->segment, units->number + 1,
				      &slot_size);
		/* Less than a block is never left to itself, but at the front. */
		if (unit->count && end - unit->offset > STELE_COPY_UNIT_SIZE &&
		    (unit->size >= STELE_BLOCK_SIZE || unit->first == 0))
			break;
		unit->size = end - unit->offset;
		unit->count++;
		units->number++;
	}
	if (unit->size > STELE_COPY_UNIT_SIZE)
		unit->kind = STELE_COPY_LARGE;
}

static void take_zeros(struct stele_copy_unit *unit, uint64_t end)
{
	unit->kind = STELE_COPY_ZEROS;
	unit->size = end - unit->offset;
	if (unit->size > STELE_COPY_UNIT_SIZE)
		unit->size = STELE_COPY_UNIT_SIZE;
}

/* The rest of the section at hand, or of what lies before it or the end. */
static void take_section(struct stele_copy_units *units,
			 struct stele_copy_unit *unit)
{
	const struct stele_descriptor *d = &units->segment->descriptor;
	uint64_t left;
	struct stele_section section;

	if (units->section == d->section_count) {
		take_zeros(unit, d->size - d->block_count * STELE_BLOCK_SIZE);
		return;
	}
	stele_descriptor_section(d, units->section, &section);
	if (unit->offset < section.offset) {
		take_zeros(unit, section.offset);
		return;
	}
	unit->kind = STELE_COPY_SECTION;
	unit->section = units->section;
	unit->block = (unit->offset - section.offset) / STELE_BLOCK_SIZE;
	left = section.offset + section.size - unit->offset;
	unit->size = left < STELE_COPY_UNIT_SIZE ? left : STELE_COPY_UNIT_SIZE;
	if (unit->size == left)
		units->section++;
}

bool stele_copy_units_next(struct stele_copy_units *units,
			   struct stele_copy_unit *unit)
{
	const struct stele_descriptor *d = &units->segment->descriptor;
	const uint64_t own = d->block_count * STELE_BLOCK_SIZE;

	if (!units->offset)
		units->offset = own;
	*unit = (struct stele_copy_unit){
		.index = units->index++,
		.offset = units->offset,
	};
	if (units->offset < d->slots_offset)
		take_zeros(unit, d->slots_offset);
	else if (units->number < d->sample_count)
		take_slots(units, unit);
	else if (units->offset < d->size - own)
		take_section(units, unit);
	else
		return false;
	units->offset += unit->size;
	return true;
}
