/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.c - fields and their values, as text and as JSON
 */
#include "fields.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "json.h"
#include "remedy.h"
#include "text.h"

#define TEXT_MAX 64 /* bytes of a text in a list */

json_t *field_json(const struct stele_field *field)
{
	const bool tensor = field->type == STELE_TYPE_TENSOR;
	char type[STELE_FIELD_TYPE_SIZE];
	json_t *object = json_make(), *shape;

	stele_field_type(field, type);
	json_set_text(object, "name", field->name);
	json_set_text(object, "type", tensor ? "tensor" : type);
	json_set_number(object, "classes", field->name_count);
	if (field->names_damaged)
		json_set(object, "names_damaged", json_true());
	if (!tensor)
		return object;
	shape = json_make_list();
	for (uint32_t i = 0; i < field->rank; i++)
		json_add(shape, field->dims[i] ? json_integer(field->dims[i]) :
						 json_null());
	type[strcspn(type, "[")] = '\0';
	json_set_text(object, "dtype", type);
	json_set(object, "shape", shape);
	return object;
}

static bool next_field(const struct stele_dataset *ds, uint32_t index,
		       struct stele_field *field)
{
	struct stele_dataset_info info = {.size = sizeof(info)};

	*field = (struct stele_field){.size = sizeof(*field)};
	stele_dataset_info(ds, &info);
	return index < info.field_count && !stele_dataset_field(ds, index, field);
}

/* ---- names --------------------------------------------------------------------- */

bool field_is_number(const struct stele_field *field)
{
	return field->type == STELE_TYPE_I64 || field->type == STELE_TYPE_F64;
}

static void list_names(const struct stele_dataset *ds, bool bytes, FILE *list)
{
	struct stele_field field;
	uint32_t count = 0;
	char *name;

	for (uint32_t i = 0; next_field(ds, i, &field); i++) {
		if (bytes && field_is_number(&field))
			continue;
		name = text_escape(field.name, strlen(field.name));
		fprintf(list, "%s'%s'", count++ ? ", " : "", name ? name : "?");
		free(name);
	}
}

char *fields_list(const struct stele_dataset *ds, bool bytes)
{
	char *text = NULL;
	size_t size;
	FILE *list = open_memstream(&text, &size);

	if (!list)
		return NULL;
	list_names(ds, bytes, list);
	fclose(list);
	return text;
}

/* Which one may be meant. */
static void no_field(const struct stele_dataset *ds, const char *name, bool bytes)
{
	char *text = text_escape(name, strlen(name)), *list = fields_list(ds, bytes);

	if (list && !*list)
		cmd_message("no field '%s': there is nothing but numbers", text ? text : name);
	else
		cmd_message("no field '%s' (%sthere %s %s)", text ? text : name,
			    bytes ? "apart from numbers " : "",
			    list && !strchr(list, ',') ? "is" : "are", list ? list : "others");
	free(text);
	free(list);
}

int field_find(const struct stele_dataset *ds, const char *name, bool bytes)
{
	struct stele_field field;

	for (uint32_t i = 0; next_field(ds, i, &field); i++) {
		if (strcmp(field.name, name))
			continue;
		if (!bytes || !field_is_number(&field))
			return (int)i;
		cmd_message("field '%s' is a number, not bytes", field.name);
		return -EINVAL;
	}
	no_field(ds, name, bytes);
	return -EINVAL;
}

bool fields_warn_joined(const struct stele_dataset *ds, const char *what)
{
	struct stele_field field;
	uint32_t count = 0;
	char *list;

	for (uint32_t i = 0; next_field(ds, i, &field); i++)
		count += !field_is_number(&field);
	if (count < 2)
		return false;
	list = fields_list(ds, true);
	cmd_message("warning: samples have several fields, %s: each %s is all of them joined, "
		    "with nothing in between", list ? list : "?", what);
	free(list);
	return true;
}

/* Parquet has tables of them, with a column `key`. */
static bool fit_parquet(const struct stele_dataset *ds)
{
	struct stele_field field;

	for (uint32_t i = 0; next_field(ds, i, &field); i++)
		if (!strcmp(field.name, "key") ||
		    (field.type == STELE_TYPE_TENSOR &&
		     (field.dtype == STELE_DTYPE_BF16 || field.dtype == STELE_DTYPE_C64 ||
		      field.dtype == STELE_DTYPE_C128)))
			return false;
	return true;
}

void fields_hint_tensors(const struct stele_dataset *ds)
{
	if (fit_parquet(ds))
		cmd_hint("'python3 -m stele.parquet export' writes all fields, 'stele extract "
			 "--field=NAME' one");
	else
		cmd_hint("'stele extract --field=NAME' writes one field");
}

/* Of what is damaged not every command can write all fields. */
static void hint_all_fields(const struct stele_dataset *ds, bool tensors, bool damaged)
{
	if (damaged)
		remedy_print("extract", -EBADMSG, "", NULL);
	else if (tensors && !fit_parquet(ds))
		cmd_hint("'stele ls --fields --json' lists numbers and classes");
	else
		cmd_hint("'%s' writes all fields", tensors ? "python3 -m stele.parquet export" :
							     "stele export --to=webdataset");
}

