/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsonl.c - JSON Lines: an object a line, its members the fields of a sample
 *
 * And manifests, which are JSON Lines or CSV.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "from/csv.h"
#include "from/lines.h"
#include "from/member.h"

#define LOAD_FLAGS    (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL)
#define MANIFEST_DATA 0 /* number of the field */
#define MANIFEST_LOOK 4096 /* bytes, of which the first that is no space tells what it is */

struct jsonl {
	struct row row;
	bool texts; /* --type says that some column is text */
};

/* A line's object. */
struct object {
	json_t *value;
	json_error_t error;
	char *text; /* owned; NULL: what the parser has is all */
	size_t size;
	uint64_t offset;
};

/* ---- objects ----------------------------------------------------------------- */

/* By the text: what the parser does not have, and numbers as they are written. */
static bool needs_text(const struct member *m, enum row_role role)
{
	struct literal literal;

	return literal_find_strange(m->text, m->end, &literal) ||
	       (role == ROW_TEXT && json_is_number(m->value));
}

/* The key goes first, so that a path is not taken for it. */
static int take_members(struct row *row, const struct object *object, bool keys)
{
	const char *text = object->text, *end = text ? text + object->size : NULL;
	struct literal_member span = {NULL, NULL};
	int ret = 0;

	for (void *at = json_object_iter(object->value); at && !ret;
	     at = json_object_iter_next(object->value, at)) {
		struct member m = {.name = json_object_iter_key(at)};
		enum row_role role;

		if (object->text)
			text = literal_member(text, end, &span);
		m.size = strlen(m.name);
		m.value = json_object_iter_value(at);
		m.text = span.value;
		m.end = span.end;
		m.offset = object->offset + (uint64_t)(object->text ? m.text - object->text : 0);
		role = row_role(row->scan->from, m.name, m.size);
		if (m.text && !needs_text(&m, role))
			m.text = NULL;
		if ((role == ROW_KEY) == keys)
			ret = member_take(row, &m, role);
	}
	return ret;
}

/* As the parser makes them of 1e-999, too. */
static bool has_zero(const json_t *value)
{
	const char *name;
	json_t *inner;
	size_t i;

	json_object_foreach((json_t *)value, name, inner)
		if (has_zero(inner))
			return true;
	json_array_foreach(value, i, inner)
		if (has_zero(inner))
			return true;
	return json_is_real(value) && json_real_value(value) == 0;
}

/* Again, without the numbers that the parser does not take. Return: 0; -ENOMEM. */
static int load_blank(struct object *object, const struct line *line)
{
	char *blank = malloc(line->size + 1);
	struct literal literal;

	object->text = malloc(line->size + 1);
	if (!blank || !object->text) {
		free(blank);
		return -ENOMEM;
	}
	memcpy(object->text, line->data, line->size);
	object->text[line->size] = '\0';
	if (literal_find_strange(object->text, object->text + line->size, &literal)) {
		memcpy(blank, object->text, line->size + 1);
		literal_blank(blank, blank + line->size);
		json_decref(object->value);
		object->value = json_loadb(blank, line->size, LOAD_FLAGS, &object->error);
	}
	free(blank);
	return 0;
}

/* Return: 0, also if there is none; -ENOMEM. */
static int load(struct object *object, const struct line *line, bool texts)
{
	*object = (struct object){.size = line->size, .offset = line->offset};
	object->value = json_loadb((const char *)line->data, line->size, LOAD_FLAGS,
				   &object->error);
	return texts || !object->value || has_zero(object->value) ? load_blank(object, line) : 0;
}

/* ---- lines ------------------------------------------------------------------- */

static bool is_blank(const struct line *line)
{
	for (size_t i = 0; i < line->size; i++)
		if (!strchr(" \t\r", line->data[i]))
			return false;
	return true;
}

