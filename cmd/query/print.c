/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - rows of a query: CSV (RFC 4180), JSON, a table, ids
 */
#include "query/print.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "json.h"
#include "text.h"

static const char *number_text(char text[TEXT_SIZE], const struct stele_query_value *value)
{
	if (value->type == STELE_QUERY_F64)
		return text_real(text, value->f64);
	snprintf(text, TEXT_SIZE, "%" PRIi64, value->i64);
	return text;
}

static bool is_number(const struct stele_query_value *value)
{
	return value->type == STELE_QUERY_I64 || value->type == STELE_QUERY_F64;
}

/* ---- CSV -------------------------------------------------------------------------- */

/* An empty text is quoted, NULL is nothing at all. */
static void put_cell(const char *data, size_t size)
{
	bool plain = size > 0;

	for (size_t i = 0; i < size && plain; i++)
		plain = !strchr(",\"\r\n", data[i]);
	if (plain) {
		fwrite(data, 1, size, stdout);
		return;
	}
	putchar('"');
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '"')
			putchar('"');
		putchar(data[i]);
	}
	putchar('"');
}

static void csv_header(struct stele_query *query, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const char *name = stele_query_column_name(query, i);

		if (i)
			putchar(',');
		put_cell(name, strlen(name));
	}
	putchar('\n');
}

static int csv_row(struct stele_query *query, uint32_t count)
{
	struct stele_query_value value;
	char text[TEXT_SIZE];
	int error = 0;

	for (uint32_t i = 0; i < count && !error; i++) {
		error = stele_query_value(query, i, &value);
		if (i)
			putchar(',');
		if (error)
			break;
		if (is_number(&value))
			fputs(number_text(text, &value), stdout);
		else if (value.type != STELE_QUERY_NULL)
			put_cell(value.data, value.size);
	}
	putchar('\n');
	return error;
}

/* ---- JSON ------------------------------------------------------------------------- */

static void json_value(json_t *object, const char *name, const struct stele_query_value *value)
{
	char text[TEXT_SIZE];

	if (value->type == STELE_QUERY_NULL)
		json_set(object, name, json_null());
	else if (value->type == STELE_QUERY_I64)
		json_set(object, name, json_integer(value->i64));
	else if (value->type == STELE_QUERY_F64 && isfinite(value->f64))
		json_set(object, name, json_real(value->f64));
	else if (value->type == STELE_QUERY_F64)
		json_set_text(object, name, number_text(text, value));
	else
		json_set_key(object, name, value->data, value->size);
}

#define NAME_SIZE 256

/* A name once for each column, as members of an object have it: the second "x" is "x:1". */
static const char *member_name(json_t *object, const char *name, char text[NAME_SIZE])
{
	size_t size = strnlen(name, NAME_SIZE - 16);

	if (!json_object_get(object, name))
		return name;
	while (size && (name[size] & 0xc0) == 0x80) /* not within a character of UTF-8 */
		size--;
	for (uint32_t i = 1;; i++) {
		snprintf(text, NAME_SIZE, "%.*s:%" PRIu32, (int)size, name, i);
		if (!json_object_get(object, text))
			return text;
	}
}

static int json_row(struct stele_query *query, uint32_t count)
{
	struct stele_query_value value;
	char name[NAME_SIZE];
	json_t *object = json_make();
	int error = 0;

	for (uint32_t i = 0; i < count && !error; i++) {
		error = stele_query_value(query, i, &value);
		if (!error)
			json_value(object,
				   member_name(object, stele_query_column_name(query, i), name),
				   &value);
	}
	if (error)
		json_decref(object);
	else
		json_line(object);
	return error;
}

/* ---- a table -------------------------------------------------------------------------- */

#define MEASURED 200u /* rows that the widths are of */
#define WIDTH_MAX 60u

struct table {
	uint32_t columns;
	size_t rows;
	char **cells; /* row by row, the header first */
	bool *right;  /* by column: numbers */
	size_t *widths;
};

static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static void put_padding(size_t width, size_t wanted)
{
	for (; width < wanted; width++)
		putchar(' ');
}

static void put_line(const struct table *t, char *const *cells)
{
	for (uint32_t i = 0; i < t->columns; i++) {
		const size_t width = width_of(cells[i]);

		if (i)
			fputs("  ", stdout);
		if (t->right[i])
			put_padding(width, t->widths[i]);
		fputs(cells[i], stdout);
		if (!t->right[i] && i + 1 < t->columns)
			put_padding(width, t->widths[i]);
	}
	putchar('\n');
}

