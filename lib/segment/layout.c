/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - granule, numbers, runs
 *
 * Sizes were checked when they came in (below 2^47 each), and sums of them are
 * checked here; what follows from a checked end needs no check of its own.
 */
#include "lib/segment/layout.h"

#include <errno.h>
#include <string.h>

#include "format/superblock.h"
#include "lib/image/digest.h"
#include "lib/posix/tree.h"
#include "lib/segment/sort.h"

#define GRANULES 4u
#define TICK_EVERY 4096u

static const uint32_t granules[GRANULES] = {4096, 512, 64, 16};

static int now_and_then(struct stele_builder *builder, uint64_t i)
{
	return i % TICK_EVERY ? 0 : stele_builder_tick(builder);
}

static uint64_t record_size(const struct stele_plan *plan,
			    const struct stele_source_entry *entry)
{
	uint64_t size = 0;

	/* Cannot fail: the table takes no larger ones. */
	stele_record_size(&plan->fields.shape, entry->data_size, (uint32_t)entry->key_size,
			  &size);
	return size;
}

static int too_large(const struct stele_builder *builder)
{
	stele_log_error(&builder->log, "source exceeds the maximum image size");
	return -EFBIG;
}

/* The smallest that will do. */
static uint32_t granule_min(const struct stele_builder *builder)
{
	if (!builder->posix)
		return STELE_GRANULE_MIN;
	return builder->block_min > STELE_POSIX_GRANULE_MIN ? granules[0] :
							      STELE_POSIX_GRANULE_MIN;
}

int stele_layout_check_granule(const struct stele_builder *builder)
{
	const uint32_t granule = builder->opts.granule;

	if (!granule || granule >= granule_min(builder))
		return 0;
	stele_log_error(&builder->log,
			"invalid granule %u: the image can be mounted, so it must be %s", granule,
			granule_min(builder) == STELE_POSIX_GRANULE_MIN ?
				"512 or 4096" :
				"4096, for the device has blocks of that size");
	return -EINVAL;
}

/* What slots of each granule take; records_size, too. */
static int sum_slots(struct stele_plan *plan, struct stele_builder *builder,
		     uint64_t slots[GRANULES])
{
	struct stele_descriptor *d = &plan->descriptor;
	int ret = 0;

	for (uint64_t i = 0; ret == 0 && i < plan->table.count; i++) {
		struct stele_source_entry entry;
		uint64_t size;

		stele_table_get(&plan->table, i, &entry);
		size = record_size(plan, &entry);
		d->records_size += size; /* no more than the slots' */
		for (uint32_t g = 0; g < GRANULES; g++)
			if (!checked_add(slots[g],
					 stele_slot_size(size, granules[g]),
					 &slots[g]) ||
			    slots[g] > STELE_IMAGE_SIZE_MAX)
				return too_large(builder);
		ret = now_and_then(builder, i);
	}
	return ret;
}

/* The largest one that is cheap enough, or else the smallest that will do. */
static uint32_t choose_granule(const struct stele_builder *builder,
			       const uint64_t slots[GRANULES], uint64_t records_size)
{
	const uint32_t percent = builder->posix ? STELE_POSIX_PADDING_PERCENT :
						  STELE_PADDING_PERCENT;
	uint32_t chosen = GRANULES - 1;

	while (granules[chosen] < granule_min(builder) ||
	       granules[chosen] < builder->block_kept)
		chosen--;
	while (chosen > 0 &&
	       slots[chosen - 1] - records_size <= records_size / (100 / percent))
		chosen--;
	return granules[chosen];
}

int stele_layout_granule(struct stele_plan *plan, struct stele_builder *builder)
{
	struct stele_descriptor *d = &plan->descriptor;
	uint64_t slots[GRANULES] = {0};
	int ret = stele_layout_check_granule(builder);

	if (ret == 0)
		ret = sum_slots(plan, builder, slots);
	if (ret < 0)
		return ret;
	d->granule = builder->opts.granule ?
			     builder->opts.granule :
			     choose_granule(builder, slots, d->records_size);
	d->order = builder->opts.order;
	d->sample_count = plan->table.count;
	d->payload_size = plan->table.payload_size;
	return 0;
}

