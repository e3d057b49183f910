/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - scan a source, decide on its fields, have it laid out
 */
#include "lib/segment/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/segment/layout.h"

struct scanning {
	struct stele_plan *plan;
	struct stele_builder *builder;
	uint64_t samples, bytes; /* atomic: for progress */
};

static int scan_entry(void *user, const struct stele_source_entry *entry)
{
	struct scanning *scanning = user;
	struct stele_table *table = &scanning->plan->table;
	char text[STELE_QUOTE_SIZE];
	int ret = stele_table_add(table, entry);

	if (ret == -EFBIG)
		stele_log_error(&scanning->builder->log,
				"'%s' has %" PRIu64 " bytes, more than the sample size limit",
				stele_source_quote(entry->key, entry->key_size,
						   text),
				entry->size);
	else if (ret < 0)
		stele_log_error(&scanning->builder->log,
				"cannot store the list of samples: %s",
				stele_strerror(ret));
	__atomic_store_n(&scanning->samples, table->count, __ATOMIC_RELAXED);
	__atomic_store_n(&scanning->bytes, table->payload_size,
			 __ATOMIC_RELAXED);
	return ret;
}

static int scan_skip(void *user, enum stele_skip_reason reason,
		     const char *key, size_t key_size, int error)
{
	struct scanning *scanning = user;

	if (reason == STELE_SKIP_UNREADABLE || reason == STELE_SKIP_VANISHED ||
	    reason == STELE_SKIP_CHANGED)
		return stele_builder_lost(scanning->builder, key, key_size,
					  error);
	stele_builder_skip(scanning->builder, reason, key, key_size, error);
	return 0;
}

static int scan_tick(void *user)
{
	struct scanning *scanning = user;
	struct stele_build_progress *progress = &scanning->builder->progress;

	progress->samples_done =
		__atomic_load_n(&scanning->samples, __ATOMIC_RELAXED);
	progress->bytes_done =
		__atomic_load_n(&scanning->bytes, __ATOMIC_RELAXED);
	return stele_builder_tick(scanning->builder);
}

static int builder_tick(void *user)
{
	return stele_builder_tick(user);
}

int stele_plan_scan(struct stele_plan *plan, struct stele_builder *builder,
		    struct stele_source *source)
{
	struct scanning scanning = {.plan = plan, .builder = builder};
	const struct stele_source_sink sink = {
		.user = &scanning,
		.entry = scan_entry,
		.skip = scan_skip,
		.tick = scan_tick,
		.jobs = builder->opts.jobs,
	};
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	plan->table.has_places = source->ops->schema != NULL;
	ret = stele_builder_phase(builder, STELE_PHASE_SCAN, 0, 0);
	if (!ret)
		ret = source->ops->scan(source, &sink);
	if (!ret && source->ops->schema)
		source->ops->schema(source, &plan->schema);
	if (!ret)
		ret = stele_table_sort(&plan->table, builder_tick, builder);
	builder->report->scan_seconds = stele_seconds_since(&begin);
	return ret;
}

static void add_field(struct stele_plan *plan,
		      const struct stele_descriptor_field *field)
{
	plan->fields[plan->descriptor.field_count++] = *field;
	if (stele_field_is_scalar(field->type))
		plan->shape.scalar_count++;
	else
		plan->shape.bytes_count++;
}

static void set_field(struct stele_plan *plan, const char *name, uint32_t type)
{
	struct stele_descriptor_field field = {.type = type};

	snprintf(field.name, sizeof(field.name), "%s", name);
	add_field(plan, &field);
}

static void take_schema(struct stele_plan *plan,
			struct stele_builder *builder)
{
	const struct stele_source_schema *schema = &plan->schema;

	for (uint32_t i = 0; i < schema->field_count; i++) {
		struct stele_plan_names *names = &plan->names[i];

		add_field(plan, &schema->fields[i]);
		names->count = schema->names[i].count;
		if (names->count && !builder->report->class_count)
			builder->report->class_count = names->count;
		for (uint32_t j = 0; j < names->count; j++)
			names->stream_size +=
				sizeof(le16) + strlen(schema->names[i].names[j]);
	}
}

static void add_labels(struct stele_plan *plan, struct stele_builder *builder)
{
	plan->names[plan->descriptor.field_count] = (struct stele_plan_names){
		plan->classes.count, plan->classes.stream_size};
	set_field(plan, STELE_PLAN_LABEL_NAME, STELE_FIELD_I64);
	plan->has_labels = true;
	builder->report->class_count = plan->classes.count;
}

static int choose_fields(struct stele_plan *plan,
			 struct stele_builder *builder)
{
	const bool forced = builder->opts.flags & STELE_BUILD_LABELS;
	int ret = 0;

