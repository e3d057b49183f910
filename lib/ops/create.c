/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create.c - an old snapshot under a new name, less some samples
 *
 * The base is loaded as a reader would, so what is made of it stands on a
 * digest that was proven. All keys are found before anything is written.
 */
#include "lib/txn/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/image/deleted.h"
#include "lib/image/key_search.h"

#define KEYS_NAMED_MAX 5u /* of those that are not there */

struct creation {
	struct stele_writer *writer;
	const char *name;
	const struct stele_edit_snapshot *base;
	struct stele_snapshot snapshot; /* the base, then the new one */
	struct stele_edit_ref *refs;
	struct stele_key_place *places; /* by key, each once */
	size_t count;
	uint64_t *numbers; /* room for all that one segment loses */
	uint64_t payload_size; /* of the new one */
};

/* ---- which samples ------------------------------------------------------------ */

static int sort_keys(struct creation *c, const struct stele_key_ref *keys,
		     size_t count)
{
	c->places = calloc(count + 1, sizeof(*c->places));
	c->numbers = calloc(count + 1, sizeof(*c->numbers));
	if (!c->places || !c->numbers)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		c->places[i].key = keys[i].data;
		c->places[i].key_size = keys[i].size;
	}
	qsort(c->places, count, sizeof(*c->places), stele_key_place_compare);
	for (size_t i = 0; i < count; i++)
		if (!i || stele_key_place_compare(&c->places[i],
						  &c->places[c->count - 1]))
			c->places[c->count++] = c->places[i];
	return 0;
}

static int find_keys(struct creation *c)
{
	const struct stele_log *log = &c->writer->log;
	size_t missing = 0;
	int ret = stele_snapshot_find_keys(&c->writer->image, &c->snapshot,
					   c->places, c->count);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < c->count; i++) {
		const struct stele_key_place *place = &c->places[i];

		if (!place->found && missing++ < KEYS_NAMED_MAX)
			stele_log_error(log, "'%.*s' is not in snapshot '%s'",
					(int)place->key_size, place->key,
					c->base->name);
	}
	if (missing > KEYS_NAMED_MAX)
		stele_log_error(log, "nor are %zu more",
				missing - KEYS_NAMED_MAX);
	return missing ? -ENOENT : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct stele_key_place *x = a, *y = b;

	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* ---- lists ---------------------------------------------------------------------- */

/* What a segment loses: the places from `first` on, so many. */
static int delete_from(struct creation *c, uint32_t index, size_t first,
		       size_t lost)
{
	struct stele_segment *segment = &c->snapshot.segments[index];
	uint64_t *merged;

	for (size_t i = 0; i < lost; i++)
		c->numbers[i] = c->places[first + i].number;
	merged = stele_deleted_merge(segment->deleted, segment->deleted_count,
				     c->numbers, lost);
	if (!merged)
		return -ENOMEM;
	free(segment->deleted);
	segment->deleted = merged;
	segment->deleted_count += lost;
	segment->deleted_digest = NULL;
	segment->live_count -= lost;
	c->snapshot.sample_count -= lost;
	return stele_edit_write_deleted(&c->writer->edit, &c->refs[index],
					merged, segment->deleted_count);
}

static int delete_samples(struct creation *c)
{
	uint64_t deleted_size = 0;
	size_t next;
	int ret;

	for (size_t i = 0; i < c->count; i++)
		deleted_size += c->places[i].size;
	ret = stele_snapshot_payload_without(&c->writer->image, &c->snapshot,
					     deleted_size, &c->payload_size);
	qsort(c->places, c->count, sizeof(*c->places), by_place);
	for (size_t i = 0; i < c->count && ret == 0; i = next) {
		next = i + 1;
		while (next < c->count &&
		       c->places[next].segment == c->places[i].segment)
			next++;
		ret = delete_from(c, c->places[i].segment, i, next - i);
	}
	return ret == 0 ? stele_snapshot_compute_digest(&c->snapshot) : ret;
}

/* ---- the whole ---------------------------------------------------------------------- */

