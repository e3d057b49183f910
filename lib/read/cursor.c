/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.c - live keys of a snapshot in byte order, from sections alone
 *
 * A merge of one walk per segment: a heap of those that have a key, the
 * smallest on top (of equal keys, the older segment's). The walk on top is
 * moved on only at the next call, so that the entry's key stays valid until
 * then. An error is final: every later call returns it again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/section.h"
#include "lib/read/dataset.h"

struct stele_cursor {
	const struct stele_dataset *ds;
	struct stele_keys_walk *walks; /* one for each segment */
	uint32_t *heap;		       /* indices of walks */
	uint32_t heap_size;
	bool entry_out; /* the caller holds the key on top */
	int error;
	size_t prefix_size;
	char prefix[STELE_KEY_SIZE_MAX];
};

static bool goes_before(const struct stele_cursor *c, uint32_t a, uint32_t b)
{
	const struct stele_key *ka = &c->walks[a].cursor.key;
	const struct stele_key *kb = &c->walks[b].cursor.key;
	int order = stele_key_compare(ka->key, ka->key_size, kb->key,
				      kb->key_size);

	return order ? order < 0 : a < b;
}

static void swap(struct stele_cursor *c, uint32_t i, uint32_t j)
{
	uint32_t walk = c->heap[i];

	c->heap[i] = c->heap[j];
	c->heap[j] = walk;
}

static void sift_up(struct stele_cursor *c, uint32_t i)
{
	while (i && goes_before(c, c->heap[i], c->heap[(i - 1) / 2])) {
		swap(c, i, (i - 1) / 2);
		i = (i - 1) / 2;
	}
}

static void sift_down(struct stele_cursor *c, uint32_t i)
{
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= c->heap_size)
			return;
		if (child + 1 < c->heap_size &&
		    goes_before(c, c->heap[child + 1], c->heap[child]))
			child++;
		if (!goes_before(c, c->heap[child], c->heap[i]))
			return;
		swap(c, i, child);
		i = child;
	}
}

/* 1: the walk has a key with the prefix; 0: it has no more. */
static int advance(struct stele_cursor *c, uint32_t walk)
{
	const struct stele_key *key = &c->walks[walk].cursor.key;
	int more = stele_keys_walk_next(&c->walks[walk]);

	if (more > 0 && (key->key_size < c->prefix_size ||
			 memcmp(key->key, c->prefix, c->prefix_size) != 0))
		more = 0;
	return more;
}

static int open_walks(struct stele_cursor *c)
{
	const struct stele_snapshot *snapshot = &c->ds->snapshot;

	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		int more = stele_keys_walk_open(&c->ds->image,
						&snapshot->segments[i],
						c->prefix, c->prefix_size,
						&c->walks[i]);

		if (!more)
			more = advance(c, i);
		if (more < 0)
			return more;
		if (!more)
			continue;
		c->heap[c->heap_size++] = i;
		sift_up(c, c->heap_size - 1);
	}
	return 0;
}

int stele_cursor_open(struct stele_dataset *ds, const char *prefix,
		      size_t prefix_size, struct stele_cursor **out)
{
	uint32_t segments = ds->snapshot.segment_count;
	struct stele_cursor *c;
	int err = -ENOMEM;

	if (prefix_size > STELE_KEY_SIZE_MAX || (prefix_size && !prefix))
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->ds = ds;
	c->prefix_size = prefix_size;
	if (prefix_size)
		memcpy(c->prefix, prefix, prefix_size);
	c->walks = calloc(segments + 1, sizeof(*c->walks));
	c->heap = calloc(segments + 1, sizeof(*c->heap));
	if (c->walks && c->heap)
		err = open_walks(c);
	if (err) {
		stele_cursor_close(c);
		return err;
	}
	*out = c;
	return 0;
}

/* Behind the entry that the caller got. */
static int move_on(struct stele_cursor *c)
{
	int more = advance(c, c->heap[0]);

	if (more < 0)
		return more;
	if (!more)
		c->heap[0] = c->heap[--c->heap_size];
	sift_down(c, 0);
	c->entry_out = false;
	return 0;
}

/* 1: *entry is the key on top; 0: that one is deleted. */
static int take_top(struct stele_cursor *c, struct stele_cursor_entry *entry)
{
	const struct stele_snapshot *snapshot = &c->ds->snapshot;
	const struct stele_key *key = &c->walks[c->heap[0]].cursor.key;
	int err;

	c->entry_out = true;
	err = stele_snapshot_id(snapshot, &snapshot->segments[c->heap[0]],
				key->number, &entry->id);
	if (err)
		return err == -ENOENT ? 0 : -EUCLEAN;
	entry->key = key->key;
	entry->key_size = key->key_size;
	entry->size = key->size;
	return 1;
}

int stele_cursor_next(struct stele_cursor *c, struct stele_cursor_entry *entry)
{
	int ret = c->error;

	while (!ret) {
		if (c->entry_out)
			ret = move_on(c);
		if (ret || !c->heap_size)
			break;
		ret = take_top(c, entry);
	}
	if (ret < 0)
		c->error = ret;
	return ret;
}

void stele_cursor_close(struct stele_cursor *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; c->walks && i < c->ds->snapshot.segment_count; i++)
		stele_keys_walk_release(&c->walks[i]);
	free(c->walks);
	free(c->heap);
	free(c);
}
