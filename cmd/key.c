/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.c - KEY and #ID, as users name samples
 */
#include "key.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "parse.h"
#include "text.h"

bool key_is_id(const char *text, uint64_t *id)
{
	return text[0] == '#' && !parse_number(text + 1, 0, UINT64_MAX, id);
}

int key_resolve(struct stele_dataset *ds, const char *text, bool keys_only,
		uint64_t *id)
{
	uint64_t other;

	if (keys_only || !key_is_id(text, id))
		return stele_dataset_lookup(ds, text, strlen(text), id);
	if (*id >= stele_dataset_count(ds))
		return -ERANGE;
	if (!stele_dataset_lookup(ds, text, strlen(text), &other) && other != *id)
		cmd_message("warning: '%s' is also the key of another sample, which "
			    "'stele cat --keys' reads", text);
	return 0;
}

int key_of(struct stele_dataset *ds, uint64_t id, char **key, size_t *size)
{
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor;
	int got = stele_cursor_open(ds, NULL, 0, &cursor);

	uint64_t found = id;

	*key = NULL;
	if (got < 0)
		return got;
	do
		got = stele_cursor_next(cursor, &entry);
	while (got > 0 && entry.id != id);
	if (got > 0) {
		*key = strndup(entry.key, entry.key_size);
		*size = entry.key_size;
	}
	stele_cursor_close(cursor);
	if (got <= 0)
		return got < 0 ? got : -EUCLEAN;
	if (!*key)
		return -ENOMEM;
	/* Is it the record's own key, too? */
	got = stele_dataset_lookup(ds, *key, *size, &found);
	if (got == 0 && found == id)
		return 0;
	free(*key);
	*key = NULL;
	return got < 0 && got != -ENOENT ? got : -EUCLEAN;
}

/* malloc'ed and escaped; NULL when the keys are damaged, too. */
static char *find_key(struct stele_dataset *ds, uint64_t id)
{
	char *key, *escaped;
	size_t size;

	if (key_of(ds, id, &key, &size) < 0)
		return NULL;
	escaped = text_escape(key, size);
	free(key);
	return escaped;
}

char *key_name(struct stele_dataset *ds, uint64_t id)
{
	char *key = find_key(ds, id), *name = NULL;
	int length;

	if (key)
		length = asprintf(&name, "sample #%" PRIu64 " '%s'", id, key);
	else
		length = asprintf(&name, "sample #%" PRIu64, id);
	free(key);
	return length < 0 ? NULL : name;
}
