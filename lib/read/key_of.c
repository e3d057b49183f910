/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_of.c - from an id back to its key, by sections alone
 *
 * For whoever reports a sample that cannot be read.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/image/key_list.h"
#include "lib/read/dataset.h"

/* Where the order of a segment says nothing of its keys: through all of them. */
static int walk_keys(struct stele_dataset *ds, uint64_t id, char *key, size_t *size)
{
	struct stele_cursor_entry entry = {.id = UINT64_MAX};
	struct stele_cursor *cursor;
	int ret = stele_cursor_open(ds, NULL, 0, &cursor);

	if (ret)
		return ret;
	do
		ret = stele_cursor_next(cursor, &entry);
	while (ret > 0 && entry.id != id);
	if (ret > 0) {
		*size = entry.key_size;
		memcpy(key, entry.key, *size);
	}
	stele_cursor_close(cursor);
	return ret > 0 ? 0 : ret < 0 ? ret : -EUCLEAN;
}

static int dataset_key(struct stele_dataset *ds, uint64_t id, char *key, size_t *size)
{
	const struct stele_segment *segment;
	struct stele_key_list list = {0};
	uint64_t number;
	int err;

	err = stele_snapshot_locate(&ds->snapshot, id, &segment, &number);
	if (err)
		return err;
	err = stele_key_list_load(&ds->image, segment, &number, 1, &list);
	if (!err && list.entries[0].key_size > STELE_KEY_SIZE_MAX)
		err = -EUCLEAN;
	if (!err) {
		*size = list.entries[0].key_size;
		memcpy(key, list.entries[0].key, *size);
	}
	stele_key_list_release(&list);
	return err == -ENOENT ? walk_keys(ds, id, key, size) : err;
}

int stele_dataset_key(struct stele_dataset *ds, uint64_t id,
		      char key[STELE_KEY_SIZE_MAX], size_t *size)
{
	return STELE_CALL(dataset_key(ds, id, key, size),
			  "cannot find the key of sample %" PRIu64, id);
}
