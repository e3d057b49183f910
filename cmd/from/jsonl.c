/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsonl.c - JSON Lines: an object a line, its members the fields of a sample
 *
 * And manifests, which are JSON Lines or CSV.
 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "from/csv.h"
#include "from/lines.h"
#include "from/row.h"

#define DUMP_FLAGS    (JSON_COMPACT | JSON_ENCODE_ANY)
#define MANIFEST_DATA 0 /* number of the field */
#define NUMBER_SIZE   32 /* of one as text */
#define NUMBER_CHARS  "+-.0123456789Ee"

struct member {
	const char *name;
	size_t size;
	json_t *value;
};

/* ---- values ------------------------------------------------------------------ */

static int take_number(struct row *row, const struct member *m)
{
	struct record_value value = {.kind = RECORD_I64};

	if (json_is_real(m->value)) {
		value.kind = RECORD_F64;
		value.number.f64 = json_real_value(m->value);
	} else {
		value.number.i64 = json_is_integer(m->value) ? json_integer_value(m->value) :
							       json_is_true(m->value);
	}
	return row_value(row, m->name, m->size, RECORD_FAMILY_NUMBER, &value);
}

static int take_real(struct row *row, const struct member *m)
{
	struct record_value value = {.kind = RECORD_F64};

	if (!json_is_number(m->value) ||
	    (json_is_integer(m->value) && record_is_large(json_integer_value(m->value))))
		return from_damaged(row->scan, row->record.offset,
				    "'%s' has a value that is no f64", m->name);
	value.number.f64 = json_number_value(m->value);
	return row_value(row, m->name, m->size, RECORD_FAMILY_NUMBER, &value);
}

/* As few digits as stand for it alone. */
static void print_real(double real, char text[NUMBER_SIZE])
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, NUMBER_SIZE, "%.*g", digits, real);
		if (strtod(text, NULL) == real)
			break;
	}
}

/* Of whatever has a short text: what a label may be. */
static int take_class(struct row *row, const struct member *m, enum row_role role)
{
	const char *text = json_string_value(m->value);
	size_t size = json_string_length(m->value);
	char number[NUMBER_SIZE];

	if (json_is_array(m->value) || json_is_object(m->value))
		return from_damaged(row->scan, row->record.offset,
				    "'%s' has a value that is no class", m->name);
	if (!text) {
		if (json_is_real(m->value))
			print_real(json_real_value(m->value), number);
		else
			snprintf(number, sizeof(number), "%lld",
				 json_is_integer(m->value) ?
					 (long long)json_integer_value(m->value) :
					 (long long)json_is_true(m->value));
		text = number;
		size = strlen(number);
	}
	return (role == ROW_NAMES ? row_names : row_class)(row, m->name, m->size, text, size);
}

static int take_json(struct row *row, const struct member *m, enum record_family family,
		     enum record_kind kind)
{
	char *text = json_dumps(m->value, DUMP_FLAGS);
	int ret;

	if (!text)
		return -ENOMEM;
	ret = row_bytes(row, m->name, m->size, family, kind, text, strlen(text));
	free(text);
	return ret;
}

/* Of numbers? *kind: of which. */
static bool is_list(json_t *array, enum record_kind *kind)
{
	size_t i;
	json_t *value;

	*kind = RECORD_LIST_I64;
	json_array_foreach(array, i, value) {
		if (!json_is_number(value))
			return false;
		if (json_is_real(value))
			*kind = RECORD_LIST_F64;
	}
	return true;
}

/* What it would hold is known when there is another one. */
static int take_empty(struct row *row, const struct member *m)
{
	struct record_value value = {.kind = RECORD_LIST_EMPTY, .number.i64 = strlen("[]")};
	int ret = from_store(row->scan, row->record.offset, &value.place);

	if (!ret)
		ret = from_append(row->scan, "[]", strlen("[]"));
	return ret ? ret : row_value(row, m->name, m->size, RECORD_FAMILY_EMPTY, &value);
}

static bool has_large(json_t *array)
{
	size_t i;
	json_t *value;

	json_array_foreach(array, i, value)
		if (json_is_integer(value) && record_is_large(json_integer_value(value)))
			return true;
	return false;
}

static int take_array(struct row *row, const struct member *m)
{
	enum record_kind kind;
	int64_t *elements;
	json_t *value;
	size_t i;
	int ret;

	if (!json_array_size(m->value))
		return take_empty(row, m);
	if (!is_list(m->value, &kind))
		return take_json(row, m, RECORD_FAMILY_JSON, RECORD_JSON);
	elements = malloc((json_array_size(m->value) + 1) * sizeof(*elements));
	if (!elements)
		return -ENOMEM;
	json_array_foreach(m->value, i, value) {
		const double real = json_number_value(value);

		if (kind == RECORD_LIST_F64)
			memcpy(&elements[i], &real, sizeof(real));
		else
			elements[i] = json_integer_value(value);
	}
	ret = row_bytes(row, m->name, m->size, RECORD_FAMILY_LIST, kind, elements,
			json_array_size(m->value) * sizeof(*elements));
	if (!ret && has_large(m->value))
		row_large(row, m->name, m->size);
	free(elements);
	return ret;
}

/* A key may be a number. */
static int take_key(struct row *row, const struct member *m)
{
	char text[32];

	if (json_is_string(m->value)) {
		row_key(row, json_string_value(m->value), json_string_length(m->value));
		return 0;
	}
	if (!json_is_integer(m->value))
		return from_damaged(row->scan, row->record.offset,
				    "'%s' is the key, and neither text nor an integer", m->name);
	snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(m->value));
	row_key(row, text, strlen(text));
	return 0;
}