static void widen(struct table *t, uint32_t column, const char *cell)
{
	size_t width = width_of(cell);

	width = width < WIDTH_MAX ? width : WIDTH_MAX;
	if (width > t->widths[column])
		t->widths[column] = width;
}

static int read_line(struct stele_query *query, struct table *t, char **cells)
{
	struct stele_query_value value;
	char text[TEXT_SIZE];
	int error = 0;

	for (uint32_t i = 0; i < t->columns && !error; i++) {
		error = stele_query_value(query, i, &value);
		if (error)
			break;
		if (is_number(&value))
			cells[i] = strdup(number_text(text, &value));
		else if (value.type == STELE_QUERY_NULL)
			cells[i] = strdup("NULL");
		else
			cells[i] = text_escape(value.data, value.size);
		if (!cells[i])
			error = -ENOMEM;
		else
			t->right[i] |= is_number(&value);
	}
	return error;
}

static void free_cells(char **cells, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(cells[i]);
		cells[i] = NULL;
	}
}

static void put_measured(struct table *t)
{
	for (size_t i = 0; i < t->rows * t->columns; i++)
		widen(t, (uint32_t)(i % t->columns), t->cells[i]);
	for (size_t row = 0; row < t->rows; row++)
		put_line(t, t->cells + row * t->columns);
	free_cells(t->cells, t->rows * t->columns);
}

static int table_rows(struct stele_query *query, struct table *t)
{
	int got, error = 0;

	for (uint32_t i = 0; i < t->columns && !error; i++) {
		const char *name = stele_query_column_name(query, i);

		t->cells[i] = text_escape(name, strlen(name));
		error = t->cells[i] ? 0 : -ENOMEM;
	}
	if (error)
		return error;
	for (t->rows = 1; (got = stele_query_next(query)) > 0 && !error; ) {
		char **cells = t->cells + (t->rows <= MEASURED ? t->rows * t->columns : 0);

		error = read_line(query, t, cells);
		if (error)
			break;
		if (t->rows++ < MEASURED)
			continue;
		if (t->rows == MEASURED + 1)
			put_measured(t);
		else
			put_line(t, cells), free_cells(cells, t->columns);
		if (ferror(stdout))
			break;
	}
	if (t->rows <= MEASURED)
		put_measured(t);
	return error ? error : got < 0 ? got : 0;
}

static int print_table(struct stele_query *query, uint32_t count, uint64_t *rows)
{
	struct table t = {.columns = count};
	const size_t cells = (MEASURED + 1) * (size_t)count;
	int error = -ENOMEM;

	t.cells = calloc(cells, sizeof(*t.cells));
	t.right = calloc(count, sizeof(*t.right));
	t.widths = calloc(count, sizeof(*t.widths));
	if (t.cells && t.right && t.widths)
		error = table_rows(query, &t);
	*rows = t.rows ? t.rows - 1 : 0; /* without the names of columns */
	if (t.cells)
		free_cells(t.cells, cells);
	free(t.cells);
	free(t.right);
	free(t.widths);
	return error;
}

/* ---- ids -------------------------------------------------------------------------- */

static int find_id(const struct stele_query *query, uint32_t count, uint32_t *column)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(stele_query_column_name(query, i), "id") != 0)
			continue;
		*column = i;
		return 0;
	}
	cmd_message("the result has no column 'id'");
	return -ENOENT;
}

/* Another number would be that of another sample. */
static int id_row(struct stele_query *query, uint32_t column, uint64_t row)
{
	struct stele_query_value value;
	int error = stele_query_value(query, column, &value);

	if (error)
		return error;
	if (value.type != STELE_QUERY_I64 || value.i64 < 0) {
		cmd_message("'id' of row %" PRIu64 " is none: ids are integers from 0 on", row);
		return -ENOENT;
	}
	printf("%" PRIi64 "\n", value.i64);
	return 0;
}

int print_rows(struct stele_query *query, enum print_format format, uint64_t *rows)
{
	const uint32_t count = stele_query_column_count(query);
	uint32_t id = 0;
	int got = 0, error = 0;

	*rows = 0;
	if (format == PRINT_TABLE)
		return print_table(query, count, rows);
	if (format == PRINT_IDS)
		error = find_id(query, count, &id);
	if (format == PRINT_CSV)
		csv_header(query, count);
	while (!error && !ferror(stdout) && (got = stele_query_next(query)) > 0) {
		++*rows;
		if (format == PRINT_IDS)
			error = id_row(query, id, *rows);
		else
			error = (format == PRINT_CSV ? csv_row : json_row)(query, count);
	}
	return error ? error : got < 0 ? got : 0;
}
