/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - fields that are found on the way, and samples that have some of them
 */
#include "from/record.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "from/store.h"

#define NAMES_SIZE_MAX (UINT64_C(16) << 20) /* of the image */

/* ---- fields -------------------------------------------------------------- */

int record_field(struct record_fields *fields, const char *name, size_t size,
		 uint32_t type)
{
	struct record_field *field;

	for (uint32_t i = 0; i < fields->count; i++) {
		field = &fields->list[i];
		if (strlen(field->field.name) == size &&
		    !memcmp(field->field.name, name, size))
			return field->field.type == type ? (int)i : -EPROTOTYPE;
	}
	if (!size || size >= sizeof(field->field.name))
		return -EINVAL;
	if (fields->count == STELE_FIELDS_MAX)
		return -EOVERFLOW;
	field = &fields->list[fields->count];
	*field = (struct record_field){
		.field = {.size = sizeof(field->field), .type = type}};
	memcpy(field->field.name, name, size);
	return (int)fields->count++;
}

void record_fields_release(struct record_fields *fields)
{
	for (uint32_t i = 0; i < fields->count; i++) {
		struct record_field *field = &fields->list[i];

		tdestroy(field->known, free);
		for (uint32_t k = 0; k < field->name_count; k++)
			free(field->names[k]);
		free(field->names);
		free(field->ranks);
		free(field->sorted);
	}
	memset(fields, 0, sizeof(*fields));
}

/* ---- classes ------------------------------------------------------------- */

/* A name in the tree. */
struct known {
	const char *name;
	uint32_t index;
};

