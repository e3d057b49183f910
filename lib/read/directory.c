/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.c - a snapshot's keys as a tree of files, from sections alone
 *
 * One directory at a time, by a cursor over all that is below it: an entry that is a
 * directory is known by the first key below it, and the cursor skips the others. Names are
 * those of lib/posix: a name that is a directory's is no file's, though its key comes first,
 * and other keys may come in between ("a", "a-b", "a/x").
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/posix/directory.h"
#include "lib/read/dataset.h"

#define AFTER_SLASH ('/' + 1)

struct stele_directory {
	struct stele_dataset *ds;
	struct stele_cursor *cursor;
	struct stele_cursor_entry next;
	int got; /* of the cursor; 1: `next` is set */
	bool skip; /* to all that is not below `path` + AFTER_SLASH */
	size_t base; /* bytes of a key before its name here */
	size_t path_size;
	char path[STELE_KEY_SIZE_MAX + 1]; /* of the entry handed out, and a slash */
};

static bool begins_with(const struct stele_cursor_entry *entry, const char *path, size_t size)
{
	return entry->key_size >= size && !memcmp(entry->key, path, size);
}

/*
 * Is there a file below this path? The cursor has not gone beyond its end. Return: 1; 0;
 * errors of the cursor.
 */
static int has_below(struct stele_cursor *cursor, const char *path, size_t size)
{
	char below[STELE_KEY_SIZE_MAX + 1];
	struct stele_cursor_entry entry;
	int ret;

	if (size >= STELE_KEY_SIZE_MAX)
		return 0;
	memcpy(below, path, size);
	below[size++] = '/';
	ret = stele_cursor_seek(cursor, below, size);
	while (ret == 0 && (ret = stele_cursor_next(cursor, &entry)) > 0 &&
	       begins_with(&entry, below, size)) {
		if (stele_posix_key_ok(entry.key, entry.key_size))
			return 1;
		ret = 0;
	}
	return ret < 0 ? ret : 0;
}

/* ---- one directory ---------------------------------------------------------- */

static int directory_open(struct stele_dataset *ds, const char *path, size_t size,
			  struct stele_directory **out)
{
	struct stele_directory *d;
	int ret;

	if (size >= STELE_KEY_SIZE_MAX)
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->ds = ds;
	if (size) {
		memcpy(d->path, path, size);
		d->path[size] = '/';
		d->base = size + 1;
	}
	ret = stele_cursor_open(ds, d->path, d->base, &d->cursor);
	if (ret == 0)
		ret = d->got = stele_cursor_next(d->cursor, &d->next);
	if (ret < 0) {
		stele_directory_close(d);
		return ret;
	}
	*out = d;
	return 0;
}

int stele_directory_open(struct stele_dataset *ds, const char *path, size_t path_size,
			 struct stele_directory **out)
{
	return STELE_CALL(directory_open(ds, path, path_size, out), "cannot list files");
}

static void advance(struct stele_directory *d)
{
	d->got = stele_cursor_next(d->cursor, &d->next);
}

/* What is below the directory that was handed out has been seen. */
static void skip(struct stele_directory *d)
{
	d->skip = false;
	d->path[d->path_size] = AFTER_SLASH;
	d->got = stele_cursor_seek(d->cursor, d->path, d->path_size + 1);
	if (d->got == 0)
		advance(d);
}

/* Is the file that `path` names a directory, too? `next` is the key behind it. */
static int is_both(struct stele_directory *d)
{
	struct stele_cursor *cursor;
	int ret;

	if (d->got <= 0 || !begins_with(&d->next, d->path, d->path_size) ||
	    d->next.key[d->path_size] > '/')
		return d->got < 0 ? d->got : 0;
	ret = stele_cursor_open(d->ds, d->path, d->path_size, &cursor);
	if (ret < 0)
		return ret;
	ret = has_below(cursor, d->path, d->path_size);
	stele_cursor_close(cursor);
	return ret;
}

/* The next key, which is there. Return: 1: *entry is set; 0: it has no entry here. */
static int take(struct stele_directory *d, struct stele_directory_entry *entry)
{
	const char *name = d->next.key + d->base, *slash;
	int ret;

	if (!stele_posix_key_ok(d->next.key, d->next.key_size)) {
		advance(d);
		return d->got < 0 ? d->got : 0;
	}
	slash = memchr(name, '/', d->next.key_size - d->base);
	d->path_size = slash ? (size_t)(slash - d->next.key) : d->next.key_size;
	memcpy(d->path, d->next.key, d->path_size);
	*entry = (struct stele_directory_entry){
		.name = d->path + d->base,
		.name_size = d->path_size - d->base,
		.is_directory = slash != NULL,
	};
	d->skip = slash;
	if (slash)
		return 1;
	entry->id = d->next.id;
	entry->size = d->next.size;
	advance(d);
	ret = is_both(d);
	return ret < 0 ? ret : !ret;
}

static int directory_next(struct stele_directory *d, struct stele_directory_entry *entry)
{
	int ret = 0;

	if (d->skip)
		skip(d);
	while (ret == 0 && d->got > 0)
		ret = take(d, entry);
	return ret ? ret : d->got;
}

int stele_directory_next(struct stele_directory *d, struct stele_directory_entry *entry)
{
	return STELE_CALL(directory_next(d, entry), "cannot list files");
}

void stele_directory_close(struct stele_directory *d)
{
	if (!d)
		return;
	stele_cursor_close(d->cursor);
	free(d);
}

/* ---- one path ------------------------------------------------------------------ */

/* The first key at or behind the path is `first`, if `got`. */
static int decide(struct stele_cursor *cursor, const struct stele_cursor_entry *first, int got,
		  const char *path, size_t size, struct stele_directory_entry *entry)
{
	const bool is_file = got > 0 && first->key_size == size;
	const struct stele_directory_entry file = {.id = first->id, .size = first->size};
	int ret = got;

	/* "a/x" was the first: then it is behind the cursor. */
	if (got > 0 && !is_file && first->key[size] == '/' &&
	    stele_posix_key_ok(first->key, first->key_size))
		ret = 1;
	else if (got > 0)
		ret = has_below(cursor, path, size);
	if (ret < 0)
		return ret;
	*entry = ret ? (struct stele_directory_entry){.is_directory = 1} : file;
	return ret || is_file ? 0 : -ENOENT;
}

static int directory_lookup(struct stele_dataset *ds, const char *path, size_t size,
			    struct stele_directory_entry *entry)
{
	struct stele_cursor_entry first = {0};
	struct stele_cursor *cursor;
	int ret;

	if (!size) {
		*entry = (struct stele_directory_entry){.is_directory = 1};
		return 0;
	}
	if (size > STELE_KEY_SIZE_MAX || !stele_posix_key_ok(path, size))
		return -ENOENT;
	ret = stele_cursor_open(ds, path, size, &cursor);
	if (ret < 0)
		return ret;
	ret = stele_cursor_next(cursor, &first);
	ret = decide(cursor, &first, ret, path, size, entry);
	stele_cursor_close(cursor);
	return ret;
}

int stele_directory_lookup(struct stele_dataset *ds, const char *path, size_t path_size,
			   struct stele_directory_entry *entry)
{
	return STELE_CALL(directory_lookup(ds, path, path_size, entry), "cannot find a file");
}
