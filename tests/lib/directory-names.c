/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory-names.c - keys as files and directories, against a model; a cursor that skips
 *
 * Keys are short and of few letters, so that names are files and directories at once, and
 * others sort between the two.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/random.h"
#include "tests/fixture/appended.h"
#include "tests/tap.h"

#define KEYS	 400u
#define KEY_SIZE 9u

static struct fake fake;
static struct stele_dataset *ds;
static uint64_t state = 4711;

static bool has(const char *key)
{
	for (size_t i = 0; i < fake.count; i++)
		if (!strcmp(fake.files[i].key, key))
			return true;
	return false;
}

static void make(void)
{
	static const char letters[] = "//a-.0";
	char key[KEY_SIZE + 1];

	fake_init(&fake);
	fake.label_from = STELE_LABEL_FROM_NONE;
	while (fake.count < KEYS) {
		size_t size = 1 + stele_random_next(&state) % KEY_SIZE;

		for (size_t i = 0; i < size; i++)
			key[i] = letters[stele_random_next(&state) % (sizeof(letters) - 1)];
		key[size] = '\0';
		if (!has(key))
			fake_add(&fake, key, stele_random_next(&state) % 99);
	}
}

/* ---- the model ---------------------------------------------------------------- */

static bool shown(const char *key)
{
	for (;; key++) {
		const size_t size = strcspn(key, "/");

		if (!size || (size == 1 && key[0] == '.') ||
		    (size == 2 && key[0] == '.' && key[1] == '.'))
			return false;
		key += size;
		if (!*key)
			return true;
	}
}

/* 'd', 'f' or 0, of a path. */
static char kind(const char *path)
{
	const size_t size = strlen(path);
	char found = 0;

	for (size_t i = 0; i < fake.count; i++) {
		const char *key = fake.files[i].key;

		if (!shown(key) || strncmp(key, path, size))
			continue;
		if (key[size] == '/')
			return 'd';
		if (!key[size])
			found = 'f';
	}
	return found;
}

/* Of a directory ("" or with a slash at its end): how many names. */
static unsigned int names_in(const char *directory)
{
	const size_t base = strlen(directory);
	char (*names)[KEY_SIZE + 1] = calloc(KEYS, sizeof(*names));
	unsigned int count = 0;

	for (size_t i = 0; i < fake.count; i++) {
		const char *key = fake.files[i].key;
		unsigned int j = 0;
		char name[KEY_SIZE + 1];

		if (!shown(key) || strncmp(key, directory, base))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(key + base, "/"),
			 key + base);
		while (j < count && strcmp(names[j], name))
			j++;
		if (j == count)
			strcpy(names[count++], name);
	}
	free(names);
	return count;
}

/* ---- what is compared ------------------------------------------------------------ */

static unsigned int wrong, directories;

static void check_entry(const char *path, const struct stele_directory_entry *entry)
{
	struct stele_directory_entry found;
	char key[STELE_KEY_SIZE_MAX];
	size_t size;

	if (kind(path) != (entry->is_directory ? 'd' : 'f'))
		diag("'%s' is a %c", path, kind(path) ? kind(path) : '0');
	wrong += kind(path) != (entry->is_directory ? 'd' : 'f');
	wrong += stele_directory_lookup(ds, path, strlen(path), &found) != 0 ||
		 found.id != entry->id || found.size != entry->size ||
		 found.is_directory != entry->is_directory;
	if (entry->is_directory)
		return;
	wrong += stele_dataset_key(ds, entry->id, key, &size) != 0 ||
		 size != strlen(path) || memcmp(key, path, size) != 0;
}

