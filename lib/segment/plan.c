/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - scan a source, take its fields, have it laid out
 */
#include "lib/segment/plan.h"

#include <errno.h>
#include <string.h>

#include "lib/base/options.h"
#include "lib/segment/layout.h"

struct scanning {
	struct stele_plan *plan;
	struct stele_builder *builder;
	pthread_mutex_t lock; /* of the table and what follows */
	int error; /* a source that does not return it ends with it all the same */
	uint64_t samples, bytes; /* atomic: for progress */
};

static int add_entry(struct scanning *scanning,
		     const struct stele_source_entry *entry)
{
	struct stele_table *table = &scanning->plan->table;
	int ret = stele_table_add(table, entry);

	if (ret < 0)
		stele_log_error(&scanning->builder->log,
				"cannot store the list of samples: %s",
				stele_strerror(ret));
	__atomic_store_n(&scanning->samples, table->count, __ATOMIC_RELAXED);
	__atomic_store_n(&scanning->bytes, table->payload_size,
			 __ATOMIC_RELAXED);
	return ret;
}

/* A source that hands entries over from several threads need not lock them out. */
static int scan_entry(void *user, const struct stele_source_entry *given)
{
	struct scanning *scanning = user;
	struct stele_source_entry entry;
	int ret = stele_options_copy(given, &entry, sizeof(entry),
				     &scanning->builder->log);

	if (!ret)
		ret = stele_source_check_entry(&entry, &scanning->builder->log);
	pthread_mutex_lock(&scanning->lock);
	if (!ret)
		ret = add_entry(scanning, &entry);
	if (ret < 0 && !scanning->error)
		scanning->error = ret;
	pthread_mutex_unlock(&scanning->lock);
	return ret;
}

/* Whether its samples are still there nobody knows. */
static int add_unread(struct scanning *scanning, const char *key, size_t key_size)
{
	const struct stele_source_entry entry = {.key = key, .key_size = key_size};
	int ret = 0;

	pthread_mutex_lock(&scanning->lock);
	if (key_size <= STELE_KEY_SIZE_MAX)
		ret = stele_table_add(&scanning->plan->unread, &entry);
	pthread_mutex_unlock(&scanning->lock);
	return ret;
}

static int scan_skip(void *user, enum stele_skip_reason reason,
		     const char *key, size_t key_size, int error)
{
	struct scanning *scanning = user;
	int ret;

	if (reason == STELE_SKIP_UNREADABLE || reason == STELE_SKIP_VANISHED ||
	    reason == STELE_SKIP_CHANGED) {
		ret = stele_builder_lost(scanning->builder, key, key_size,
					 error, NULL);
		return ret || reason == STELE_SKIP_VANISHED ?
			       ret :
			       add_unread(scanning, key, key_size);
	}
	stele_builder_skip(scanning->builder, reason, key, key_size, error);
	return 0;
}