static int take_member(struct row *row, const struct member *m, enum row_role role)
{
	if (json_is_null(m->value) || role == ROW_NONE)
		return 0;
	if (role == ROW_KEY)
		return take_key(row, m);
	if (role == ROW_TEXT && !json_is_string(m->value))
		return take_json(row, m, RECORD_FAMILY_TEXT, RECORD_TEXT);
	if (role == ROW_PAYLOAD)
		return row_payload(row, json_is_string(m->value) ? json_string_value(m->value) : "",
				   json_string_length(m->value));
	if (role == ROW_NAMES)
		return take_class(row, m, role);
	if (role == ROW_REAL)
		return take_real(row, m);
	if (json_is_object(m->value))
		return take_json(row, m, RECORD_FAMILY_JSON, RECORD_JSON);
	if (json_is_array(m->value))
		return take_array(row, m);
	if (role == ROW_CLASS)
		return take_class(row, m, role);
	if (json_is_string(m->value)) {
		row_text(row, m->name, m->size, json_string_value(m->value),
			 json_string_length(m->value));
		return row_bytes(row, m->name, m->size, RECORD_FAMILY_TEXT, RECORD_TEXT,
				 json_string_value(m->value), json_string_length(m->value));
	}
	return take_number(row, m);
}

/* ---- lines ------------------------------------------------------------------- */

/* The key goes first, so that a path is not taken for it. */
static int take_object(struct row *row, json_t *object, bool keys)
{
	struct member m;
	int ret = 0;

	for (void *at = json_object_iter(object); at && !ret;
	     at = json_object_iter_next(object, at)) {
		enum row_role role;

		m.name = json_object_iter_key(at);
		m.size = strlen(m.name);
		m.value = json_object_iter_value(at);
		role = row_role(row->scan->from, m.name, m.size);
		if ((role == ROW_KEY) == keys)
			ret = take_member(row, &m, role);
	}
	return ret;
}

static bool is_blank(const struct line *line)
{
	for (size_t i = 0; i < line->size; i++)
		if (!strchr(" \t\r", line->data[i]))
			return false;
	return true;
}

/* ---- numbers too close to zero ------------------------------------------------- */

/* As the parser makes them of 1e-999, too: what is too large it refuses. */
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

/* It ends with something else, since it is in an object. */
static bool underflows(const char *digits)
{
	const size_t zeros = strspn(digits, "0.");

	return digits[zeros] >= '1' && digits[zeros] <= '9' && strtod(digits, NULL) == 0;
}

/* Of a line that is an object. Return: NULL: there is none. */
static const char *find_underflow(const struct line *line)
{
	const char *at = (const char *)line->data, *end = at + line->size;

	while (at < end) {
		if (*at == '"') {
			for (at++; *at != '"'; at++)
				at += *at == '\\';
			at++;
		} else if (isdigit((unsigned char)*at)) {
			if (underflows(at))
				return at;
			at += strspn(at, NUMBER_CHARS);
		} else {
			at++;
		}
	}
	return NULL;
}

static int check_numbers(struct from_scan *scan, const json_t *object, const struct line *line)
{
	const char *at = has_zero(object) ? find_underflow(line) : NULL;
	const size_t size = at ? strspn(at, NUMBER_CHARS) : 0;

	return at ? from_damaged(scan, line->offset + (uint64_t)(at - (const char *)line->data),
				 "real number underflow near '%.*s'",
				 (int)(size < NUMBER_SIZE ? size : NUMBER_SIZE), at) : 0;
}

static int no_path(struct from_scan *scan, const json_t *object, uint64_t offset)
{
	const char *name = scan->from->opts.payload;

	return name && !json_object_get(object, name) ?
		       row_no_column(scan, offset, name) :
		       from_damaged(scan, offset, "no path of a file");
}

static int take_line(struct from_scan *scan, const struct line *line, void *user)
{
	struct row *row = user;
	json_error_t error;
	json_t *object;
	int ret;

	if (is_blank(line))
		return 0;
	row_begin(row, line->offset);
	object = json_loadb((const char *)line->data, line->size,
			    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	if (!json_is_object(object)) {
		row->number++;
		ret = from_damaged(scan, object ? line->offset :
						  line->offset + (uint64_t)error.position,
				   "%s", object ? "the line is not a JSON object" : error.text);
	} else {
		ret = check_numbers(scan, object, line);
		if (!ret)
			ret = take_object(row, object, true);
		if (!ret)
			ret = take_object(row, object, false);
		if (!ret && row_of_manifest(scan->from) && scan->damages == row->damages &&
		    !record_has(&row->record, MANIFEST_DATA))
			ret = no_path(scan, object, line->offset);
		if (!ret)
			ret = row_end(row);
	}
	json_decref(object);
	return ret;
}

static int jsonl_scan(struct from_scan *scan)
{
	struct row row = {.scan = scan};

	return lines_scan(scan, take_line, &row);
}

static bool detect(const uint8_t *data, size_t size)
{
	size_t at = lines_bom_size(data, size);

	if (at >= size || data[at++] != '{')
		return false;
	while (at < size && data[at] == ' ')
		at++;
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
	int64_t got = input_look(&scan->input, LINES_BOM_SIZE + 1, &data);
	size_t bom;

	if (got < 0)
		return from_input_failed(scan, (int)got);
	bom = lines_bom_size(data, (size_t)got);
	/* The files come first, wherever their column is. */
	record_field(&scan->from->fields, "data", 4, RECORD_FAMILY_BYTES);
	return (size_t)got > bom && data[bom] == '{' ? jsonl_scan(scan) : csv_scan(scan);
}

const struct from_format from_manifest = {
	.name = "manifest",
	.scan = manifest_scan,
	.kind = FROM_RECORDS,
	.options = FROM_KEY | FROM_PAYLOAD | FROM_TYPES,
};
