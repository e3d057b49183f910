/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.c - the scalar fields of samples, in any order and in bulk
 *
 * Keys are listed in their own order, in which ids jump about: values are read
 * CHUNK at a time and kept, up to CHUNKS_MAX of these, each in the one place that it
 * can have.
 */
#include "columns.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "text.h"

#define CHUNK	   4096u /* values */
#define CHUNKS_MAX 8192u /* 256 MiB of them */
#define WIDTH_MAX  24

struct column_chunk {
	uint64_t first; /* id */
	uint64_t values[CHUNK];
};

static bool is_scalar(const struct stele_field *field)
{
	return field->type == STELE_TYPE_I64 || field->type == STELE_TYPE_F64;
}

static int width_of(const struct stele_field *field)
{
	int width = field->name_count ? 1 : 10;

	for (uint32_t i = 0; i < field->name_count && width < WIDTH_MAX; i++) {
		const size_t bytes = strlen(field->names[i]);
		const size_t size = bytes - (size_t)text_pad(field->names[i], 0);

		if (size > (size_t)width)
			width = size < WIDTH_MAX ? (int)size : WIDTH_MAX;
	}
	return width;
}

int columns_open(struct columns *columns, struct stele_dataset *ds)
{
	struct stele_dataset_info info = {.size = sizeof(info)};

	*columns = (struct columns){.ds = ds};
	stele_dataset_info(ds, &info);
	for (uint32_t i = 0; i < info.field_count; i++) {
		struct column *column = &columns->list[columns->count];

		column->index = i;
		column->field.size = sizeof(column->field);
		if (stele_dataset_field(ds, i, &column->field) ||
		    !is_scalar(&column->field))
			continue;
		column->width = width_of(&column->field);
		column->chunks = calloc(CHUNKS_MAX, sizeof(*column->chunks));
		if (!column->chunks)
			return -ENOMEM;
		columns->count++;
	}
	return 0;
}

void columns_release(struct columns *columns)
{
	for (uint32_t i = 0; i < columns->count; i++) {
		for (uint32_t j = 0; j < CHUNKS_MAX; j++)
			free(columns->list[i].chunks[j]);
		free(columns->list[i].chunks);
	}
	columns->count = 0;
}

static int get(const struct columns *columns, const struct column *column, uint64_t id,
	       uint64_t *value)
{
	struct column_chunk **place =
		&column->chunks[id / CHUNK % CHUNKS_MAX];
	const uint64_t first = id - id % CHUNK;
	const uint64_t left = stele_dataset_count(columns->ds) - first;
	int error;

	if (!*place) {
		*place = malloc(sizeof(**place));
		if (!*place)
			return -ENOMEM;
		(*place)->first = UINT64_MAX;
	}
	if ((*place)->first != first) {
		(*place)->first = UINT64_MAX;
		error = stele_dataset_column(columns->ds, column->index, first,
					     left < CHUNK ? left : CHUNK,
					     (*place)->values);
		if (error)
			return error;
		(*place)->first = first;
	}
	*value = (*place)->values[id - first];
	return 0;
}

/* NULL: the value has no name. */
static const char *class_name(const struct stele_field *field, uint64_t value)
{
	return value < field->name_count ? field->names[value] : NULL;
}

static double as_f64(uint64_t value)
{
	double f64;

	memcpy(&f64, &value, sizeof(f64));
	return f64;
}

static void print_value(const struct column *column, uint64_t value)
{
	const char *name = class_name(&column->field, value);
	char *text;

	if (name) {
		text = text_escape(name, strlen(name));
		printf("%-*s  ", text_pad(text, column->width), text ? text : "?");
		free(text);
	} else if (column->field.type == STELE_TYPE_F64) {
		printf("%*.6g  ", column->width, as_f64(value));
	} else if (column->field.name_count) {
		printf("%-*" PRIi64 "  ", column->width, (int64_t)value);
	} else {
		printf("%*" PRIi64 "  ", column->width, (int64_t)value);
	}
}

int columns_get(struct columns *columns, uint64_t id, uint64_t *values)
{
	int error = 0;

	for (uint32_t i = 0; i < columns->count && !error; i++)
		error = get(columns, &columns->list[i], id, &values[i]);
	return error;
}

void columns_print(const struct columns *columns, const uint64_t *values)
{
	for (uint32_t i = 0; i < columns->count; i++)
		print_value(&columns->list[i], values[i]);
}

static json_t *value_json(const struct stele_field *field, uint64_t value)
{
	const double f64 = as_f64(value);
	char text[32];

	if (field->type == STELE_TYPE_I64)
		return json_integer((json_int_t)value);
	if (isfinite(f64))
		return json_real(f64);
	snprintf(text, sizeof(text), "%g", f64);
	return json_string(text);
}

void columns_json(const struct columns *columns, const uint64_t *values,
		  json_t *object)
{
	json_t *fields, *classes;

	if (!columns->count)
		return;
	fields = json_make();
	classes = json_make();
	for (uint32_t i = 0; i < columns->count; i++) {
		const struct stele_field *field = &columns->list[i].field;
		const char *name = class_name(field, values[i]);

		json_set(fields, field->name, value_json(field, values[i]));
		if (name)
			json_set_key(classes, field->name, name, strlen(name));
	}
	json_set(object, "fields", fields);
	json_set(object, "classes", classes);
}

int columns_count(struct stele_dataset *ds, uint32_t index,
		  const struct stele_field *field, uint64_t *counts)
{
	const uint64_t total = stele_dataset_count(ds);
	uint64_t *values = malloc(CHUNK * sizeof(*values));
	int error = values ? 0 : -ENOMEM;

	memset(counts, 0, ((size_t)field->name_count + 1) * sizeof(*counts));
	for (uint64_t id = 0; id < total && !error; id += CHUNK) {
		const uint64_t count = total - id < CHUNK ? total - id : CHUNK;

		error = stele_dataset_column(ds, index, id, count, values);
		for (uint64_t i = 0; i < count && !error; i++)
			counts[values[i] < field->name_count ?
				       values[i] :
				       field->name_count]++;
	}
	free(values);
	return error;
}
