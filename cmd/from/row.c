/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.c - what the name of a value means, and the sample that it becomes part of
 */
#include "from/row.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cmd.h"
#include "suggest.h"

#define PAYLOAD_NAME "data"
#define SHOWN_MAX    100u /* bytes of a value in a message */

static int compare_name(const void *name, const void *column)
{
	return strcmp(name, ((const struct from_column *)column)->name);
}

/* One whose type is given. */
static const struct from_column *find_column(const struct from_opts *opts, const char *name,
					     size_t size)
{
	char text[STELE_NAME_SIZE_MAX + 1];

	if (size > STELE_NAME_SIZE_MAX || memchr(name, '\0', size))
		return NULL;
	memcpy(text, name, size);
	text[size] = '\0';
	return bsearch(text, opts->columns, opts->column_count, sizeof(*opts->columns),
		       compare_name);
}

bool row_has_type(const struct from *from, const char *name)
{
	return find_column(&from->opts, name, strlen(name));
}

static bool is(const char *name, size_t size, const char *wanted)
{
	return size == strlen(wanted) && !memcmp(name, wanted, size);
}

static const char *const class_names[] = {"label", "split"};

const char *row_name_meant(const char *name)
{
	for (size_t i = 0; i < sizeof(class_names) / sizeof(*class_names); i++)
		if (strcmp(name, class_names[i]) && !strcasecmp(name, class_names[i]))
			return class_names[i];
	return NULL;
}

static bool is_class(const char *name, size_t size)
{
	for (size_t i = 0; i < sizeof(class_names) / sizeof(*class_names); i++)
		if (is(name, size, class_names[i]))
			return true;
	return false;
}

bool row_of_manifest(const struct from *from)
{
	return from->format->options & FROM_PAYLOAD;
}

enum row_role row_role(struct from *from, const char *name, size_t size)
{
	static const enum row_role roles[] = {
		[FROM_TYPE_CLASS] = ROW_NAMES, [FROM_TYPE_TEXT] = ROW_TEXT,
		[FROM_TYPE_F64] = ROW_REAL, [FROM_TYPE_NONE] = ROW_NONE};
	const struct from_opts *opts = &from->opts;
	const struct from_column *column;

	if (is(name, size, opts->key ? opts->key : FROM_KEY_COLUMN))
		return ROW_KEY;
	if (row_of_manifest(from) &&
	    is(name, size, opts->payload ? opts->payload : FROM_PAYLOAD_COLUMN))
		return ROW_PAYLOAD;
	column = find_column(opts, name, size);
	if (column) {
		from->typed[column - opts->columns] = true;
		return roles[column->type];
	}
	return is_class(name, size) ? ROW_CLASS : ROW_FIELD;
}

/* ---- columns that options name ------------------------------------------------- */

/* " (there are 'a', 'b')" */
static void list_columns(const struct from *from, char *text, size_t size)
{
	const uint32_t first = row_of_manifest(from); /* after `data`, which is no column */
	size_t at = 0;

	*text = '\0';
	for (uint32_t i = first; i < from->fields.count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s'%s'%s",
				       i > first ? ", " : " (there are ",
				       from->fields.list[i].field.name,
				       i + 1 < from->fields.count ? "" : ")");
}

/* Case does not count, nor does a letter or two. */
static void suggest_column(const struct from *from, struct suggest *suggest)
{
	for (uint32_t i = row_of_manifest(from); i < from->fields.count; i++) {
		const char *name = from->fields.list[i].field.name;

		suggest_offer(suggest, name, strlen(name));
	}
}

/* where: "", or a part of the first source, with " of ". */
static int misuse_column(struct from *from, const char *name, const char *where)
{
	struct suggest suggest = {.word = name};
	char list[512];
	int ret;

	list_columns(from, list, sizeof(list));
	ret = from_refused(from, -EINVAL, "no column '%s' in %s'%s'%s", name, where,
			   from->shards[0].name, list);
	suggest_column(from, &suggest);
	suggest_print(&suggest, "");
	return ret;
}

int row_no_column(struct from_scan *scan, uint64_t offset, const char *name)
{
	struct from *from = scan->from;

	if (!from->index.size && !from->opts.skip)
		return misuse_column(from, name, from->format->options & FROM_ARRAYS ?
						    "" : "the first row of ");
	if (!from->index.size)
		from->missing = name;
	return from_damaged(scan, offset, "there is no column '%s'", name);
}

int row_no_paths(struct from_scan *scan, uint64_t offset, bool headless)
{
	struct suggest suggest = {.word = FROM_PAYLOAD_COLUMN};
	char list[512] = "";
	int ret;

	if (!headless)
		list_columns(scan->from, list, sizeof(list));
	ret = from_damaged(scan, offset, "there is no column '" FROM_PAYLOAD_COLUMN "'%s", list);
	if (!ret)
		return 0;
	suggest_column(scan->from, &suggest);
	if (headless)
		cmd_hint("%s", FROM_HEADER);
	else if (*suggest.best)
		suggest_print(&suggest, "--payload=");
	else
		cmd_hint("--payload=COLUMN names the one that has the paths");
	return ret;
}

