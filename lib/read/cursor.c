/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.c - live keys of a snapshot in byte order, from sections alone
 *
 * A merge of the keys of all segments, less the deleted. An error is final:
 * every later call returns it again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"

#include "lib/image/merge.h"
#include "lib/read/dataset.h"

struct stele_cursor {
	struct stele_dataset *ds;
	struct stele_keys_merge merge;
	bool ended;
	int error;
	size_t prefix_size;
	char prefix[STELE_KEY_SIZE_MAX];
};

static int open_merge(struct stele_cursor *c)
{
	const struct stele_snapshot *snapshot = &c->ds->snapshot;
	int err = stele_keys_merge_init(&c->merge, snapshot->segment_count);

	for (uint32_t i = 0; !err && i < snapshot->segment_count; i++)
		err = stele_keys_merge_add(&c->merge, &c->ds->image,
					   &snapshot->segments[i], c->prefix,
					   c->prefix_size);
	return err;
}

static int cursor_open(struct stele_dataset *ds, const char *prefix,
		       size_t prefix_size, struct stele_cursor **out)
{
	struct stele_cursor *c;
	int err;

	if (prefix_size > STELE_KEY_SIZE_MAX || (prefix_size && !prefix))
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->ds = ds;
	stele_dataset_enter(ds);
	c->prefix_size = prefix_size;
	if (prefix_size)
		memcpy(c->prefix, prefix, prefix_size);
	err = open_merge(c);
	if (err) {
		stele_cursor_close(c);
		return err;
	}
	*out = c;
	return 0;
}

int stele_cursor_open(struct stele_dataset *ds, const char *prefix,
		      size_t prefix_size, struct stele_cursor **out)
{
	return STELE_CALL(cursor_open(ds, prefix, prefix_size, out),
			  "cannot list keys");
}

/* 1: *entry is the next key; 0: that one is deleted, or it was the last. */
static int take(struct stele_cursor *c, struct stele_cursor_entry *entry)
{
	const struct stele_key *key;
	uint32_t index;
	int ret = stele_keys_merge_next(&c->merge, &index, &key);

	if (ret < 0)
		return ret;
	if (!ret || key->key_size < c->prefix_size ||
	    memcmp(key->key, c->prefix, c->prefix_size) != 0) {
		c->ended = true;
		return 0;
	}
	ret = stele_keys_merge_id(&c->merge, index, key, &entry->id);
	if (ret)
		return ret == -ENOENT ? 0 : -EUCLEAN;
	entry->key = key->key;
	entry->key_size = key->key_size;
	entry->size = key->size;
	return 1;
}

static int cursor_next(struct stele_cursor *c, struct stele_cursor_entry *entry)
{
	int ret = c->error;

	while (!ret && !c->ended)
		ret = take(c, entry);
	if (ret < 0)
		c->error = ret;
	return ret;
}

int stele_cursor_next(struct stele_cursor *c, struct stele_cursor_entry *entry)
{
	return STELE_CALL(cursor_next(c, entry),
			  "cannot list keys");
}

static int cursor_seek(struct stele_cursor *c, const char *key, size_t key_size)
{
	if (key_size > STELE_KEY_SIZE_MAX || (key_size && !key))
		return -EINVAL;
	if (!c->error && !c->ended)
		c->error = stele_keys_merge_seek(&c->merge, key, key_size);
	return c->error;
}

int stele_cursor_seek(struct stele_cursor *c, const char *key, size_t key_size)
{
	return STELE_CALL(cursor_seek(c, key, key_size), "cannot list keys");
}

void stele_cursor_close(struct stele_cursor *c)
{
	if (!c)
		return;
	stele_keys_merge_release(&c->merge);
	stele_dataset_leave(c->ds);
	free(c);
}
