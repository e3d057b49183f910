/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source-labels.c - the field `label` of a directory: when there is one, and its values
 */
#include "lib/source/source.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void make_file(const char *top, const char *key, const char *data)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", top, key);
	file = fopen(path, "w");
	if (!file || fputs(data, file) < 0 || fclose(file))
		sysbail("cannot make %s", path);
}

static void make_dir(const char *top, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		sysbail("cannot make %s", path);
}

static int on_entry(void *user, const struct stele_source_entry *entry)
{
	(void)user;
	(void)entry;
	return 0;
}

static int on_tick(void *user)
{
	(void)user;
	return 0;
}

/* Fields of the directory, scanned; -1: no label, else how many classes. */
static int classes_of(const char *path, uint32_t from,
		      const struct stele_schema *base,
		      struct stele_source *source)
{
	struct stele_schema schema = {.size = sizeof(schema)};
	const struct stele_source_sink sink = {
		.size = sizeof(sink), .entry = on_entry, .tick = on_tick,
		.jobs = 3,
	};
	const struct stele_build_opts opts = {.label_from = from};

	if (stele_source_open_directory(path, 0, 0, &opts, NULL, source) ||
	    source->ops.scan(source->user, &sink) ||
	    source->ops.schema(source->user, base, &schema))
		bail("cannot scan");
	return schema.count == 1 ? -1 : (int)schema.fields[1].name_count;
}

static int64_t label_of(const struct stele_source *source, const char *key,
			uint64_t size)
{
	const struct stele_source_entry entry = {
		.size = sizeof(entry), .key = key, .key_size = strlen(key),
		.data_size = size};
	union stele_value values[2] = {{0}};
	void *reader;

	if (source->ops.reader_new(source->user, &reader) ||
	    source->ops.open(reader, &entry, values))
		bail("cannot open %s", key);
	source->ops.close(reader);
	source->ops.reader_free(reader);
	return values[1].i64;
}

static int classes(const char *path, uint32_t from,
		   const struct stele_schema *base)
{
	struct stele_source source;
	int count = classes_of(path, from, base, &source);

	stele_source_close(&source);
	return count;
}

int main(void)
{
	static const struct {
		const char *top, *key;
		int64_t label;
	} files[] = {
		{"a", "a/2", 1}, {"a-b", "a-b/1", 2}, {"a", "a/1", 1},
		{"Z", "Z/1", 0}, {"a.b", "a.b/1", 3}, {"b", "b/y", 4},
	};
	static const char *const names[] = {"Z", "a", "a-b", "a.b", "b"};
	static const struct stele_field fields[] = {
		{.size = sizeof(*fields), .name = "data"},
		{.size = sizeof(*fields), .name = "label"},
	};
	const struct stele_schema one = {
		.size = sizeof(one), .count = 1, .fields = fields};
	const struct stele_schema two = {
		.size = sizeof(two), .count = 2, .fields = fields};
	struct stele_schema schema = {.size = sizeof(schema)};
	const char *path = test_tmpdir();
	struct stele_source source;

	plan_lazy();
	is_int(-1, classes(path, STELE_LABEL_FROM_AUTO, NULL), "nothing: no label");
	is_int(0, classes(path, 1, NULL), "unless told so");
	make_dir(path, "empty");
	for (size_t i = 0; i < 6; i++) {
		make_dir(path, files[i].top);
		make_file(path, files[i].key, "x");
	}
	is_int(5, classes_of(path, STELE_LABEL_FROM_AUTO, NULL, &source),
	       "top directories with files are classes");
	source.ops.schema(source.user, NULL, &schema);
	for (size_t i = 0; i < 5; i++)
		is_string(names[i], schema.fields[1].names[i], "name %zu", i);
	for (size_t i = 0; i < 6; i++)
		is_int(files[i].label, label_of(&source, files[i].key, 1),
		       "label of %s", files[i].key);
	stele_source_close(&source);
	is_int(-1, classes(path, STELE_LABEL_FROM_NONE, NULL), "told not to");
	is_int(-1, classes(path, STELE_LABEL_FROM_AUTO, &one), "the base has none");
	make_file(path, "at the top", "");
	is_int(5, classes(path, STELE_LABEL_FROM_AUTO, NULL), "a file at the top");
	is_int(5, classes(path, STELE_LABEL_FROM_AUTO, &two), "the base has them");
	is_int(5, classes_of(path, 1, NULL, &source),
	       "told to");
	is_int(-1, label_of(&source, "at the top", 0), "it has none itself");
	is_int(4, label_of(&source, "b/y", 1), "others have");
	stele_source_close(&source);
	for (char name[] = "top1"; name[3] <= '5'; name[3]++)
		make_file(path, name, "");
	is_int(-1, classes(path, STELE_LABEL_FROM_AUTO, NULL),
	       "as many files at the top as in directories");
	return done();
}
