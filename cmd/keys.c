/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - see keys.h
 */
#include "keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int keys_add(struct keys *keys, const char *key, size_t size)
{
	if (keys->count == keys->capacity) {
		size_t capacity = keys->capacity ? 2 * keys->capacity : 64;
		struct stele_key_ref *refs =
			reallocarray(keys->refs, capacity, sizeof(*refs));

		if (!refs)
			return -ENOMEM;
		keys->refs = refs;
		keys->capacity = capacity;
	}
	keys->refs[keys->count++] = (struct stele_key_ref){key, size};
	return 0;
}

int keys_add_id(struct keys *keys, uint64_t id)
{
	uint64_t *ids = reallocarray(keys->ids, keys->id_count + 1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	keys->ids = ids;
	keys->ids[keys->id_count++] = id;
	return 0;
}

static int read_all(FILE *from, char **text, size_t *size)
{
	size_t capacity = 0, got;

	*text = NULL;
	*size = 0;
	do {
		if (*size == capacity) {
			char *larger;

			capacity = capacity ? 2 * capacity : 65536;
			larger = realloc(*text, capacity);
			if (!larger)
				return -ENOMEM;
			*text = larger;
		}
		errno = 0;
		got = fread(*text + *size, 1, capacity - *size, from);
		*size += got;
	} while (got);
	if (ferror(from))
		return errno ? -errno : -EIO;
	return 0;
}

static int add_text(struct keys *keys, const char *text, size_t size, char end)
{
	const char *stop;
	int error = 0;

	for (size_t at = 0; at < size && !error; at = (size_t)(stop - text) + 1) {
		stop = memchr(text + at, end, size - at);
		if (!stop)
			stop = text + size;
		if (stop > text + at)
			error = keys_add(keys, text + at,
					 (size_t)(stop - text) - at);
	}
	return error;
}

/* Takes `text`. */
static int own(struct keys *keys, char *text)
{
	char **texts = reallocarray(keys->texts, keys->text_count + 1, sizeof(char *));

	if (!texts) {
		free(text);
		return -ENOMEM;
	}
	keys->texts = texts;
	keys->texts[keys->text_count++] = text;
	return 0;
}

int keys_read(struct keys *keys, const char *path, bool null)
{
	bool is_stdin = strcmp(path, "-") == 0;
	FILE *from = is_stdin ? stdin : fopen(path, "re");
	char *text = NULL;
	size_t size;
	int error;

	if (!from)
		return -errno;
	error = read_all(from, &text, &size);
	if (!is_stdin)
		fclose(from);
	if (error) {
		free(text);
		return error;
	}
	error = own(keys, text);
	return error ? error : add_text(keys, text, size, null ? '\0' : '\n');
}

void keys_release(struct keys *keys)
{
	for (size_t i = 0; i < keys->text_count; i++)
		free(keys->texts[i]);
	free(keys->texts);
	free(keys->refs);
	free(keys->ids);
	memset(keys, 0, sizeof(*keys));
}