static int scan_tick(void *user)
{
	struct scanning *scanning = user;
	struct stele_progress *progress = &scanning->builder->progress;

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

/* Where the samples come from, if the source knows. */
static int refuse_repeated(const struct stele_plan *plan, const struct stele_builder *builder,
			   const struct stele_source *source, uint64_t second)
{
	struct stele_source_entry entry;
	char key[STELE_QUOTE_SIZE], places[2][STELE_QUOTE_SIZE] = {"", ""};

	for (uint64_t i = 0; i < 2; i++) {
		stele_table_get(&plan->table, second - 1 + i, &entry);
		if (source->ops.describe)
			source->ops.describe(source->user, &entry, places[i],
					     sizeof(places[i]));
	}
	stele_source_quote(entry.key, entry.key_size, key);
	if (source->puts && *places[0] && *places[1])
		stele_log_error(&builder->log,
				"'%s' was put twice: as samples %s and %s, counted from 0", key,
				places[0], places[1]);
	else if (source->puts)
		stele_log_error(&builder->log, "'%s' was put twice", key);
	else
		stele_log_error(&builder->log, "the source has the key '%s' twice%s%s%s%s", key,
				*places[0] ? ": " : "", places[0], *places[1] ? ", " : "",
				places[1]);
	return -EEXIST;
}

static int sort_table(struct stele_plan *plan, struct stele_builder *builder,
		      const struct stele_source *source)
{
	uint64_t repeated;
	int ret = stele_table_sort(&plan->unread, builder_tick, builder,
				   &repeated);

	if (!ret)
		ret = stele_table_sort(&plan->table, builder_tick, builder,
				       &repeated);
	if (ret || repeated == plan->table.count)
		return ret;
	if (source->ops.flags & STELE_SOURCE_REPEATS) {
		stele_table_drop_repeated(&plan->table);
		return 0;
	}
	if (source->ops.replace)
		ret = stele_table_replace(&plan->table, source, &repeated);
	return ret || repeated == plan->table.count ?
		       ret : refuse_repeated(plan, builder, source, repeated);
}

static int scan(struct stele_plan *plan, struct stele_builder *builder,
		const struct stele_source *source)
{
	struct scanning scanning = {.plan = plan, .builder = builder};
	const struct stele_source_sink sink = {
		.size = sizeof(sink),
		.user = &scanning,
		.entry = scan_entry,
		.skip = scan_skip,
		.tick = scan_tick,
		.jobs = builder->opts.jobs,
	};
	int ret;

	pthread_mutex_init(&scanning.lock, NULL);
	ret = source->ops.scan(source->user, &sink);
	pthread_mutex_destroy(&scanning.lock);
	if (!ret && builder->cancelled)
		ret = -ECANCELED;
	if (!ret)
		ret = scanning.error;
	return ret > 0 ? -EINVAL : ret;
}

/* Of `label`, or, without such a field, of the first one that has names. */
static uint32_t count_classes(const struct stele_fields *fields)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < fields->count; i++) {
		if (!strncmp(fields->list[i].name, "label", STELE_FIELD_NAME_SIZE))
			return fields->names[i].count;
		if (!first)
			first = fields->names[i].count;
	}
	return first;
}

int stele_plan_scan(struct stele_plan *plan, struct stele_builder *builder,
		    const struct stele_source *source,
		    const struct stele_base *base)
{
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	ret = stele_builder_phase(builder, STELE_PHASE_SCAN, 0, 0);
	if (!ret)
		ret = scan(plan, builder, source);
	if (!ret)
		ret = sort_table(plan, builder, source);
	if (!ret)
		ret = stele_fields_take(&plan->fields, source, base, &builder->log);
	if (!ret)
		builder->report->class_count = count_classes(&plan->fields);
	plan->descriptor.field_count = plan->fields.count;
	builder->report->scan_seconds = stele_seconds_since(&begin);
	return ret;
}

static void fill_report(const struct stele_plan *plan,
			struct stele_builder *builder)
{
	const struct stele_descriptor *d = &plan->descriptor;
	struct stele_build_report *report = builder->report;

	report->written_count = d->sample_count;
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
	plan->pool.directory = builder->temp_directory;
	plan->pool.log = &builder->log;
	plan->descriptor.boundary = builder->boundary;
	stele_table_init(&plan->table, &plan->pool);
	stele_table_init(&plan->unread, &plan->pool);
	stele_spill_init(&plan->ordinals, &plan->pool);
	stele_spill_init(&plan->numbers, &plan->pool);
	stele_spill_init(&plan->runs, &plan->pool);
}

int stele_plan_layout(struct stele_plan *plan, struct stele_builder *builder)
{
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
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
		    const struct stele_source *source)
{
	int ret;

	stele_plan_init(plan, builder);
	ret = stele_plan_scan(plan, builder, source, NULL);
	return ret ? ret : stele_plan_layout(plan, builder);
}

void stele_plan_release(struct stele_plan *plan)
{
	stele_table_release(&plan->table);
	stele_table_release(&plan->unread);
	stele_fields_release(&plan->fields);
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
}
