/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_probe.c - open each sample, and close it again
 */
#include "lib/segment/plan_probe.h"

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

int stele_plan_probe(struct stele_builder *builder,
		     const struct stele_plan *plan,
		     const struct stele_source *source)
{
	struct probing p = {
		.builder = builder, .plan = plan, .source = source};
	int ret;

	/* Those would be left out when their turn comes. */
	if (builder->opts.flags & STELE_BUILD_SKIP_CHANGED)
		return 0;
	ret = stele_workers_run("stele-probe", builder->opts.jobs, work, tick,
				&p);
	return ret ? ret : atomic_load(&p.error);
}
