/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source-paths.c - keys that are paths get the labels that files in a directory get
 *
 * The same keys are built from a directory and from a program, with each way to take
 * labels: the images are the same, to the last byte. Keys come in an order that no
 * directory has.
 */
#include "lib/stele.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const trees[][8] = {
	{"b/2", "a/1", "b/1", "c/x/1", "a/2"},
	{"val/dog/3", "train/cat/1", "val/cat/2", "train/dog/1"},
	{"train/b/1", "README", "val/a/1", "notes/how/1"},
	{"b/x/cat/1", "a/y/dog/1", "b/y/cat/2", "a/1", "x"},
	{"1", "2", "a/1"},
};
#define TREES (sizeof(trees) / sizeof(*trees))

static char directory[400], one[420], two[420];

static int scan(void *user, const struct stele_source_sink *sink)
{
	const char *const *keys = user;
	int ret = 0;

	for (; *keys && !ret; keys++) {
		const struct stele_source_entry entry = {
			.size = sizeof(entry), .key = *keys,
			.key_size = strlen(*keys), .data_size = strlen(*keys)};

		ret = sink->entry(sink->user, &entry);
	}
	return ret;
}

static int64_t read_key(void *reader, const struct stele_source_entry *entry,
			uint64_t offset, void *data, size_t size)
{
	(void)reader;
	if (size > entry->data_size - offset)
		size = (size_t)(entry->data_size - offset);
	memcpy(data, entry->key + offset, size);
	return (int64_t)size;
}

static int no_schema(void *user, const struct stele_schema *base,
		     struct stele_schema *out)
{
	(void)user;
	(void)base;
	(void)out;
	return -EIO;
}

static const struct stele_source_ops ops = {
	.size = sizeof(ops),
	.flags = STELE_SOURCE_PATHS,
	.scan = scan,
	.read = read_key,
};

/* Files whose contents are their paths. */
static void make_files(const char *const *keys)
{
	char path[900], command[900];

	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	if (system(command))
		bail("rm");
	mkdir(directory, 0755);
	for (; *keys; keys++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", directory, *keys);
		for (char *at = path + strlen(directory) + 1; (at = strchr(at, '/'));
		     at++) {
			*at = '\0';
			mkdir(path, 0755);
			*at = '/';
		}
		file = fopen(path, "w");
		if (!file || fputs(*keys, file) < 0 || fclose(file))
			sysbail("cannot make %s", path);
	}
}

static bool same_bytes(void)
{
	char command[900];

	snprintf(command, sizeof(command), "cmp -s '%s' '%s'", one, two);
	return system(command) == 0;
}

static void check_tree(const char *const *keys, uint32_t from, unsigned int tree)
{
	static const uint8_t uuid[STELE_UUID_SIZE] = {1};
	const struct stele_build_opts opts = {
		.size = sizeof(opts), .uuid = uuid, .time = 1, .label_from = from,
		.flags = STELE_FORCE};

	is_int(0, stele_build(directory, one, &opts, NULL), "tree %u, labels %u",
	       tree, from);
	is_int(0, stele_build_from(&ops, (void *)(uintptr_t)keys, two, &opts, NULL),
	       "as paths");
	ok(same_bytes(), "the same image");
}

static void describe(void *user, const struct stele_source_entry *entry, char *text,
		     size_t size)
{
	(void)user;
	snprintf(text, size, "'x.tar' at byte %u", (unsigned int)entry->place);
}

static int scan_places(void *user, const struct stele_source_sink *sink)
{
	static const char *const keys[] = {"a/1", "b", "a/1"};
	int ret = 0;

	(void)user;
	for (unsigned int i = 0; i < 3 && !ret; i++) {
		const struct stele_source_entry entry = {
			.size = sizeof(entry), .key = keys[i], .key_size = strlen(keys[i]),
			.data_size = strlen(keys[i]), .place = 512 * i};

		ret = sink->entry(sink->user, &entry);
	}
	return ret;
}

static const char *said(void)
{
	const char *text = strstr(stele_errmsg(), "the source");

	return text ? text : "nothing";
}

/* With and without labels, which wrap the source. */
static void test_twice(uint32_t flags)
{
	struct stele_source_ops twice = ops;

	twice.flags = flags;
	twice.scan = scan_places;
	is_int(-EEXIST, stele_build_from(&twice, NULL, one, NULL, NULL), "a key twice");
	is_string("the source has the key 'a/1' twice", said(), "is named");
	twice.describe = describe;
	is_int(-EEXIST, stele_build_from(&twice, NULL, one, NULL, NULL), "a key twice");
	is_string("the source has the key 'a/1' twice: 'x.tar' at byte 0, 'x.tar' at byte 1024",
		  said(), "and where, if the source knows");
}

int main(void)
{
	static const uint32_t ways[] = {STELE_LABEL_FROM_AUTO, 1, 2, 3,
					STELE_LABEL_FROM_PARENT,
					STELE_LABEL_FROM_NONE};
	struct stele_source_ops wrong = ops;
	void *keys = (void *)(uintptr_t)trees[1];

	plan_lazy();
	snprintf(directory, sizeof(directory), "%s/source", test_tmpdir());
	snprintf(one, sizeof(one), "%s/one", test_tmpdir());
	snprintf(two, sizeof(two), "%s/two", test_tmpdir());
	for (unsigned int i = 0; i < TREES; i++) {
		make_files(trees[i]);
		for (size_t k = 0; k < sizeof(ways) / sizeof(*ways); k++)
			check_tree(trees[i], ways[k], i);
	}

	is_int(0, stele_build_from(&ops, keys, two,
				   &STELE_OPTS(stele_build_opts, .flags = STELE_FORCE), NULL),
	       "a base with labels and splits");
	is_int(-EOPNOTSUPP, stele_append_from(&ops, (void *)(uintptr_t)trees[0],
					      strcat(two, "@v2"), NULL, NULL),
	       "refuses paths that have none");
	snprintf(one, sizeof(one), "%s/twice", test_tmpdir());
	test_twice(0);
	test_twice(STELE_SOURCE_PATHS);
	wrong.schema = no_schema;
	is_int(-EINVAL, stele_build_from(&wrong, keys, one, NULL, NULL),
	       "a schema of its own is refused");
	wrong = ops;
	wrong.flags = 0;
	is_int(-EINVAL, stele_build_from(&wrong, keys, one,
					 &STELE_OPTS(stele_build_opts, .label_from = 1), NULL),
	       "label_from is refused where keys are no paths");
	return done();
}
