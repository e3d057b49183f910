/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member.c - members as the parser has them
 */
#include "from/member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DUMP_FLAGS  (JSON_COMPACT | JSON_ENCODE_ANY)
#define NUMBER_SIZE 32 /* of one as text */

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

bool member_is_list(json_t *array, enum record_kind *kind)
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

static int take_array(struct row *row, const struct member *m)
{
	struct row_list list = {0};
	enum record_kind kind;
	int64_t *elements;
	json_t *value;
	size_t i;
	int ret;

	if (!json_array_size(m->value))
		return take_empty(row, m);
	if (!member_is_list(m->value, &kind))
		return take_json(row, m, RECORD_FAMILY_JSON, RECORD_JSON);
	elements = malloc(json_array_size(m->value) * sizeof(*elements));
	if (!elements)
		return -ENOMEM;
	json_array_foreach(m->value, i, value) {
		const double real = json_number_value(value);

		if (json_is_integer(value))
			row_list_see(&list, json_integer_value(value));
		if (kind == RECORD_LIST_F64)
			memcpy(&elements[i], &real, sizeof(real));
		else
			elements[i] = json_integer_value(value);
	}
	list.kind = kind;
	list.elements = elements;
	list.count = json_array_size(m->value);
	ret = row_list(row, m->name, m->size, &list);
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

int member_take(struct row *row, const struct member *m, enum row_role role)
{
	if (json_is_null(m->value) || role == ROW_NONE)
		return 0;
	if (m->text)
		return member_take_text(row, m, role);
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