	if (plan->schema.field_count) {
		take_schema(plan, builder);
		return 0;
	}
	set_field(plan, STELE_PLAN_DATA_NAME, STELE_FIELD_BYTES);
	if (!(builder->opts.flags & STELE_BUILD_NO_LABELS))
		ret = stele_classes_find(&plan->classes, &plan->table, forced);
	if (ret == -EOVERFLOW) {
		stele_log_emit(&builder->log,
			       forced ? STELE_LOG_ERROR : STELE_LOG_INFO,
			       "too many top-level directories for labels");
		if (!forced)
			ret = 0;
	}
	if (ret <= 0)
		return ret;
	add_labels(plan, builder);
	return 0;
}

/* Those of a base, whatever the source looks like. */
static int take_fields(struct stele_plan *plan, struct stele_builder *builder,
		       const struct stele_base *base)
{
	int ret;

	set_field(plan, STELE_PLAN_DATA_NAME, STELE_FIELD_BYTES);
	if (!base->has_labels)
		return 0;
	ret = stele_classes_begin(&plan->classes, base);
	if (!ret)
		ret = stele_classes_find(&plan->classes, &plan->table, true);
	if (ret == -EOVERFLOW)
		stele_log_error(&builder->log,
				"too many top-level directories for labels");
	if (ret < 0)
		return ret;
	add_labels(plan, builder);
	return 0;
}

static void fill_report(const struct stele_plan *plan,
			struct stele_builder *builder)
{
	const struct stele_descriptor *d = &plan->descriptor;
	struct stele_build_report *report = builder->report;

	report->sample_count = d->sample_count;
	report->payload_size = d->payload_size;
	report->slots_size = d->slots_size;
	report->padding_size = stele_descriptor_padding(d);
	report->table_size = d->run_count * sizeof(struct stele_disk_run);
	report->sections_size = plan->sections_size;
	report->run_count = d->run_count;
	report->granule = d->granule;
}

void stele_plan_init(struct stele_plan *plan,
		     const struct stele_builder *builder)
{
	memset(plan, 0, sizeof(*plan));
	plan->pool.budget = builder->opts.memory_size / 2;
	plan->descriptor.boundary = builder->boundary;
	stele_table_init(&plan->table, &plan->pool);
	stele_classes_init(&plan->classes, &plan->pool);
	stele_spill_init(&plan->ordinals, &plan->pool);
	stele_spill_init(&plan->numbers, &plan->pool);
	stele_spill_init(&plan->runs, &plan->pool);
}

int stele_plan_layout(struct stele_plan *plan, struct stele_builder *builder,
		      const struct stele_base *base)
{
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	ret = base ? take_fields(plan, builder, base) :
		     choose_fields(plan, builder);
	if (!ret)
		ret = stele_layout_granule(plan, builder);
	if (!ret)
		ret = stele_layout_numbers(plan, builder);
	if (!ret)
		ret = stele_layout_runs(plan, builder);
	if (!ret)
		ret = stele_layout_segment(plan, builder);
	if (!ret)
		fill_report(plan, builder);
	builder->report->scan_seconds += stele_seconds_since(&begin);
	return ret;
}

int stele_plan_make(struct stele_plan *plan, struct stele_builder *builder,
		    struct stele_source *source)
{
	int ret;

	stele_plan_init(plan, builder);
	ret = stele_plan_scan(plan, builder, source);
	return ret ? ret : stele_plan_layout(plan, builder, NULL);
}

void stele_plan_release(struct stele_plan *plan)
{
	stele_table_release(&plan->table);
	stele_classes_release(&plan->classes);
	stele_spill_release(&plan->ordinals);
	stele_spill_release(&plan->numbers);
	stele_spill_release(&plan->runs);
}

uint64_t stele_plan_offset(const struct stele_plan *plan, uint64_t number)
{
	const struct stele_descriptor *d = &plan->descriptor;
	const struct stele_run *run;

	if (number >= d->sample_count)
		return d->slots_offset + d->slots_size;
	run = stele_run_find(plan->runs.data, d->run_count, number);
	return stele_run_slot(run, number, d->boundary);
}

void stele_plan_sample(const struct stele_plan *plan, uint64_t number,
		       struct stele_plan_sample *out)
{
	const struct stele_descriptor *d = &plan->descriptor;
	const struct stele_run *run =
		stele_run_find(plan->runs.data, d->run_count, number);

	out->ordinal = ((const uint64_t *)plan->ordinals.data)[number];
	out->offset = stele_run_slot(run, number, d->boundary);
	out->slot_size = run->slot_size;
	stele_table_get(&plan->table, out->ordinal, &out->entry);
	out->label = plan->has_labels ? stele_classes_label(&plan->classes,
							    out->ordinal) :
					0;
}

size_t stele_plan_name(const struct stele_plan *plan, uint32_t field,
		       uint32_t value, const char **name)
{
	if (plan->has_labels)
		return stele_classes_name(&plan->classes, &plan->table, value,
					  name);
	*name = plan->schema.names[field].names[value];
	return strlen(*name);
}
