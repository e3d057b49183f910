/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_tables.c - check the fields and the runs of a descriptor
 *
 * Once the runs are checked, every slot is within the slots, none overlap, and
 * the arithmetic of run.c cannot overflow for any number of the segment.
 */
#include "format/catalog.h"
#include "format/decode.h"
#include "format/field.h"
#include "format/segment_check.h"
#include "format/segment_layout.h"

static bool name_is_new(const struct stele_descriptor *d, uint32_t index,
			const struct stele_disk_field *field)
{
	for (uint32_t i = 0; i < index; i++) {
		struct stele_descriptor_field other;

		stele_descriptor_field(d, i, &other);
		if (memcmp(other.name, field->name, sizeof(other.name)) == 0)
			return false;
	}
	return true;
}

static int check_field(const struct stele_descriptor *d, uint32_t index,
		       const char **why)
{
	struct stele_disk_field disk;
	const char *name = (const char *)disk.name;
	struct stele_descriptor_field field;
	const char *wrong;

	stele_descriptor_get(d,
			     descriptor_layout_of(d).fields +
				     index * sizeof(disk),
			     &disk, sizeof(disk));
	if (!text_ok(name, sizeof(disk.name)))
		return unclean(why, "descriptor: field name not zero-padded");
	if (!stele_name_ok(name, strlen(name)))
		return unclean(why, "descriptor: bad name of a field");
	stele_descriptor_field(d, index, &field);
	wrong = stele_field_wrong(&field);
	if (wrong)
		return unclean(why, wrong);
	if (!name_is_new(d, index, &disk))
		return unclean(why, "descriptor: duplicate field name");
	if (le32_get(disk.reserved0) ||
	    !bytes_zero(disk.reserved1, sizeof(disk.reserved1)))
		return unclean(why, "descriptor: field's reserved bytes");
	return 0;
}

int stele_descriptor_check_fields(const struct stele_descriptor *d,
				  const char **why)
{
	for (uint32_t i = 0; i < d->field_count; i++) {
		int ret = check_field(d, i, why);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static int check_run(const struct stele_descriptor *d,
		     const struct stele_run *run, uint64_t before,
		     const char **why)
{
	uint64_t begin;

	if (run->slot_size == 0 || run->slot_size > STELE_SLOT_SIZE_MAX ||
	    stele_slot_size(run->slot_size, d->granule) != run->slot_size)
		return unclean(why, "descriptor: slot size of no class");
	if (!is_aligned(run->offset, d->granule))
		return unclean(why, "descriptor: misaligned run");
	if (!stele_run_begin(run->offset, run->slot_size, d->boundary,
			     &begin) ||
	    begin != run->offset)
		return unclean(why, "descriptor: slot across a boundary");
	if (run->offset < before)
		return unclean(why, "descriptor: run overlaps the previous one");
	return 0;
}

/* `next`: the first number after the run. */
static int check_run_end(const struct stele_descriptor *d,
			 const struct stele_run *run, uint64_t next,
			 uint64_t *end, const char **why)
{
	if (next <= run->first || next > d->sample_count)
		return unclean(why, "descriptor: runs not ascending");
	if (!stele_run_end(run, next - run->first, d->boundary, end) ||
	    *end > d->slots_offset + d->slots_size)
		return unclean(why, "descriptor: run beyond the slots' end");
	return 0;
}

int stele_descriptor_check_runs(const struct stele_descriptor *d,
				const char **why)
{
	uint64_t end = d->slots_offset;
	struct stele_run run, next;

	if (d->run_count)
		stele_descriptor_run(d, 0, &next);
	for (uint32_t i = 0; i < d->run_count; i++) {
		int ret;

		run = next;
		if (i == 0 && (run.first != 0 || run.offset != end))
			return unclean(why, "descriptor: first run not first");
		next.first = d->sample_count;
		if (i + 1 < d->run_count)
			stele_descriptor_run(d, i + 1, &next);
		ret = check_run(d, &run, end, why);
		if (ret == 0)
			ret = check_run_end(d, &run, next.first, &end, why);
		if (ret < 0)
			return ret;
	}
	if (end != d->slots_offset + d->slots_size)
		return unclean(why, "descriptor: slots end after the runs");
	return 0;
}
