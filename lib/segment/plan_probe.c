/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_probe.c - open each sample, and close it again; or until one can be had
 */
#include "lib/segment/plan_probe.h"

#include <errno.h>
#include <stdatomic.h>

#include "lib/base/workers.h"
#include "lib/source/reader.h"

struct probing {
	struct stele_builder *builder;
	const struct stele_plan *plan;
	const struct stele_source *source;
	_Atomic uint64_t next; /* ordinal */
	_Atomic int error;     /* all stop */
};

/* Return: `error` if it is the first, and told of by who gets it; else 0. */
static int stop(struct probing *p, int error)
{
	int none = 0;

	return error < 0 && atomic_compare_exchange_strong(&p->error, &none, error) ?
		       error : 0;
}

static int probe(struct probing *p, struct stele_source_reader *reader,
		 uint64_t ordinal)
{
	struct stele_source_entry entry;
	int ret;

	stele_table_get(&p->plan->table, ordinal, &entry);
	ret = stop(p, stele_source_reader_open(reader, &entry));
	if (ret < 0)
		ret = stele_builder_lost(p->builder, entry.key, entry.key_size,
					 ret, reader->why);
	stele_source_reader_close(reader);
	return ret;
}

static int work(void *user, unsigned int index)
{
	struct probing *p = user;
	struct stele_source_reader reader = {0};
	uint64_t ordinal;
	int ret = stop(p, stele_source_reader_init(&reader, p->source,
						   &p->plan->fields));

	(void)index;
	while (!atomic_load(&p->error) &&
	       (ordinal = atomic_fetch_add(&p->next, 1)) < p->plan->table.count)
		ret = probe(p, &reader, ordinal);
	stele_source_reader_release(&reader);
	return ret;
}

static void tick(void *user)
{
	struct probing *p = user;

	stop(p, stele_builder_tick(p->builder));
}

/* `tell`: which ones are left out. Return: 1: one can be had; 0; negative errno. */
static int find_any(const struct probing *p, bool tell)
{
	struct stele_source_reader reader = {0};
	struct stele_source_entry entry;
	int error = -ENOENT, ret = stele_source_reader_init(&reader, p->source, &p->plan->fields);

	for (uint64_t i = 0; !ret && error < 0 && i < p->plan->table.count; i++) {
		stele_table_get(&p->plan->table, i, &entry);
		error = stele_source_reader_open(&reader, &entry);
		if (error < 0 && tell)
			ret = stele_builder_lost(p->builder, entry.key, entry.key_size, error,
						 reader.why);
		stele_source_reader_close(&reader);
		if (!ret)
			ret = stele_builder_tick(p->builder);
	}
	stele_source_reader_release(&reader);
	return ret ? ret : error >= 0;
}

int stele_plan_probe(struct stele_builder *builder,
		     const struct stele_plan *plan,
		     const struct stele_source *source)
{
	struct probing p = {
		.builder = builder, .plan = plan, .source = source};
	int ret;

	if (builder->opts.flags & STELE_BUILD_SKIP_CHANGED) {
		if (builder->opts.flags & STELE_BUILD_ALLOW_EMPTY)
			return 0;
		ret = find_any(&p, false);
		if (!ret)
			ret = find_any(&p, true);
		return ret < 0 ? ret : !ret;
	}
	ret = stele_workers_run("stele-probe", builder->opts.jobs, work, tick,
				&p);
	return ret ? ret : atomic_load(&p.error);
}