/* ---- numbers ---------------------------------------------------------------- */

struct place {
	uint64_t slot_size;
	uint64_t hash; /* of the key: its first 8 bytes, big-endian */
	uint64_t ordinal;
};

static int compare_places(const void *a, const void *b, void *user)
{
	const struct place *x = a, *y = b;

	(void)user;
	if (x->slot_size != y->slot_size)
		return x->slot_size > y->slot_size ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->ordinal < y->ordinal ? -1 : 1;
}

static int builder_tick(void *user)
{
	return stele_builder_tick(user);
}

static int fill_places(struct stele_plan *plan, struct stele_builder *builder,
		       struct place *places)
{
	int ret = 0;

	for (uint64_t i = 0; i < plan->table.count && !ret; i++) {
		struct stele_source_entry entry;

		stele_table_get(&plan->table, i, &entry);
		places[i].slot_size = stele_slot_size(
			record_size(plan, &entry), plan->descriptor.granule);
		places[i].ordinal = i;
		places[i].hash = stele_hash_key(entry.key, entry.key_size);
		ret = now_and_then(builder, i);
	}
	return ret;
}

static int number_by_size(struct stele_plan *plan,
			  struct stele_builder *builder)
{
	const uint64_t count = plan->table.count;
	uint64_t *ordinals = plan->ordinals.data, *numbers = plan->numbers.data;
	struct stele_spill places;
	int ret;

	stele_spill_init(&places, &plan->pool);
	ret = stele_spill_grow(&places, count * sizeof(struct place));
	if (!ret)
		ret = fill_places(plan, builder, places.data);
	if (!ret)
		ret = stele_sort(&places, count, sizeof(struct place),
				 compare_places, builder_tick, builder);
	for (uint64_t i = 0; i < count && !ret; i++) {
		ordinals[i] = ((const struct place *)places.data)[i].ordinal;
		numbers[ordinals[i]] = i;
		ret = now_and_then(builder, i);
	}
	stele_spill_release(&places);
	return ret;
}

int stele_layout_numbers(struct stele_plan *plan, struct stele_builder *builder)
{
	const uint64_t count = plan->table.count;
	int ret = stele_spill_grow(&plan->ordinals, count * sizeof(uint64_t));

	if (!ret)
		ret = stele_spill_grow(&plan->numbers,
				       count * sizeof(uint64_t));
	if (ret < 0)
		return ret;
	if (builder->opts.order == STELE_ORDER_SIZE)
		return number_by_size(plan, builder);
	for (uint64_t i = 0; i < count; i++) {
		((uint64_t *)plan->ordinals.data)[i] = i;
		((uint64_t *)plan->numbers.data)[i] = i;
	}
	return 0;
}

/* ---- runs ------------------------------------------------------------------- */

static int add_run(struct stele_plan *plan, struct stele_builder *builder,
		   const struct stele_run *run)
{
	struct stele_descriptor *d = &plan->descriptor;
	int ret;

	if (d->run_count == STELE_RUNS_MAX) {
		stele_log_error(&builder->log,
				"more than %u runs; order by size instead",
				STELE_RUNS_MAX);
		return -EOVERFLOW;
	}
	ret = stele_spill_grow(&plan->runs,
			       (d->run_count + UINT64_C(1)) * sizeof(*run));
	if (!ret)
		((struct stele_run *)plan->runs.data)[d->run_count++] = *run;
	return ret;
}

int stele_layout_runs(struct stele_plan *plan, struct stele_builder *builder)
{
	struct stele_descriptor *d = &plan->descriptor;
	const uint64_t *ordinals = plan->ordinals.data;
	struct stele_run run = {0};
	int ret = 0;

	for (uint64_t i = 0; i < d->sample_count && !ret; i++) {
		struct stele_source_entry entry;
		uint64_t size;

		stele_table_get(&plan->table, ordinals[i], &entry);
		size = stele_slot_size(record_size(plan, &entry), d->granule);
		if (i == 0 || size != run.slot_size) {
			run = (struct stele_run){.first = i, .slot_size = size};
			ret = add_run(plan, builder, &run);
		}
		if (!ret)
			ret = now_and_then(builder, i);
	}
	return ret;
}