void fields_warn_left(struct stele_dataset *ds, const char *what, struct labels *labels)
{
	struct stele_field field;
	uint32_t count = 0;
	bool tensors = false, damaged = false;
	char *text = NULL, *name;
	size_t size;
	FILE *list = open_memstream(&text, &size);
	int shown;

	for (uint32_t i = 0; list && next_field(ds, i, &field); i++) {
		tensors |= field.type == STELE_TYPE_TENSOR;
		shown = field_is_number(&field) ? labels_add(labels, ds, i, &field) : 1;
		damaged |= shown < 0;
		if (shown > 0)
			continue;
		name = text_escape(field.name, strlen(field.name));
		fprintf(list, "%s'%s'", count++ ? ", " : "", name ? name : "?");
		free(name);
	}
	if (list)
		fclose(list);
	if (count) {
		cmd_message("warning: %s %s %s not written: each %s is the bytes of a sample alone",
			    count > 1 ? "fields" : "field", text ? text : "?",
			    count > 1 ? "are" : "is", what);
		hint_all_fields(ds, tensors, damaged);
	}
	free(text);
}

void fields_warn_unlike(const struct stele_dataset *ds, const struct labels *labels)
{
	struct stele_field field;
	bool tensors = false;

	if (!labels_warn(labels))
		return;
	for (uint32_t i = 0; next_field(ds, i, &field); i++)
		tensors |= field.type == STELE_TYPE_TENSOR;
	hint_all_fields(ds, tensors, false);
}

/* ---- values -------------------------------------------------------------------- */

static void print_text(const char *data, uint64_t size)
{
	size_t shown = size > TEXT_MAX ? TEXT_MAX : (size_t)size;
	char *text;

	while (shown < size && shown && (data[shown] & 0xc0) == 0x80)
		shown--; /* back to the beginning of a character */
	text = text_escape(data, shown);
	printf("'%s%s'", text ? text : "?", shown < size ? "..." : "");
	free(text);
}

static void print_class(const struct stele_field *field, int64_t value)
{
	char *text;

	if (value < 0 || value >= field->name_count)
		return;
	text = text_escape(field->names[value], strlen(field->names[value]));
	printf(" (%s)", text ? text : "?");
	free(text);
}

static void print_value(const struct stele_sample *sample, uint32_t index,
			const struct stele_field *field)
{
	uint64_t dims[STELE_RANK_MAX], size;
	const void *data;
	int64_t i64;
	double f64;
	int rank;

	if (!stele_sample_i64(sample, index, &i64)) {
		printf("%" PRIi64, i64);
		print_class(field, i64);
	} else if (!stele_sample_f64(sample, index, &f64)) {
		printf("%.17g", f64);
	} else if ((rank = stele_sample_shape(sample, index, dims)) >= 0) {
		putchar('[');
		for (int i = 0; i < rank; i++)
			printf("%s%" PRIu64, i ? "," : "", dims[i]);
		putchar(']');
	} else if (stele_sample_bytes(sample, index, &data, &size)) {
		putchar('?');
	} else if (field->type == STELE_TYPE_UTF8) {
		print_text(data, size);
	} else {
		printf("%" PRIu64, size);
	}
}

void fields_print(const struct stele_sample *sample)
{
	struct stele_field field;

	for (uint32_t i = 0; next_field(sample->ds, i, &field); i++) {
		printf(" %s=", field.name);
		print_value(sample, i, &field);
	}
}

static json_t *value_json(const struct stele_sample *sample, uint32_t index,
			  const struct stele_field *field)
{
	uint64_t dims[STELE_RANK_MAX], size;
	json_t *value = NULL;
	const void *data;
	char text[32];
	int64_t i64;
	double f64;
	int rank;

	if (!stele_sample_i64(sample, index, &i64))
		return json_integer(i64);
	if (!stele_sample_f64(sample, index, &f64)) {
		if (isfinite(f64))
			return json_real(f64);
		snprintf(text, sizeof(text), "%g", f64);
		return json_string(text);
	}
	rank = stele_sample_shape(sample, index, dims);
	if (rank >= 0) {
		value = json_make_list();
		for (int i = 0; i < rank; i++)
			json_add(value, json_integer((json_int_t)dims[i]));
		return value;
	}
	if (stele_sample_bytes(sample, index, &data, &size))
		return json_null();
	if (field->type == STELE_TYPE_UTF8)
		value = json_stringn(data, size); /* NULL: it is not */
	return value ? value : json_integer((json_int_t)size);
}

json_t *fields_json(const struct stele_sample *sample)
{
	json_t *object = json_make();
	struct stele_field field;

	for (uint32_t i = 0; next_field(sample->ds, i, &field); i++)
		json_set(object, field.name, value_json(sample, i, &field));
	return object;
}

int field_write(const struct stele_sample *sample, uint32_t index)
{
	const void *data;
	uint64_t size;
	int64_t i64;
	double f64;
	int error;

	if (!stele_sample_i64(sample, index, &i64)) {
		printf("%" PRIi64 "\n", i64);
		return 0;
	}
	if (!stele_sample_f64(sample, index, &f64)) {
		printf("%.17g\n", f64);
		return 0;
	}
	error = stele_sample_bytes(sample, index, &data, &size);
	if (!error)
		fwrite(data, 1, size, stdout);
	return error;
}