static int no_path(struct from_scan *scan, const json_t *object, uint64_t offset)
{
	const char *name = scan->from->opts.payload;

	if (json_object_get(object, name ? name : FROM_PAYLOAD_COLUMN))
		return from_damaged(scan, offset, "no path of a file");
	return name ? row_no_column(scan, offset, name) : row_no_paths(scan, offset, false);
}

static int take_object(struct row *row, const struct object *object)
{
	struct from_scan *scan = row->scan;
	int ret = take_members(row, object, true);

	if (!ret)
		ret = take_members(row, object, false);
	if (!ret && row_of_manifest(scan->from) && scan->damages == row->damages &&
	    !record_has(&row->record, MANIFEST_DATA))
		ret = no_path(scan, object->value, object->offset);
	return ret ? ret : row_end(row);
}

static int take_line(struct from_scan *scan, const struct line *line, void *user)
{
	struct jsonl *jsonl = user;
	struct object object;
	int ret;

	if (is_blank(line))
		return 0;
	row_begin(&jsonl->row, line->offset);
	ret = load(&object, line, jsonl->texts);
	if (!ret && json_is_object(object.value)) {
		ret = take_object(&jsonl->row, &object);
	} else if (!ret) {
		jsonl->row.number++;
		ret = object.value ?
			      from_damaged(scan, line->offset, "the line is not a JSON object") :
			      from_damaged(scan, line->offset + (uint64_t)object.error.position,
					   "%s", object.error.text);
	}
	json_decref(object.value);
	free(object.text);
	return ret;
}

static int jsonl_scan(struct from_scan *scan)
{
	const struct from_opts *opts = &scan->from->opts;
	struct jsonl jsonl = {.row = {.scan = scan}};

	for (uint32_t i = 0; i < opts->column_count; i++)
		jsonl.texts |= opts->columns[i].type == FROM_TYPE_TEXT;
	return lines_scan(scan, take_line, &jsonl);
}

static size_t skip(const char *space, const uint8_t *data, size_t size, size_t at)
{
	while (at < size && data[at] && strchr(space, data[at]))
		at++;
	return at;
}

/* Return: what is behind its '{'; 0: there is none. Empty lines may come before. */
static size_t object_begin(const uint8_t *data, size_t size)
{
	const size_t at = skip(" \t\r\n", data, size, lines_bom_size(data, size));

	return at < size && data[at] == '{' ? at + 1 : 0;
}

/* Which lines_begin() refuses, and says how to go on. */
static bool detect_utf16(const uint8_t *data, size_t size)
{
	return size >= 4 && (!memcmp(data, "\xff\xfe{", 4) || !memcmp(data, "\xfe\xff\0{", 4));
}

/* A line that ends with its '{' is that of JSON in print, not of JSON Lines. */
static bool detect(const uint8_t *data, size_t size)
{
	size_t at = object_begin(data, size);

	if (detect_utf16(data, size))
		return true;
	if (!at)
		return false;
	at = skip(" \t", data, size, at);
	return at < size && data[at] == '"';
}

const struct from_format from_jsonl = {
	.name = "jsonl",
	.detect = detect,
	.scan = jsonl_scan,
	.kind = FROM_RECORDS,
	.options = FROM_KEY | FROM_TYPES,
};

static int manifest_scan(struct from_scan *scan)
{
	const uint8_t *data;
	int64_t got = input_look(&scan->input, MANIFEST_LOOK, &data);

	if (got < 0)
		return from_input_failed(scan, (int)got);
	/* The files come first, wherever their column is. */
	record_field(&scan->from->fields, "data", 4, RECORD_FAMILY_BYTES);
	return object_begin(data, (size_t)got) ? jsonl_scan(scan) : csv_scan(scan);
}

const struct from_format from_manifest = {
	.name = "manifest",
	.scan = manifest_scan,
	.kind = FROM_RECORDS,
	.options = FROM_KEY | FROM_PAYLOAD | FROM_TYPES,
};