static int load_base(struct creation *c, const char *name)
{
	struct stele_edit *edit = &c->writer->edit;
	uint32_t index;
	int ret;

	c->base = stele_edit_snapshot(edit, name);
	if (!c->base) {
		stele_log_error(&c->writer->log,
				name ? "there is no snapshot '%s' to begin with" :
				       "there is no snapshot to begin with",
				name);
		return -ENOENT;
	}
	ret = stele_snapshot_find(&c->writer->image, c->base->name, NULL,
				  &index);
	if (ret == 0)
		ret = stele_snapshot_load(&c->writer->image, index,
					  &c->snapshot);
	if (ret < 0)
		return ret;
	c->refs = calloc((size_t)c->base->ref_count + 1, sizeof(*c->refs));
	if (!c->refs)
		return -ENOMEM;
	memcpy(c->refs, c->base->refs, c->base->ref_count * sizeof(*c->refs));
	return 0;
}

static int add(struct creation *c, const struct stele_change *change)
{
	struct stele_edit_snapshot added = {
		.parent = c->base->id,
		.time = change->opts.time,
		.source_time = c->base->source_time,
		.sample_count = c->snapshot.sample_count,
		.payload_size = c->payload_size,
		.refs = c->refs,
		.ref_count = c->base->ref_count,
		/* The edit copies it. */
		.note = (char *)(uintptr_t)change->opts.note,
	};
	size_t size = change->opts.note ? strlen(change->opts.note) : 0;

	if (size > STELE_NOTES_SIZE_MAX) {
		stele_log_error(&c->writer->log, "the note is too long");
		return -EOVERFLOW;
	}
	added.note_size = (uint32_t)size;
	strncpy(added.name, c->name, sizeof(added.name) - 1);
	memcpy(added.digest, c->snapshot.digest, sizeof(added.digest));
	return stele_edit_add_snapshot(&c->writer->edit, &added);
}

static void fill_info(const struct creation *c, struct stele_snapshot_info *out)
{
	const struct stele_edit_snapshot *made =
		stele_edit_snapshot(&c->writer->edit, c->name);

	memset(out, 0, sizeof(*out));
	if (!made)
		return;
	memcpy(out->name, made->name, sizeof(out->name) - 1);
	memcpy(out->digest, made->digest, sizeof(out->digest));
	out->id = made->id;
	out->parent = made->parent;
	out->time = made->time;
	out->sample_count = made->sample_count;
	out->segment_count = made->ref_count;
	out->note_size = made->note_size;
	out->payload_size = made->payload_size;
}

static int check_name(const struct creation *c)
{
	if (stele_edit_check_name(c->name, &c->writer->log) < 0)
		return -EINVAL;
	if (!stele_edit_snapshot(&c->writer->edit, c->name))
		return 0;
	stele_log_error(&c->writer->log, "there is a snapshot '%s' already",
			c->name);
	return -EEXIST;
}

int stele_change_create(struct stele_writer *writer,
			const struct stele_change *change, const char *name,
			const char *base, const struct stele_key_ref *deleted,
			size_t deleted_count, struct stele_snapshot_info *out)
{
	struct creation c = {.writer = writer, .name = name};
	int ret;

	ret = check_name(&c);
	if (ret == 0)
		ret = load_base(&c, base);
	if (ret == 0)
		ret = sort_keys(&c, deleted, deleted_count);
	if (ret == 0)
		ret = find_keys(&c);
	if (ret == 0)
		ret = delete_samples(&c);
	if (ret == 0)
		ret = add(&c, change);
	if (ret == 0)
		ret = stele_writer_commit(writer, change->opts.time);
	if (ret == 0 && out)
		fill_info(&c, out);
	stele_snapshot_release(&c.snapshot);
	free(c.numbers);
	free(c.places);
	free(c.refs);
	return ret;
}

static int snapshot_create(const char *target, const char *base,
			   const struct stele_key_ref *deleted,
			   size_t deleted_count,
			   const struct stele_change_opts *opts,
			   struct stele_snapshot_info *out)
{
	struct stele_writer writer = {0};
	struct stele_change change;
	int ret = stele_change_init(&change, opts, 0);

	if (ret < 0)
		return ret;
	if (deleted_count && !deleted)
		return -EINVAL;
	ret = stele_change_open(&change, target, &writer);
	if (ret == 0)
		ret = stele_change_create(&writer, &change,
					  writer.target.snapshot, base, deleted,
					  deleted_count, out);
	stele_writer_close(&writer);
	return ret;
}

int stele_snapshot_create(const char *target, const char *base,
			  const struct stele_key_ref *deleted,
			  size_t deleted_count,
			  const struct stele_change_opts *opts,
			  struct stele_snapshot_info *out)
{
	return STELE_CALL(snapshot_create(target, base, deleted, deleted_count, opts, out),
			  "cannot create snapshot '%s'", target);
}
