/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_segment.c - exact sizes of sections and descriptors
 *
 * The keys section is measured by its own writer: page breaks depend on the
 * keys alone, so the numbers need not be known, and the size is exact.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/filter.h"
#include "format/keys.h"
#include "format/sections.h"
#include "format/superblock.h"
#include "lib/segment/layout.h"

#define TICK_EVERY 4096u

static int measure_keys(const struct stele_plan *plan,
			struct stele_builder *builder, uint64_t *size)
{
	struct stele_keys_writer *writer = malloc(sizeof(*writer));
	uint64_t pages = plan->table.count > 0;
	int ret = writer ? 0 : -ENOMEM;

	if (writer)
		stele_keys_begin(writer, NULL);
	for (uint64_t i = 0; i < plan->table.count && !ret; i++) {
		struct stele_source_entry entry;

		stele_table_get(&plan->table, i, &entry);
		if (!stele_keys_add(writer, entry.key, (uint32_t)entry.key_size,
				    0, 0)) {
			stele_keys_begin(writer, NULL);
			stele_keys_add(writer, entry.key,
				       (uint32_t)entry.key_size, 0, 0);
			pages++;
		}
		if (i % TICK_EVERY == 0)
			ret = stele_builder_tick(builder);
	}
	free(writer);
	*size = pages * STELE_BLOCK_SIZE;
	return ret;
}

/* Behind the ones before; none when it is empty. Offsets come later. */
static void add_section(struct stele_plan *plan, struct stele_section section)
{
	if (section.size == 0)
		return;
	plan->sections[plan->descriptor.section_count++] = section;
	plan->sections_size += section.size;
}

/* One whose size follows from the count of samples. */
static void add_counted(struct stele_plan *plan, uint32_t type, uint32_t field)
{
	struct stele_section section = {.type = type, .field = field};

	if (stele_section_geometry(type, plan->descriptor.sample_count,
				   &section.count, &section.size))
		add_section(plan, section);
}

/* Of all that was added before. */
static void add_tree(struct stele_plan *plan)
{
	struct stele_section section = {
		.type = STELE_BLOCK_TREE,
		.field = STELE_NO_FIELD,
	};

	stele_tree_geometry(plan->sections_size / STELE_BLOCK_SIZE,
			    &section.count, &section.size);
	add_section(plan, section);
}

static void add_names(struct stele_plan *plan, uint32_t field)
{
	const struct stele_class_names *names = &plan->fields.names[field];
	const struct stele_section section = {
		.type = STELE_BLOCK_NAMES,
		.field = field,
		.count = names->count,
		.stream_size = names->stream_size,
		.size = stele_stream_blocks(names->stream_size) *
			STELE_BLOCK_SIZE,
	};

	add_section(plan, section);
}

static int list_sections(struct stele_plan *plan, struct stele_builder *builder)
{
	struct stele_section keys = {
		.type = STELE_BLOCK_KEYS,
		.field = STELE_NO_FIELD,
		.count = plan->table.count,
	};
	int ret = measure_keys(plan, builder, &keys.size);

	if (ret < 0)
		return ret;
	add_section(plan, keys);
	add_counted(plan, STELE_BLOCK_ORDER, STELE_NO_FIELD);
	for (uint32_t i = 0; i < plan->descriptor.field_count; i++) {
		if (!stele_field_is_scalar(plan->fields.list[i].type))
			continue;
		add_counted(plan, STELE_BLOCK_COLUMN, i);
		add_names(plan, i);
	}
	add_counted(plan, STELE_BLOCK_DIGESTS, STELE_NO_FIELD);
	add_tree(plan);
	return 0;
}

static int too_large(const struct stele_builder *builder)
{
	stele_log_error(&builder->log, "source exceeds the maximum image size");
	return -EFBIG;
}

/* One behind the other from the descriptor on, as the boundary lets them. */
static int place_runs(struct stele_plan *plan, struct stele_builder *builder)
{
	struct stele_descriptor *d = &plan->descriptor;
	struct stele_run *runs = plan->runs.data;
	uint64_t end = plan->descriptor_size;

	d->slots_offset = end;
	for (uint32_t i = 0; i < d->run_count; i++) {
		uint64_t next = i + 1 < d->run_count ? runs[i + 1].first :
						       d->sample_count;

		if (!stele_run_begin(end, runs[i].slot_size, d->boundary,
				     &runs[i].offset) ||
		    !stele_run_end(&runs[i], next - runs[i].first, d->boundary,
				   &end) ||
		    end > STELE_IMAGE_SIZE_MAX)
			return too_large(builder);
		if (i == 0)
			d->slots_offset = runs[i].offset;
	}
	d->slots_size = end - d->slots_offset;
	return 0;
}

int stele_layout_segment(struct stele_plan *plan, struct stele_builder *builder)
{
	struct stele_descriptor *d = &plan->descriptor;
	uint64_t at;
	int ret = list_sections(plan, builder);

	if (ret < 0)
		return ret;
	d->filter_size = stele_filter_size(d->sample_count);
	plan->descriptor_size =
		stele_stream_blocks(stele_descriptor_stream_size(
			d->field_count, d->run_count, d->section_count,
			d->filter_size)) *
		STELE_BLOCK_SIZE;
	if (plan->descriptor_size > STELE_DESCRIPTOR_SIZE_MAX) {
		stele_log_error(&builder->log, "too many runs: %u",
				d->run_count);
		return -EOVERFLOW;
	}
	ret = place_runs(plan, builder);
	if (ret < 0)
		return ret;
	d->offset = round_up(STELE_DATA_OFFSET, d->boundary ? d->boundary : 1);
	at = round_up(d->slots_offset + d->slots_size, STELE_BLOCK_SIZE);
	for (uint32_t i = 0; i < d->section_count; i++) {
		plan->sections[i].offset = at;
		at += plan->sections[i].size;
	}
	d->size = at + plan->descriptor_size;
	if (d->offset + d->size > STELE_IMAGE_SIZE_MAX -
					  STELE_CATALOG_SIZE_MAX)
		return too_large(builder);
	return 0;
}
