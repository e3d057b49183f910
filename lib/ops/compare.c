/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - merge a table with the keys of each segment of a base
 */
#include "lib/ops/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/deleted.h"
#include "lib/image/section.h"
#include "lib/ops/candidates.h"
#include "lib/ops/label_check.h"

#define TICK_EVERY 4096u

struct comparing {
	struct stele_comparison *out;
	struct stele_builder *builder;
	struct stele_table *table;
	const struct stele_table *unread; /* of the plan */
	const struct stele_base *base;
	struct stele_candidates candidates;
	struct stele_label_check labels;
	uint32_t flags; /* of the options */
	bool refuses;	/* a key that is there, see struct stele_source */

	/* The segment at hand. */
	const struct stele_segment *segment;
	struct stele_drops *drops;
	struct stele_keys_walk walk;
	uint64_t steps;
};

static int drop(struct comparing *c, uint64_t number, uint64_t size)
{
	struct stele_drops *drops = c->drops;
	int ret = stele_spill_grow(&drops->numbers,
				   (drops->count + 1) * sizeof(number));

	if (ret < 0)
		return ret;
	((uint64_t *)drops->numbers.data)[drops->count++] = number;
	drops->payload_size += size;
	return 0;
}

static void keep(struct comparing *c, uint64_t ordinal)
{
	stele_table_mark(c->table, ordinal, STELE_MARK_KNOWN);
	c->out->unchanged++;
}

static int replace(struct comparing *c, uint64_t ordinal, uint64_t number,
		   uint64_t size)
{
	stele_table_mark(c->table, ordinal, STELE_MARK_REPLACES);
	c->out->updated++;
	return drop(c, number, size);
}

static int decide(struct comparing *c)
{
	const struct stele_candidate *list;
	int ret;

	c->candidates.segment = c->segment;
	ret = stele_candidates_decide(&c->candidates);
	list = c->candidates.list.data;
	for (uint64_t i = 0; i < c->candidates.count && !ret; i++) {
		if (list[i].changed)
			ret = replace(c, list[i].ordinal, list[i].number,
				      list[i].size);
		else
			keep(c, list[i].ordinal);
	}
	c->candidates.count = 0;
	return ret;
}

static int refuse(const struct comparing *c, const struct stele_source_entry *entry)
{
	char text[STELE_QUOTE_SIZE];

	stele_log_error(&c->builder->log, "'%s' is there already",
			stele_source_quote(entry->key, entry->key_size, text));
	return -EEXIST;
}

/* The source has a sample of a key that lives in this segment. */
static int match(struct comparing *c, uint64_t ordinal,
		 const struct stele_source_entry *entry)
{
	const struct stele_key *key = &c->walk.cursor.key;
	int ret = stele_label_check(&c->labels, c->segment, key->number, entry);

	if (ret < 0)
		return ret;
	if (c->refuses)
		return refuse(c, entry);
	if (c->flags & STELE_APPEND_UPDATE && entry->data_size != key->size)
		return replace(c, ordinal, key->number, key->size);
	if (!(c->flags & STELE_APPEND_UPDATE) ||
	    (c->flags & STELE_APPEND_QUICK &&
	     stele_table_marked(c->table, ordinal, STELE_MARK_SETTLED))) {
		keep(c, ordinal);
		return 0;
	}
	return stele_candidates_add(&c->candidates, ordinal, key->number,
				    key->size);
}

/* Is the key at hand that of sample *ordinal, the first one not before it? */
static bool find(struct comparing *c, uint64_t *ordinal,
		 struct stele_source_entry *entry)
{
	const struct stele_key *key = &c->walk.cursor.key;

	*ordinal = stele_table_seek(c->table, *ordinal, key->key,
				    key->key_size);
	if (*ordinal == c->table->count)
		return false;
	stele_table_get(c->table, *ordinal, entry);
	return stele_key_compare(key->key, key->key_size, entry->key,
				 entry->key_size) == 0;
}

/* On from the key at hand; to the next one that matters. As a walk's next. */
static int advance(struct comparing *c, uint64_t ordinal)
{
	struct stele_source_entry entry;

	if (c->flags & STELE_APPEND_DELETE_MISSING)
		return stele_keys_walk_next(&c->walk);
	if (ordinal == c->table->count)
		return 0;
	stele_table_get(c->table, ordinal, &entry);
	return stele_keys_walk_seek(&c->walk, entry.key, entry.key_size);
}

