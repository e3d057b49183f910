/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - each thread's way to bytes of shards, of the store, and of files that are named
 *
 * A sample is of the version that was scanned: behind its last byte, the shard is looked at. A
 * file that is named is of the version that it has when it is opened, and is looked at, too.
 */
#include "from/read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "from/later.h"
#include "from/row.h"

/* One thread's: the shard that it read from last stays open. */
struct reader {
	struct from *from;
	uint64_t index;
	int fd;
	bool touched; /* the sample has bytes of it; all of its shards are this one */
	int file; /* that the sample names, or -1 */
	struct version version; /* of that file */
	char path[PATH_MAX];
	/* Of a record. */
	struct record_entry entry;
	struct record_piece pieces[STELE_FIELDS_MAX];
	uint32_t piece;
	uint64_t begin; /* of that piece, in the sample */
};

static int reader_new(void *user, void **out)
{
	struct reader *reader = malloc(sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->from = user;
	reader->fd = reader->file = -1;
	*out = reader;
	return 0;
}

static void reader_free(void *user)
{
	struct reader *reader = user;

	if (reader->fd >= 0)
		close(reader->fd);
	free(reader);
}

/* What may be left out is reported by the library. */
static int lost(const struct reader *reader, const struct from_shard *shard, int error)
{
	return reader->from->opts.skip ? error :
					 from_shard_failed(reader->from, shard, error);
}

/* The file that was scanned, and no other version of it. */
static int reopen(struct reader *reader, uint64_t index)
{
	const struct from_shard *shard = &reader->from->shards[index];

	if (reader->fd >= 0)
		close(reader->fd);
	reader->index = index;
	reader->fd = from_shard_descriptor(shard);
	if (reader->fd < 0)
		return lost(reader, shard, reader->fd);
	if (from_shard_holds(shard, reader->fd))
		return 0;
	close(reader->fd);
	reader->fd = -1;
	return lost(reader, shard, -ETXTBSY);
}

static int64_t read_at(int fd, uint64_t offset, void *data, size_t size)
{
	ssize_t got;

	do
		got = pread(fd, data, size, (off_t)offset);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static int64_t read_place(struct reader *reader, uint64_t place, void *data,
			  size_t size)
{
	const uint64_t index = place >> PLACE_SHARD_SHIFT;
	const uint64_t offset = place & PLACE_OFFSET_MAX;

	if (index == PLACE_STORE)
		return store_read(&reader->from->store, offset, data, size);
	if (reader->fd < 0 || reader->index != index) {
		int ret = reopen(reader, index);

		if (ret)
			return ret;
	}
	reader->touched = true;
	return read_at(reader->fd, offset, data, size);
}

/* All that a sample has was read. Return: 0; -ETXTBSY. */
static int check_version(struct reader *reader)
{
	const struct from *from = reader->from;
	const struct from_shard *shard;

	if (reader->file >= 0 && !version_holds(&reader->version, reader->file))
		return from->opts.skip ? -ETXTBSY :
					 from_failed(reader->from, -ETXTBSY, "cannot read '%s'",
						     reader->path);
	if (!reader->touched)
		return 0;
	shard = &from->shards[reader->index];
	return from_shard_holds(shard, reader->fd) ? 0 : lost(reader, shard, -ETXTBSY);
}

/* Its bytes, or what says where they are, were read while the shard changed? */
static int begin(struct reader *reader, uint64_t origin)
{
	const struct from_shard *shard = &reader->from->shards[origin >> PLACE_SHARD_SHIFT];

	reader->touched = false;
	return shard->torn ? lost(reader, shard, -ETXTBSY) : 0;
}

/* ---- one range of bytes ---------------------------------------------------- */

static int64_t read_blob(void *user, const struct stele_source_entry *entry,
			 uint64_t offset, void *data, size_t size)
{
	const uint64_t left = entry->data_size - offset;
	int64_t got;
	int ret = 0;

	if (!left)
		return 0;
	got = read_place(user, entry->place + offset, data, size < left ? size : (size_t)left);
	if (got >= 0 && (uint64_t)got == left)
		ret = check_version(user);
	return ret ? ret : got;
}

static int open_blob(void *user, const struct stele_source_entry *entry,
		     union stele_value *values)
{
	struct reader *reader = user;
	uint64_t origin = 0;
	int ret = reader->from->torn ? from_origin(reader->from, entry, &origin) : 0;

	(void)values; /* one, as large as the sample */
	return ret ? ret : begin(reader, origin);
}

static int blob_schema(void *user, const struct stele_schema *base, struct stele_schema *out)
{
	const struct from *from = user;

	(void)base;
	out->fields = &from->blob;
	out->count = 1;
	return 0;
}

static const struct stele_source_ops files = {
	.size = sizeof(files),
	.flags = STELE_SOURCE_PATHS,
	.scan = from_scan_all,
	.reader_new = reader_new,
	.reader_free = reader_free,
	.open = open_blob,
	.read = read_blob,
	.describe = from_describe,
	.replace = later_file,
};

static const struct stele_source_ops blobs = {
	.size = sizeof(blobs),
	.scan = from_scan_all,
	.schema = blob_schema,
	.reader_new = reader_new,
	.reader_free = reader_free,
	.open = open_blob,
	.read = read_blob,
	.describe = from_describe,
};

/* ---- records --------------------------------------------------------------- */

static const struct stele_field *find_field(const struct stele_schema *base, const char *name)
{
	const char *at = base ? (const char *)base->fields : NULL;

	for (uint32_t i = 0; at && i < base->count; i++, at += base->fields->size) {
		const struct stele_field *field = (const void *)at;

		if (!strcmp(field->name, name))
			return field;
	}
	return NULL;
}

/* Of classes that are hardly meant to be two; one warning is enough. */
static int warn_alike(const struct from *from, const struct stele_schema *base)
{
	const char *alike[2];
	int ret = 0;

	for (uint32_t i = 0; i < from->fields.count && !ret; i++) {
		const struct record_field *field = &from->fields.list[i];

		ret = record_alike(field, find_field(base, field->field.name), alike);
		if (ret > 0)
			cmd_message("warning: classes '%s' and '%s' of '%s' differ only in white "
				    "space at an end", alike[0], alike[1], field->field.name);
	}
	return ret < 0 ? ret : 0;
}

/* Training code reads `label` and `split`, and no text is a class but by these names. */
static void warn_of_capitals(const struct from *from, const struct stele_schema *base)
{
	for (uint32_t i = 0; from_has_types(from) && i < from->fields.count; i++) {
		const struct record_field *field = &from->fields.list[i];
		const char *name = field->field.name;
		const char *meant = row_name_meant(name);

		if (meant && field->family != RECORD_FAMILY_CLASS &&
		    !record_find(&from->fields, meant, strlen(meant)) && !find_field(base, name))
			cmd_message("warning: '%s' is a field like any other: to be the %s of "
				    "samples it has to be called '%s' in the source",
				    name, meant, meant);
	}
}

/* The name of a class that is, or is not, a number; NULL: there is none. */
static const char *find_class(const struct stele_field *field, enum record_class_is what)
{
	for (uint32_t i = 0; i < field->name_count; i++)
		if (record_class_is(field->names[i]) == what)
			return field->names[i];
	return NULL;
}

/* One name among numbers, maybe mistyped, and none of them is the label any more that it was. */
static void warn_of_numbers(const struct from *from, const struct stele_schema *base)
{
	for (uint32_t i = 0; i < from->fields.count; i++) {
		const struct stele_field *field = &from->fields.list[i].field;
		const char *number = find_class(field, RECORD_CLASS_IS_NUMBER);
		const char *name = find_class(field, RECORD_CLASS_IS_NAME);

		if (number && name && !find_field(base, field->name) &&
		    !row_has_type(from, field->name))
			cmd_message("warning: '%s' has numbers, such as '%s', and names, such as "
				    "'%s': all are names of classes then, and labels their "
				    "indices in sorted order", field->name, number, name);
	}
}

/* Classes count most: training reads these. */
static void warn_of_lacking(const struct from *from)
{
	const struct record_field *first = NULL;
	char more[64] = "";
	uint32_t count = 0;

	for (uint32_t i = 0; i < from->fields.count; i++) {
		const struct record_field *field = &from->fields.list[i];

		if (!field->lacking)
			continue;
		count++;
		if (!first || (first->family != RECORD_FAMILY_CLASS &&
			       field->family == RECORD_FAMILY_CLASS))
			first = field;
	}
	if (!first)
		return;
	if (count > 1)
		snprintf(more, sizeof(more), "; %u more are not in all files", count - 1);
	cmd_message("warning: '%s' has no column '%s', which others have: its samples have none%s",
		    first->lacking, first->field.name, more);
}

/* Of the snapshot: classes, which have names. */
static int other_meaning(struct from *from, const char *name)
{
	const struct record_field *field = record_find(&from->fields, name, strlen(name));
	const uint32_t type = field ? field->field.type : STELE_TYPE_I64;
	const bool number = type == STELE_TYPE_I64 || type == STELE_TYPE_F64;
	const int ret = from_refused(from, -EOPNOTSUPP, "field '%s' %s in the source, and class "
				     "names in the snapshot%s", name,
				     number ? "has numbers" : "has other values",
				     from_has_types(from) ? "" :
							    ": they would mean something else");

	if (from_has_types(from))
		cmd_hint("--type=%s:class makes its values names of classes", name);
	return ret;
}

static int record_ops_schema(void *user, const struct stele_schema *base,
			     struct stele_schema *out)
{
	struct from *from = user;
	const char *name = "";
	int ret = record_schema(&from->fields, base, from_groups(from), out, &name);

	if (!ret)
		ret = warn_alike(from, base);
	if (!ret) {
		warn_of_capitals(from, base);
		warn_of_numbers(from, base);
		warn_of_lacking(from);
	}
	if (ret == -ENOENT)
		return from_refused(from, -EOPNOTSUPP, "field '%s' of the snapshot is not in the "
				    "source", name);
	if (ret == -EOPNOTSUPP)
		return other_meaning(from, name);
	return ret ? from_failed(from, ret, "cannot take the fields") : 0;
}

/* A file that changes its size after the scan has another one than it was planned with. */
static int open_file(struct reader *reader, const struct record_piece *piece)
{
	char *path = reader->path;
	int64_t got = -ENAMETOOLONG;
	struct stat st;

	if (piece->path_size < sizeof(reader->path))
		got = read_place(reader, piece->place, path, (size_t)piece->path_size);
	if (got != (int64_t)piece->path_size)
		return got < 0 ? (int)got : -EIO;
	path[got] = '\0';
	reader->file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (reader->file < 0)
		got = -errno;
	else if (fstat(reader->file, &st) < 0)
		got = -errno;
	else
		got = S_ISREG(st.st_mode) && (uint64_t)st.st_size == piece->size ? 0 :
										    -ETXTBSY;
	if (!got)
		version_take(&reader->version, &st);
	if (got && !reader->from->opts.skip)
		from_failed(reader->from, (int)got, "cannot read '%s'", path);
	return (int)got;
}

static void close_record(void *user)
{
	struct reader *reader = user;

	if (reader->file >= 0)
		close(reader->file);
	reader->file = -1;
}

static int open_record(void *user, const struct stele_source_entry *entry,
		       union stele_value *values)
{
	struct reader *reader = user;
	const struct from *from = reader->from;
	int ret = record_load(&from->index, &from->fields, entry->place, &reader->entry);

	if (!ret)
		ret = begin(reader, reader->entry.origin);
	if (ret)
		return ret;
	reader->piece = 0;
	reader->begin = 0;
	record_values(&from->fields, &reader->entry.record, values, reader->pieces);
	for (uint32_t i = 0; i < from->fields.schema_count && !ret; i++)
		if (reader->pieces[i].path_size && reader->file < 0)
			ret = open_file(reader, &reader->pieces[i]);
	if (ret)
		close_record(reader);
	return ret;
}

/* Elements of 8 bytes, one at least. */
static int64_t convert(struct reader *reader, const struct record_piece *piece, uint64_t at,
		       uint8_t *data, size_t size)
{
	const uint64_t inner = at % 8;
	uint8_t element[8];
	uint64_t number;
	double real;

	if (read_place(reader, piece->place + at - inner, element, 8) != 8)
		return -EIO;
	memcpy(&number, element, 8);
	real = piece->is_unsigned ? (double)number : (double)(int64_t)number;
	memcpy(element, &real, 8);
	size = size < 8 - inner ? size : (size_t)(8 - inner);
	memcpy(data, element + inner, size);
	return (int64_t)size;
}

static int64_t read_piece(struct reader *reader, uint64_t offset, void *data, size_t size)
{
	const struct record_piece *piece = &reader->pieces[reader->piece];
	uint64_t at, left;

	while (offset - reader->begin >= piece->size) {
		reader->begin += piece->size;
		reader->piece++;
		piece++;
	}
	at = offset - reader->begin;
	left = piece->size - at;
	size = size < left ? size : (size_t)left;
	if (piece->held) {
		memcpy(data, (const uint8_t *)&piece->number + at, size);
		return (int64_t)size;
	}
	if (piece->path_size)
		return read_at(reader->file, at, data, size);
	if (piece->converts)
		return convert(reader, piece, at, data, size);
	return read_place(reader, piece->place + at, data, size);
}

static int64_t read_record(void *user, const struct stele_source_entry *entry,
			   uint64_t offset, void *data, size_t size)
{
	int64_t got;
	int ret = 0;

	if (offset >= entry->data_size)
		return 0;
	got = read_piece(user, offset, data, size);
	if (got >= 0 && (uint64_t)got == entry->data_size - offset)
		ret = check_version(user);
	return ret ? ret : got;
}

static const struct stele_source_ops records = {
	.size = sizeof(records),
	.scan = from_scan_all,
	.schema = record_ops_schema,
	.reader_new = reader_new,
	.reader_free = reader_free,
	.open = open_record,
	.read = read_record,
	.close = close_record,
	.describe = from_describe,
	.replace = later_record,
};

const struct stele_source_ops *const from_read_ops[] = {
	[FROM_RECORDS] = &records,
	[FROM_BLOBS] = &blobs,
	[FROM_FILES] = &files,
};