int row_check_columns(struct from *from)
{
	const struct from_opts *opts = &from->opts;

	if (!from->index.size)
		return from->missing ? misuse_column(from, from->missing, "") : 0;
	for (uint32_t i = 0; i < opts->column_count; i++)
		if (!from->typed[i])
			return misuse_column(from, opts->columns[i].name, "");
	return 0;
}

/* ---- values -------------------------------------------------------------------- */

void row_begin(struct row *row, uint64_t offset)
{
	row->damages = row->scan->damages;
	row->record.count = 0;
	row->record.changed = 0;
	row->record.offset = offset;
	row->keyed = false;
	row->key_size = 0;
}

/* One that is too long is refused when it is complete. */
void row_key(struct row *row, const char *text, size_t size)
{
	row->keyed = true;
	row->key_size = size < sizeof(row->key) ? size : sizeof(row->key);
	memcpy(row->key, text, row->key_size);
}

/* There is a field of that name. */
static int other_type(struct row *row, const char *name, size_t size, enum record_family family)
{
	const struct from *from = row->scan->from;
	const bool types = from->format->options & FROM_TYPES;
	const struct record_field *field = record_find(&from->fields, name, size);

	if (row_of_manifest(from) && field->family == RECORD_FAMILY_BYTES)
		return from_damaged(row->scan, row->record.offset, "'%s' is what the files become",
				    field->field.name);
	return from_damaged(row->scan, row->record.offset,
			    "'%.*s' is %s, but was %s in an earlier sample%s%.*s%s", (int)size,
			    name, record_family_words(family), record_family_words(field->family),
			    types ? " (--type=" : "", types ? (int)size : 0, name,
			    types ? ":text takes both)" : "");
}

int row_value(struct row *row, const char *name, size_t name_size,
	      enum record_family family, const struct record_value *value)
{
	struct from *from = row->scan->from;
	struct record *record = &row->record;
	int field = record_field(&from->fields, name, name_size, family);

	if (field == -EOVERFLOW)
		return from_too_many(row->scan);
	if (field == -EINVAL)
		return from_damaged(row->scan, record->offset, "'%.*s' is not a valid name of a "
				    "field", (int)(name_size < 100 ? name_size : 100), name);
	if (field < 0)
		return other_type(row, name, name_size, family);
	if (record_has(record, (uint32_t)field))
		return from_damaged(row->scan, record->offset, "field '%s' is there twice, "
				    "maybe by names with what becomes '_'",
				    from->fields.list[field].field.name);
	record->values[record->count] = *value;
	record->values[record->count++].field = (uint32_t)field;
	return 0;
}

int row_bytes(struct row *row, const char *name, size_t name_size,
	      enum record_family family, enum record_kind kind, const void *data, size_t size)
{
	struct record_value value = {.kind = kind, .size = size};
	int ret = from_store(row->scan, row->record.offset, &value.place);

	if (!ret)
		ret = from_append(row->scan, data, size);
	return ret ? ret : row_value(row, name, name_size, family, &value);
}

void row_list_see(struct row_list *list, int64_t element)
{
	list->large |= record_is_large(element);
	list->negative |= element < 0;
}

int row_list(struct row *row, const char *name, size_t name_size, const struct row_list *list)
{
	struct record_fields *fields = &row->scan->from->fields;
	int ret = row_bytes(row, name, name_size, RECORD_FAMILY_LIST, list->kind, list->elements,
			    list->count * 8);
	int field = record_field(fields, name, name_size, RECORD_FAMILY_LIST);

	if (ret || field < 0)
		return ret;
	if (list->large)
		record_note_large(&fields->list[field],
				  from_place(row->scan, row->record.offset));
	fields->list[field].negative |= list->negative;
	return 0;
}

/* Up to where it is shown: characters stay whole. */
static int shown(const char *text, size_t size)
{
	size_t end = size < SHOWN_MAX ? size : SHOWN_MAX;

	while (end && end < size && (text[end] & 0xc0) == 0x80)
		end--;
	return (int)end;
}

static int take_class(struct row *row, const char *name, size_t name_size, const char *text,
		      size_t size, bool reals)
{
	struct from *from = row->scan->from;
	char what[STELE_NAME_SIZE_MAX + SHOWN_MAX + 32];
	struct record_value value;
	int field = record_field(&from->fields, name, name_size, RECORD_FAMILY_CLASS);
	int ret = 0;

	if (field >= 0 && !size) /* it is of none */
		return 0;
	memset(&value, 0, sizeof(value));
	if (field >= 0)
		ret = record_class(&from->fields, (uint32_t)field, text, size, &value);
	if (ret) {
		/* A value with a NUL would end there, and a long one says nothing. */
		snprintf(what, sizeof(what), ret == -EINVAL ? "'%.*s' has the value '%.*s'" :
			 "'%.*s' has a value", (int)name_size, name, shown(text, size), text);
		return from_no_class(row->scan, row->record.offset, ret, what);
	}
	if (value.kind == RECORD_CLASS_F64 && !reals)
		value.kind = RECORD_CLASS;
	return row_value(row, name, name_size, RECORD_FAMILY_CLASS, &value);
}