static void list(const char *path)
{
	struct stele_directory *directory;
	struct stele_directory_entry entry;
	char below[STELE_KEY_SIZE_MAX], within[KEY_SIZE + 2];
	unsigned int count = 0;
	int ret;

	directories++;
	snprintf(within, sizeof(within), "%s%s", path, *path ? "/" : "");
	if (stele_directory_open(ds, path, strlen(path), &directory) < 0)
		bail("cannot open '%s'", path);
	while ((ret = stele_directory_next(directory, &entry)) > 0) {
		strcpy(below, within);
		strncat(below, entry.name, entry.name_size);
		check_entry(below, &entry);
		if (entry.is_directory)
			list(below);
		count++;
	}
	wrong += ret != 0 || count != names_in(within);
	if (count != names_in(within))
		diag("'%s': %u names, and not %u", path, count, names_in(within));
	stele_directory_close(directory);
}

static void test_lookups(void)
{
	struct stele_directory_entry entry;
	char path[KEY_SIZE + 1];
	unsigned int bad = 0;

	for (size_t i = 0; i < fake.count; i++)
		for (size_t cut = 1; cut <= strlen(fake.files[i].key); cut++) {
			int ret;

			snprintf(path, sizeof(path), "%.*s", (int)cut, fake.files[i].key);
			ret = stele_directory_lookup(ds, path, strlen(path), &entry);
			bad += ret != (kind(path) ? 0 : -ENOENT) ||
			       (!ret && entry.is_directory != (kind(path) == 'd'));
		}
	is_uint(0, bad, "beginnings of keys are what they should be");
	is_int(0, stele_directory_lookup(ds, "", 0, &entry), "the top");
	is_uint(1, entry.is_directory, "is a directory");
}

/* Forward, in steps, against a cursor that walks. */
static void test_seek(void)
{
	struct stele_cursor *cursor, *walk;
	struct stele_cursor_entry entry, wanted = {0};
	unsigned int bad = 0, steps = 0;
	int got = 1;

	if (stele_cursor_open(ds, NULL, 0, &cursor) < 0 ||
	    stele_cursor_open(ds, NULL, 0, &walk) < 0)
		bail("no cursor");
	while (got > 0) {
		for (uint64_t i = stele_random_next(&state) % 9 + 1; got > 0 && i; i--)
			got = stele_cursor_next(walk, &wanted);
		if (got <= 0)
			break;
		bad += stele_cursor_seek(cursor, wanted.key, wanted.key_size) != 0;
		bad += stele_cursor_next(cursor, &entry) != 1 || entry.id != wanted.id;
		/* What was handed out does not come again. */
		bad += stele_cursor_seek(cursor, wanted.key, wanted.key_size) != 0;
		steps++;
	}
	is_uint(0, bad, "a cursor finds what another walks to");
	ok(steps > 50, "%u times", steps);
	is_int(0, stele_cursor_seek(cursor, "\xff", 1), "beyond the last one");
	is_int(0, stele_cursor_next(cursor, &entry), "is the end");
	is_int(-EINVAL, stele_cursor_seek(cursor, NULL, 1), "no key");
	stele_cursor_close(walk);
	stele_cursor_close(cursor);
}

static void test_snapshot(const char *name)
{
	wrong = directories = 0;
	ds = appended_open(name);
	if (!ds)
		bail("cannot open '%s'", name);
	list("");
	is_uint(0, wrong, "%s: names, ids and sizes", name);
	ok(directories > 20, "%s: %u directories", name, directories);
	test_lookups();
	test_seek();
	stele_dataset_close(ds);
}

int main(void)
{
	const struct stele_append_opts update = appended_options(STELE_APPEND_UPDATE);

	plan_lazy();
	appended_device(16);
	make();
	appended_base(&fake);
	test_snapshot("v1");
	/* Of two segments, the first with holes. */
	for (size_t i = 0; i < fake.count; i += 3)
		fake.files[i].version = 1, fake.files[i].changed++;
	fake.files[7].size++;
	fake.files[7].size_now++;
	is_int(0, appended(&fake, "v2", &update), "append");
	test_snapshot("v2");
	stele_device_close(appended_dev);
	fake_release(&fake);
	return done();
}
