/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - a fuzz target of a format of cmd/from: all of it, from a file to samples
 *
 * The input is a file, of which every sample that is found is read, once as it is and once
 * with damage left out. A target that knows what they have to be says it in source_check.
 */
#ifndef STELE_TESTS_FUZZ_SOURCE_H
#define STELE_TESTS_FUZZ_SOURCE_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/from/source.h"
#include "tests/fuzz/input.h"

struct source_seen {
	struct stele_source_entry entries[64];
	char keys[64][STELE_KEY_SIZE_MAX];
	unsigned int count;
};

/* Of all samples, once they are read; `skip`: without damage. NULL: any will do. */
static void (*source_check)(const struct source_seen *seen, bool skip);

static int source_entry(void *user, const struct stele_source_entry *entry)
{
	struct source_seen *seen = user;

	input_assert(entry->key_size && entry->key_size <= STELE_KEY_SIZE_MAX);
	input_touch(entry->key, entry->key_size);
	if (seen->count == 64)
		return 0;
	memcpy(seen->keys[seen->count], entry->key, entry->key_size);
	seen->entries[seen->count] = *entry;
	seen->entries[seen->count].key = seen->keys[seen->count];
	seen->count++;
	return 0;
}

static int source_skip(void *user, enum stele_skip_reason reason, const char *key,
		       size_t key_size, int error)
{
	(void)user;
	(void)reason;
	(void)error;
	input_touch(key, key_size);
	return 0;
}

static int source_tick(void *user)
{
	(void)user;
	return 0;
}

/* As the library hands them to open(). */
static void source_begin(const struct stele_schema *schema, uint64_t size,
			 union stele_value *values)
{
	uint32_t i = 0;

	memset(values, 0, STELE_FIELDS_MAX * sizeof(*values));
	while (i < schema->count && (schema->fields[i].type == STELE_TYPE_I64 ||
				     schema->fields[i].type == STELE_TYPE_F64))
		i++;
	if (i < schema->count)
		values[i].size = size;
}

/* Sizes are those of the fields. */
static void source_read(const struct stele_source_ops *ops, struct from *from,
			const struct stele_schema *schema, const struct source_seen *seen)
{
	union stele_value values[STELE_FIELDS_MAX];
	uint8_t data[1000];
	void *reader;

	if (ops->reader_new(from, &reader))
		return;
	for (unsigned int i = 0; i < seen->count; i++) {
		const struct stele_source_entry *entry = &seen->entries[i];
		uint64_t at = 0, sum = 0;
		int64_t got = 1;

		source_begin(schema, entry->data_size, values);
		if (ops->open && ops->open(reader, entry, values))
			continue;
		for (uint32_t k = 0; ops->open && k < schema->count; k++)
			if (schema->fields[k].type != STELE_TYPE_I64 &&
			    schema->fields[k].type != STELE_TYPE_F64)
				sum += values[k].size;
		input_assert(!ops->open || sum == entry->data_size);
		while (at < entry->data_size && got > 0) {
			got = ops->read(reader, entry, at, data, sizeof(data));
			at += got > 0 ? (uint64_t)got : 0;
			if (got > 0)
				input_touch(data, (size_t)got);
		}
		input_assert(at == entry->data_size);
		if (ops->close)
			ops->close(reader);
	}
	ops->reader_free(reader);
}

static void source_scan(struct from *from, bool skip)
{
	static struct source_seen seen;
	const struct stele_source_sink sink = {.size = sizeof(sink), .user = &seen,
					       .entry = source_entry, .skip = source_skip,
					       .tick = source_tick, .jobs = 1};
	const struct stele_source_ops *ops = from_ops(from);
	struct stele_schema schema = {.size = sizeof(schema)};
	char text[200];

	seen.count = 0;
	if (ops->scan(from, &sink) == 0 &&
	    (!ops->schema || ops->schema(from, NULL, &schema) == 0)) {
		source_read(ops, from, &schema, &seen);
		for (unsigned int i = 0; i < seen.count; i++)
			ops->describe(from, &seen.entries[i], text, sizeof(text));
		if (source_check)
			source_check(&seen, skip);
	}
	from_close(from);
}

/* Messages go nowhere. */
static void source_fuzz_path(const char *format, bool example, char *path)
{
	struct from_opts opts = {.format = format, .example = example};
	static FILE *nowhere;
	FILE *kept = stderr;

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	stderr = nowhere;
	for (unsigned int pass = 0; pass < 2; pass++) {
		struct from *from = NULL;

		opts.skip = pass;
		if (!from_open(&path, 1, &opts, &from) && from)
			source_scan(from, pass);
	}
	stderr = kept;
}

static inline int source_fuzz(const char *format, bool example, const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	source_fuzz_path(format, example, path);
	close(fd);
	return 0;
}

#endif