static int compare_known(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool is_number(const char *text, int64_t *out)
{
	char *end;

	if (!strchr("-0123456789", *text))
		return false;
	errno = 0;
	*out = strtoll(text, &end, 10);
	return end != text && !*end && !errno;
}

static int add_name(struct record_field *field, const char *name, uint32_t *index)
{
	struct known *known;

	field->names_size += strlen(name) + 2;
	if (field->names_size > NAMES_SIZE_MAX)
		return -EOVERFLOW;
	if ((field->name_count & (field->name_count - 1)) == 0) {
		const size_t room = field->name_count ? 2u * field->name_count : 1;
		char **names = realloc(field->names, room * sizeof(*names));

		if (!names)
			return -ENOMEM;
		field->names = names;
	}
	known = malloc(sizeof(*known));
	field->names[field->name_count] = strdup(name);
	if (!known || !field->names[field->name_count]) {
		free(known);
		free(field->names[field->name_count]);
		return -ENOMEM;
	}
	*index = field->name_count++;
	*known = (struct known){field->names[*index], *index};
	if (tsearch(known, &field->known, compare_known))
		return 0;
	free(known);
	return -ENOMEM;
}

int record_class(struct record_fields *fields, uint32_t number, const char *text,
		 size_t size, int64_t *out)
{
	struct record_field *field = &fields->list[number];
	char name[STELE_KEY_SIZE_MAX + 1];
	struct known **found;
	uint32_t index;
	int ret = 0;

	while (size && strchr(" \t\r\n", text[size - 1]))
		size--;
	if (!size || size > STELE_KEY_SIZE_MAX || memchr(text, '\0', size))
		return -EINVAL;
	memcpy(name, text, size);
	name[size] = '\0';
	if (!field->name_count && is_number(name, out)) {
		field->numbers = true;
		return 0;
	}
	if (field->numbers)
		return -EPROTOTYPE;
	found = tfind(&(struct known){.name = name}, &field->known, compare_known);
	if (found)
		index = (*found)->index;
	else
		ret = add_name(field, name, &index);
	if (!ret)
		*out = index;
	return ret;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names get the numbers of a sorted list, whatever order they came in. */
static int sort_names(struct record_field *field)
{
	const uint32_t count = field->name_count;

	field->sorted = calloc(count, sizeof(*field->sorted));
	field->ranks = calloc(count, sizeof(*field->ranks));
	if (!field->sorted || !field->ranks)
		return -ENOMEM;
	memcpy(field->sorted, field->names, count * sizeof(*field->sorted));
	qsort(field->sorted, count, sizeof(*field->sorted), compare_texts);
	for (uint32_t i = 0; i < count; i++) {
		struct known **known = tfind(&(struct known){.name = field->sorted[i]},
					     &field->known, compare_known);

		field->ranks[(*known)->index] = i;
	}
	field->field.names = (const char *const *)field->sorted;
	field->field.name_count = count;
	return 0;
}

/* ---- schema -------------------------------------------------------------- */

static int find(const struct record_fields *fields, const char *name)
{
	for (uint32_t i = 0; i < fields->count; i++)
		if (!strcmp(fields->list[i].field.name, name))
			return (int)i;
	return -1;
}

/* First those of the base, in its order; the library refuses what it lacks. */
static void take_base(struct record_fields *fields, const struct stele_schema *base,
		      bool taken[STELE_FIELDS_MAX])
{
	const char *at = base ? (const char *)base->fields : NULL;

	for (uint32_t i = 0; at && i < base->count && i < STELE_FIELDS_MAX; i++) {
		struct stele_field *out = &fields->schema[fields->schema_count];
		int number;

		memcpy(out, at + i * base->fields->size, sizeof(*out));
		out->names = NULL;
		out->name_count = 0;
		number = find(fields, out->name);
		if (number >= 0) {
			*out = fields->list[number].field;
			fields->index[number] = fields->schema_count;
			taken[number] = true;
		}
		fields->schema_count++;
	}
}

int record_schema(struct record_fields *fields, const struct stele_schema *base,
		  struct stele_schema *out)
{
	bool taken[STELE_FIELDS_MAX] = {false};
	int ret = 0;

	for (uint32_t i = 0; i < fields->count && !ret; i++)
		if (fields->list[i].name_count && !fields->list[i].sorted)
			ret = sort_names(&fields->list[i]);
	fields->schema_count = 0;
	take_base(fields, base, taken);
	for (uint32_t i = 0; i < fields->count; i++) {
		if (taken[i])
			continue;
		if (fields->schema_count == STELE_FIELDS_MAX)
			return -EOVERFLOW;
		fields->index[i] = fields->schema_count;
		fields->schema[fields->schema_count++] = fields->list[i].field;
	}
	out->fields = fields->schema;
	out->count = fields->schema_count;
	return ret;
}

/* ---- samples ------------------------------------------------------------- */

static bool is_scalar(uint32_t type)
{
	return type == STELE_TYPE_I64 || type == STELE_TYPE_F64;
}

bool record_has(const struct record *record, uint32_t field)
{
	for (uint64_t i = 0; i < record->count; i++)
		if (record->values[i].field == field)
			return true;
	return false;
}

static size_t size_of(uint64_t count)
{
	return offsetof(struct record, values) + count * sizeof(struct record_value);
}

int record_keep(struct store *store, const struct record_fields *fields,
		const struct record *record, uint64_t *offset, uint64_t *data_size)
{
	*offset = store->size;
	*data_size = 0;
	for (uint64_t i = 0; i < record->count; i++)
		if (!is_scalar(fields->list[record->values[i].field].field.type))
			*data_size += record->values[i].value.size;
	return store_append(store, record, size_of(record->count));
}

static int load(const struct store *store, uint64_t offset, struct record *record)
{
	ssize_t got;

	do
		got = pread(store->fd, record, sizeof(*record), (off_t)offset);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	return (size_t)got >= size_of(0) && record->count <= STELE_FIELDS_MAX &&
			       (size_t)got >= size_of(record->count) ?
		       0 :
		       -EIO;
}

int record_load(const struct store *store, const struct record_fields *fields,
		uint64_t offset, union stele_value *values,
		struct record_piece pieces[STELE_FIELDS_MAX])
{
	struct record record;
	int ret = load(store, offset, &record);

	memset(pieces, 0, STELE_FIELDS_MAX * sizeof(*pieces));
	for (uint32_t i = 0; i < fields->schema_count; i++) {
		values[i] = (union stele_value){0};
		if (fields->schema[i].type == STELE_TYPE_I64)
			values[i].i64 = -1;
		else if (fields->schema[i].type == STELE_TYPE_F64)
			values[i].f64 = (double)NAN;
	}
	for (uint64_t i = 0; !ret && i < record.count; i++) {
		const struct record_value *v = &record.values[i];
		const struct record_field *field = &fields->list[v->field];
		const uint32_t at = fields->index[v->field];

		values[at] = v->value;
		if (field->ranks)
			values[at].i64 = field->ranks[v->value.i64];
		if (!is_scalar(field->field.type))
			pieces[at] = (struct record_piece){v->place,
							   v->value.size};
	}
	return ret;
}