/* Could the source not look at it, or at a directory that it lies in? */
static bool is_unread(const struct comparing *c, const struct stele_key *key)
{
	struct stele_source_entry entry;

	for (size_t size = 0; c->unread->count && size <= key->key_size; size++) {
		uint64_t at;

		if (size && size < key->key_size && key->key[size] != '/')
			continue;
		at = stele_table_seek(c->unread, 0, key->key, size);
		if (at == c->unread->count)
			return false;
		stele_table_get(c->unread, at, &entry);
		if (!stele_key_compare(key->key, size, entry.key, entry.key_size))
			return true;
	}
	return false;
}

static int tick(struct comparing *c)
{
	struct stele_progress *progress = &c->builder->progress;

	if (c->steps++ % TICK_EVERY)
		return 0;
	progress->samples_done = c->out->unchanged + c->out->updated;
	return stele_builder_tick(c->builder);
}

static int merge(struct comparing *c)
{
	const bool all = c->flags & STELE_APPEND_DELETE_MISSING;
	struct stele_source_entry entry;
	uint64_t ordinal = 0;
	int more = stele_keys_walk_next(&c->walk);

	while (more > 0) {
		const uint64_t number = c->walk.cursor.key.number;
		const bool live = !stele_deleted_has(&c->segment->deleted, number, NULL);
		int ret = tick(c);

		if (find(c, &ordinal, &entry)) {
			if (!ret && live)
				ret = match(c, ordinal, &entry);
			ordinal++;
		} else if (!ret && live && all && !is_unread(c, &c->walk.cursor.key)) {
			c->out->deleted++;
			ret = drop(c, number, c->walk.cursor.key.size);
		}
		if (ret < 0)
			return ret;
		more = advance(c, ordinal);
	}
	return more;
}

static int compare_segment(struct comparing *c, uint32_t index)
{
	struct stele_source_entry first = {.key = ""};
	int ret;

	c->segment = &c->base->snapshot->segments[index];
	c->drops = &c->out->drops[index];
	if (!c->segment->live_count)
		return 0;
	if (!(c->flags & STELE_APPEND_DELETE_MISSING)) {
		if (!c->table->count)
			return 0;
		stele_table_get(c->table, 0, &first);
	}
	ret = stele_keys_walk_open(c->base->image, c->segment, first.key,
				   first.key_size, &c->walk);
	if (!ret)
		ret = merge(c);
	if (!ret)
		ret = decide(c);
	stele_keys_walk_release(&c->walk);
	return ret;
}

static int init(struct stele_comparison *out, struct stele_plan *plan,
		const struct stele_base *base)
{
	const uint32_t count = base->snapshot->segment_count;

	memset(out, 0, sizeof(*out));
	out->drops = calloc((size_t)count + 1, sizeof(*out->drops));
	if (!out->drops)
		return -ENOMEM;
	out->segment_count = count;
	for (uint32_t i = 0; i < count; i++)
		stele_spill_init(&out->drops[i].numbers, &plan->pool);
	return 0;
}

int stele_compare(struct stele_comparison *comparison,
		  struct stele_builder *builder, struct stele_plan *plan,
		  const struct stele_source *source,
		  const struct stele_base *base)
{
	struct comparing *c = calloc(1, sizeof(*c));
	int ret = init(comparison, plan, base);

	if (ret < 0 || !c) {
		free(c);
		return -ENOMEM;
	}
	c->out = comparison;
	c->builder = builder;
	c->table = &plan->table;
	c->unread = &plan->unread;
	c->base = base;
	c->flags = builder->opts.flags;
	c->refuses = source->puts && !source->keeps && !(c->flags & STELE_APPEND_UPDATE);
	ret = stele_builder_phase(builder, STELE_PHASE_COMPARE,
				  plan->table.count, 0);
	if (!ret && c->flags & STELE_APPEND_UPDATE)
		ret = stele_candidates_init(&c->candidates, builder, plan,
					    source, base);
	c->labels = (struct stele_label_check){
		.base = base, .source = source, .fields = &plan->fields, .log = &builder->log};
	if (!ret && (!source->label_told || !(c->flags & STELE_FORCE)))
		ret = stele_label_check_init(&c->labels);
	for (uint32_t i = 0; i < base->snapshot->segment_count && !ret; i++)
		ret = compare_segment(c, i);
	comparison->added = plan->table.count - comparison->unchanged -
			    comparison->updated;
	stele_label_check_release(&c->labels);
	stele_candidates_release(&c->candidates);
	free(c);
	return ret;
}

void stele_comparison_release(struct stele_comparison *comparison)
{
	for (uint32_t i = 0; i < comparison->segment_count; i++)
		stele_spill_release(&comparison->drops[i].numbers);
	free(comparison->drops);
	memset(comparison, 0, sizeof(*comparison));
}