int row_class(struct row *row, const char *name, size_t name_size, const char *text,
	      size_t size)
{
	return take_class(row, name, name_size, text, size, true);
}

int row_names(struct row *row, const char *name, size_t name_size, const char *text,
	      size_t size)
{
	return take_class(row, name, name_size, text, size, false);
}

/* ---- files --------------------------------------------------------------------- */

/* Relative to where the manifest is. Return: its size; -ENAMETOOLONG. */
static int locate(const struct from_shard *shard, const char *path, size_t size,
		  char out[PATH_MAX])
{
	const char *slash = strrchr(shard->path, '/');
	const int directory = slash && *path != '/' ? (int)(slash + 1 - shard->path) : 0;
	int length = snprintf(out, PATH_MAX, "%.*s%.*s", directory, shard->path, (int)size, path);

	return length < PATH_MAX ? length : -ENAMETOOLONG;
}

bool row_names_file(const struct from_shard *shard, const char *text, size_t size)
{
	char full[PATH_MAX];
	struct stat st;

	return size < PATH_MAX && (memchr(text, '.', size) || memchr(text, '/', size)) &&
	       !memchr(text, '\0', size) && locate(shard, text, size, full) >= 0 &&
	       stat(full, &st) == 0 && S_ISREG(st.st_mode);
}

void row_text(struct row *row, const char *name, size_t name_size, const char *text,
	      size_t size)
{
	struct from *from = row->scan->from;

	if (row->number || row->scan->index || *from->paths || row_of_manifest(from) ||
	    name_size > STELE_NAME_SIZE_MAX || !row_names_file(row->scan->shard, text, size))
		return;
	memcpy(from->paths, name, name_size);
	from->paths[name_size] = '\0';
}

int row_payload(struct row *row, const char *path, size_t size)
{
	struct from_scan *scan = row->scan;
	struct record_value value = {.kind = RECORD_FILE};
	char full[PATH_MAX];
	struct stat st;
	int length = size && size < PATH_MAX ? locate(scan->shard, path, size, full) : -ENOENT;
	int ret;

	if (memchr(path, '\0', size))
		return from_damaged(scan, row->record.offset, "a path with a NUL byte");

	if (!row->keyed && length > 0) {
		const char *key = from_below(full + ((size_t)length - size));

		row_key(row, key, strlen(key));
	}
	if (length < 0)
		return from_damaged(scan, row->record.offset, "cannot read '%.*s': %s",
				    (int)(size < PATH_MAX ? size : PATH_MAX), path,
				    strerror(-length));
	if (stat(full, &st) < 0)
		return from_damaged(scan, row->record.offset, "cannot read '%s': %s%s", full,
				    strerror(errno), errno == ENOENT && *path != '/' ?
				    " (paths are relative to the manifest)" : "");
	if (!S_ISREG(st.st_mode))
		return from_damaged(scan, row->record.offset, "'%s' is not a regular file", full);
	ret = from_spare(scan->from, full, &st);
	if (ret)
		return ret;
	value.size = (uint64_t)length;
	value.number.i64 = st.st_size;
	row->record.changed = st.st_mtim.tv_sec > st.st_ctim.tv_sec ? st.st_mtim.tv_sec :
									 st.st_ctim.tv_sec;
	ret = from_store(scan, row->record.offset, &value.place);
	if (!ret)
		ret = from_append(scan, full, (size_t)length);
	return ret ? ret : row_value(row, PAYLOAD_NAME, strlen(PAYLOAD_NAME),
				     RECORD_FAMILY_BYTES, &value);
}

/* ---- samples ------------------------------------------------------------------- */

/* Return: 1; 0: damage that is skipped; negative errno (said). */
static int check_key(struct row *row)
{
	struct from *from = row->scan->from;
	const char *name = from->opts.key ? from->opts.key : FROM_KEY_COLUMN;

	if (from->keys == FROM_KEYS_UNKNOWN)
		from->keys = row->keyed || from->opts.key ? FROM_KEYS_GIVEN :
								FROM_KEYS_NUMBERS;
	if (row->keyed == (from->keys == FROM_KEYS_GIVEN))
		return 1;
	/* One that is there is of a type that no key has. */
	if (!row->keyed && from->opts.key && !record_find(&from->fields, name, strlen(name)))
		return row_no_column(row->scan, row->record.offset, name);
	return from_damaged(row->scan, row->record.offset,
			    row->keyed ? "the sample has a '%s', which samples before it lack" :
					 "the sample has no '%s' that can be its key", name);
}

int row_end(struct row *row)
{
	const uint64_t number = row->number++;
	char key[FROM_NUMBER_KEY_MAX];
	int ret;

	if (row->scan->damages != row->damages)
		return 0;
	ret = check_key(row);
	if (ret <= 0)
		return ret;
	if (row->keyed)
		return from_record(row->scan, row->key, row->key_size, &row->record);
	ret = from_number_key(row->scan, number, key);
	return from_record(row->scan, key, (size_t)ret, &row->record);
}
