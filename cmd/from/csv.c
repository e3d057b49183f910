/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - split rows into cells, and take each for what its column is
 *
 * Cells without doubled quotes stay in a plain file, to be read again.
 */
#include "from/csv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "from/lines.h"
#include "from/row.h"
#include "text.h"

#define SEPARATORS  ",\t;"

/* Bytes of a row, without quotes around it. */
struct cell {
	size_t begin, end;
	bool doubled; /* has quotes that are doubled */
};

struct column {
	char name[STELE_NAME_SIZE_MAX + 1];
	size_t size;
	enum row_role role;
};

struct csv {
	struct from_scan *scan;
	char separator;
	bool told; /* the separator, by the file */
	struct cell cells[FROM_COLUMNS_MAX];
	size_t cell_count;
	struct column columns[FROM_COLUMNS_MAX];
	size_t column_count;
	bool warned; /* of a name that is hardly meant */
	char *text; /* of a cell whose quotes are doubled */
	size_t text_room;
	struct row row;
};

/* ---- split ------------------------------------------------------------------- */

enum outcome {
	ROW_WHOLE,
	ROW_MORE,  /* it ends beyond these bytes */
	ROW_WRONG, /* here */
};

struct split {
	const char *data;
	size_t size, at;
	bool ended; /* nothing follows these bytes */
	const char *why;
};

/* 0: no line ends here; else how many bytes end it. */
static size_t line_end(const struct split *s)
{
	if (s->data[s->at] == '\n')
		return 1;
	return s->at + 1 < s->size && s->data[s->at] == '\r' && s->data[s->at + 1] == '\n' ? 2 :
											      0;
}

static enum outcome split_quoted(struct split *s, struct cell *cell)
{
	cell->begin = ++s->at;
	for (;;) {
		const char *quote = memchr(s->data + s->at, '"', s->size - s->at);

		if (!quote || (quote + 1 == s->data + s->size && !s->ended)) {
			s->why = "a quote that does not end";
			return s->ended ? ROW_WRONG : ROW_MORE;
		}
		s->at = (size_t)(quote + 1 - s->data);
		cell->end = s->at - 1;
		if (s->at == s->size || s->data[s->at] != '"')
			return ROW_WHOLE;
		cell->doubled = true;
		s->at++;
	}
}

static enum outcome split_plain(struct split *s, struct cell *cell, char separator)
{
	cell->begin = s->at;
	while (s->at < s->size && s->data[s->at] != separator && !line_end(s)) {
		if (s->data[s->at] == '"') {
			s->why = "a quote within a value that has none around it";
			return ROW_WRONG;
		}
		s->at++;
	}
	cell->end = s->at;
	return ROW_WHOLE;
}

/* A row from s->at on, which goes behind it, or to what is wrong. */
static enum outcome split_row(struct csv *csv, struct split *s)
{
	csv->cell_count = 0;
	for (;;) {
		struct cell spare, *cell = csv->cell_count < FROM_COLUMNS_MAX ?
						   &csv->cells[csv->cell_count] : &spare;
		enum outcome outcome;

		*cell = (struct cell){0};
		csv->cell_count++;
		outcome = s->at < s->size && s->data[s->at] == '"' ?
				  split_quoted(s, cell) :
				  split_plain(s, cell, csv->separator);
		if (outcome != ROW_WHOLE)
			return outcome;
		if (s->at == s->size)
			return s->ended ? ROW_WHOLE : ROW_MORE;
		if (s->data[s->at] == csv->separator) {
			s->at++;
			continue;
		}
		if (line_end(s)) {
			s->at += line_end(s);
			return ROW_WHOLE;
		}
		if (s->data[s->at] == '\r' && s->at + 1 == s->size && !s->ended)
			return ROW_MORE;
		s->why = "something between a quote and the end of its value";
		return ROW_WRONG;
	}
}

/* ---- cells ------------------------------------------------------------------- */

/* Its text; NULL: no memory. */
static const char *cell_text(struct csv *csv, const char *data, const struct cell *cell,
			     size_t *size)
{
	const char *from = data + cell->begin, *end = data + cell->end;
	char *to;

	*size = cell->end - cell->begin;
	if (!cell->doubled)
		return from;
	if (*size > csv->text_room) {
		char *text = realloc(csv->text, *size);

		if (!text)
			return NULL;
		csv->text = text;
		csv->text_room = *size;
	}
	for (to = csv->text; from < end; from++) {
		*to++ = *from;
		from += *from == '"';
	}
	*size = (size_t)(to - csv->text);
	return csv->text;
}

/* Where it can be read again: in the shard, or a copy. */
static int place_cell(struct csv *csv, const struct cell *cell, const char *text,
		      struct record_value *value)
{
	struct from_scan *scan = csv->scan;
	int ret;

	if (from_is_plain(scan) && !cell->doubled) {
		value->place = from_place(scan, csv->row.record.offset + cell->begin);
		return 0;
	}
	ret = from_store(scan, csv->row.record.offset, &value->place);
	return ret ? ret : from_append(scan, text, (size_t)value->size);
}

static enum record_family family_of(enum row_role role)
{
	if (role == ROW_CLASS || role == ROW_NAMES)
		return RECORD_FAMILY_CLASS;
	return role == ROW_REAL ? RECORD_FAMILY_NUMBER : RECORD_FAMILY_CELL;
}

/* False: it is none. */
static bool make_real(struct record_value *value)
{
	if (value->kind == RECORD_CELL_I64 && !record_is_large(value->number.i64)) {
		value->number.f64 = (double)value->number.i64;
		value->kind = RECORD_CELL_F64;
	}
	return value->kind == RECORD_CELL_F64;
}

static int take_cell(struct csv *csv, const struct column *column, const struct cell *cell,
		     const char *text, size_t size)
{
	static const enum record_kind kinds[] = {RECORD_CELL, RECORD_CELL_I64,
						 RECORD_CELL_F64};
	struct record_value value = {.size = size};
	int ret;

	if (column->role == ROW_KEY) {
		row_key(&csv->row, text, size);
		return 0;
	}
	if (column->role == ROW_PAYLOAD)
		return row_payload(&csv->row, text, size);
	if (!size || column->role == ROW_NONE)
		return 0;
	if (column->role == ROW_CLASS)
		return row_class(&csv->row, column->name, column->size, text, size);
	if (column->role == ROW_NAMES)
		return row_names(&csv->row, column->name, column->size, text, size);
	row_text(&csv->row, column->name, column->size, text, size);
	ret = place_cell(csv, cell, text, &value);
	if (column->role == ROW_TEXT)
		value.kind = RECORD_CELL;
	else
		value.kind = kinds[record_number(text, size, &value.number.i64,
						 &value.number.f64)];
	if (column->role == ROW_REAL && !make_real(&value))
		return from_damaged(csv->scan, csv->row.record.offset,
				    "column '%s' has a value that is no f64", column->name);
	return ret ? ret : row_value(&csv->row, column->name, column->size,
				     family_of(column->role), &value);
}

/* The key goes first, so that a path is not taken for it. */
static int take_cells(struct csv *csv, const char *data, bool keys)
{
	int ret = 0;

	for (size_t i = 0; i < csv->column_count && !ret; i++) {
		const struct column *column = &csv->columns[i];
		const char *text;
		size_t size;

		if ((column->role == ROW_KEY) != keys)
			continue;
		text = cell_text(csv, data, &csv->cells[i], &size);
		if (!text)
			return -ENOMEM;
		if (text_valid(text, size) != size)
			ret = from_damaged(csv->scan, csv->row.record.offset,
					   "column '%s' is not UTF-8", column->name);
		else
			ret = take_cell(csv, column, &csv->cells[i], text, size);
	}
	return ret;
}

static int take_row(struct csv *csv, const char *data)
{
	char cells[TEXT_SIZE];
	int ret = 0;

	if (csv->cell_count != csv->column_count && ++csv->row.number)
		return from_damaged(csv->scan, csv->row.record.offset,
				    "a row of %s: the header has %zu",
				    text_counted(cells, csv->cell_count, "column"),
				    csv->column_count);
	ret = take_cells(csv, data, true);
	if (!ret)
		ret = take_cells(csv, data, false);
	return ret ? ret : row_end(&csv->row);
}

/* ---- header ------------------------------------------------------------------ */

static char find_separator(const char *data, size_t size)
{
	bool quoted = false;

	for (size_t i = 0; i < size && (quoted || data[i] != '\n'); i++) {
		if (data[i] == '"')
			quoted = !quoted;
		else if (!quoted && data[i] && strchr(SEPARATORS, data[i]))
			return data[i];
	}
	return ',';
}

/* In "path, label" the blank is part of the name; rows may begin without a header. */
static void warn_of_name(struct csv *csv, const char *name, size_t size)
{
	char text[STELE_NAME_SIZE_MAX + 96];
	int64_t i64;
	double f64;

	if (name[0] == ' ' || name[size - 1] == ' ')
		snprintf(text, sizeof(text), "the name of column '%s' begins or ends with a blank",
			 name);
	else if (record_number(name, size, &i64, &f64) ||
		 row_names_file(csv->scan->shard, name, size))
		snprintf(text, sizeof(text),
			 "the first row, where '%s' is the name of a column, is taken for the "
			 "header", name);
	else if (csv->cell_count == 1 && memchr(name, '|', size))
		snprintf(text, sizeof(text),
			 "the header is one column, '%s': a comma, tab or semicolon separates them",
			 name);
	else
		return;
	csv->warned = true;
	from_warn(csv->scan, 0, text);
}

/*
 * What has no name is no field: the numbers of rows, as pandas writes them, or a comma too
 * many. Said once, of the first shard that has such.
 */
static int warn_of_unnamed(struct csv *csv)
{
	struct from *from = csv->scan->from;
	size_t count = 0, first = 0;
	char text[96];

	for (size_t i = csv->column_count; i-- > 0;)
		if (!csv->columns[i].size) {
			count++;
			first = i + 1;
		}
	if (count && count == csv->column_count)
		return from_damaged(csv->scan, 0, "no column has a name");
	if (!count || __atomic_exchange_n(&from->unnamed, true, __ATOMIC_RELAXED))
		return 0;
	if (count == 1)
		snprintf(text, sizeof(text), "column %zu has no name, and is left out", first);
	else
		snprintf(text, sizeof(text), "%zu columns have no name, the first is column %zu: "
			 "they are left out", count, first);
	from_warn(csv->scan, 0, text);
	return 0;
}

/* Columns have the order of the header, and so have fields. */
static int take_column(struct csv *csv, const char *name, size_t size)
{
	struct from *from = csv->scan->from;
	struct column *column = &csv->columns[csv->column_count];
	int field;

	if (!size) {
		csv->columns[csv->column_count++] = (struct column){.role = ROW_NONE};
		return 0;
	}
	if (size > STELE_NAME_SIZE_MAX || text_valid(name, size) != size)
		return from_damaged(csv->scan, 0, "column %zu has no name that a field can have",
				    csv->column_count + 1);
	memcpy(column->name, name, size);
	column->name[size] = '\0';
	if (!csv->scan->index && !csv->warned)
		warn_of_name(csv, column->name, size);
	column->size = size;
	column->role = row_role(from, name, size);
	for (size_t i = 0; i < csv->column_count; i++)
		if (!strcmp(csv->columns[i].name, column->name))
			return from_damaged(csv->scan, 0, "column '%s' is there twice "
					    "in the header", column->name);
	csv->column_count++;
	if (column->role == ROW_KEY || column->role == ROW_PAYLOAD || column->role == ROW_NONE)
		return 0;
	field = record_field(&from->fields, name, size, family_of(column->role));
	if (field == -EOVERFLOW)
		return from_too_many(csv->scan);
	if (field == -EPROTOTYPE)
		return from_damaged(csv->scan, 0, "column '%s' is what the files become",
				    column->name);
	if (field >= 0)
		from->fields.list[field].tables++;
	return 0;
}

/* Which files have not all of the columns; `before`: fields that there were. */
static void compare_columns(struct csv *csv, uint32_t before)
{
	struct from *from = csv->scan->from;

	from->tables++;
	for (uint32_t i = 0; i < from->fields.count; i++) {
		struct record_field *field = &from->fields.list[i];

		if (field->tables && field->tables < from->tables && !field->lacking)
			field->lacking = i < before ? csv->scan->shard->name :
						      from->shards[0].name;
	}
}

static bool has_role(const struct csv *csv, enum row_role role)
{
	for (size_t i = 0; i < csv->column_count; i++)
		if (csv->columns[i].role == role)
			return true;
	return false;
}

static bool has_column(const struct csv *csv, const char *name)
{
	for (size_t i = 0; i < csv->column_count; i++)
		if (!strcmp(csv->columns[i].name, name))
			return true;
	return false;
}

static int no_paths(struct csv *csv)
{
	const struct from_scan *scan = csv->scan;
	bool headless = false;

	if (scan->from->opts.payload)
		return row_no_column(csv->scan, 0, scan->from->opts.payload);
	for (size_t i = 0; i < csv->column_count && !headless; i++)
		headless = row_names_file(scan->shard, csv->columns[i].name,
					  csv->columns[i].size);
	return row_no_paths(csv->scan, 0, headless);
}

/* As of programs for Mac OS before X: then all rows are in the header, or none is behind it. */
static bool ends_with_cr(const struct csv *csv, const char *data)
{
	for (size_t i = 0; i < csv->cell_count && i < FROM_COLUMNS_MAX; i++) {
		const struct cell *cell = &csv->cells[i];
		const bool quoted = cell->begin && data[cell->begin - 1] == '"';

		if (!quoted && memchr(data + cell->begin, '\r', cell->end - cell->begin))
			return true;
	}
	return false;
}

/* Return: 1; 0: damage that is skipped, with the shard; negative errno (said). */
static int take_header(struct csv *csv, const char *data)
{
	const struct from_opts *opts = &csv->scan->from->opts;
	const uint64_t damages = csv->scan->damages;
	const uint32_t before = csv->scan->from->fields.count;
	int ret = 0;

	if (ends_with_cr(csv, data))
		return from_damaged(csv->scan, 0, "lines end with CR, and not with LF or CR LF: "
				    "make it LF, as with tr '\\r' '\\n'");
	if (csv->cell_count > FROM_COLUMNS_MAX)
		return from_refused(csv->scan->from, -E2BIG, "'%s' has %zu columns, more than %u",
				    csv->scan->shard->name, csv->cell_count, FROM_COLUMNS_MAX);
	for (size_t i = 0; i < csv->cell_count && !ret && csv->scan->damages == damages; i++) {
		size_t size;
		const char *name = cell_text(csv, data, &csv->cells[i], &size);

		ret = name ? take_column(csv, name, size) : -ENOMEM;
	}
	if (!ret && csv->scan->damages == damages)
		ret = warn_of_unnamed(csv);
	if (!ret && opts->key && csv->scan->damages == damages && !has_role(csv, ROW_KEY))
		ret = row_no_column(csv->scan, 0, opts->key);
	for (uint32_t i = 0; i < opts->column_count && !ret && csv->scan->damages == damages; i++)
		if (!has_column(csv, opts->columns[i].name))
			ret = row_no_column(csv->scan, 0, opts->columns[i].name);
	if (!ret && row_of_manifest(csv->scan->from) && csv->scan->damages == damages &&
	    !has_role(csv, ROW_PAYLOAD))
		ret = no_paths(csv);
	if (!ret && csv->scan->damages == damages)
		compare_columns(csv, before);
	return ret ? ret : csv->scan->damages == damages;
}

/* ---- rows -------------------------------------------------------------------- */

/* From what is wrong on: the end of the line. Return: 1; 0: there is none; negative errno. */
static int resume(struct from_scan *scan)
{
	const uint8_t *data, *end;
	int64_t got;

	while ((got = input_look(&scan->input, 1, &data)) > 0) {
		end = memchr(data, '\n', (size_t)got);
		input_skip(&scan->input, end ? (uint64_t)(end + 1 - data) : (uint64_t)got);
		if (end)
			return 1;
	}
	return got < 0 ? from_input_failed(scan, (int)got) : 0;
}

static int wrong_row(struct csv *csv, const struct split *s)
{
	struct from_scan *scan = csv->scan;
	int ret = from_damaged(scan, scan->input.offset + s->at, "%s", s->why);

	csv->row.number++;
	if (ret || !csv->column_count)
		return ret;
	input_skip(&scan->input, s->at);
	return resume(scan);
}

/* A value in quotes begins behind one, and is there even if it is empty. */
static bool is_blank(const struct csv *csv)
{
	return csv->cell_count == 1 && !csv->cells[0].end;
}

/* One that is whole. Return: 1; 0: nothing more of this shard; negative errno (said). */
static int whole_row(struct csv *csv, const char *data, size_t size)
{
	int ret = 1;

	row_begin(&csv->row, csv->scan->input.offset);
	if (!csv->column_count) {
		ret = take_header(csv, data);
	} else if (!is_blank(csv)) {
		ret = take_row(csv, data);
		ret = ret ? ret : 1;
	}
	if (ret > 0)
		input_skip(&csv->scan->input, size);
	return ret;
}

/* Return: as whole_row(). */
static int next_row(struct csv *csv)
{
	struct from_scan *scan = csv->scan;
	struct split s = {.ended = false};
	size_t want = 1;

	for (;;) {
		const uint8_t *data;
		int64_t got = input_look(&scan->input, want, &data);
		enum outcome outcome;

		if (got < 0)
			return from_input_failed(scan, (int)got);
		if (!got)
			return 0;
		s = (struct split){.data = (const char *)data, .size = (size_t)got,
				   .ended = (size_t)got < want};
		if (!csv->column_count && !csv->told)
			csv->separator = find_separator(s.data, s.size);
		outcome = split_row(csv, &s);
		if (outcome == ROW_WHOLE)
			return whole_row(csv, s.data, s.at);
		if (outcome == ROW_WRONG)
			return wrong_row(csv, &s);
		want = (size_t)got + 1;
		if (want > FROM_RECORD_SIZE_MAX)
			return from_damaged(scan, scan->input.offset, "a row of more than %zu "
					    "bytes: what follows is lost", FROM_RECORD_SIZE_MAX);
	}
}

/* As Excel has it: a first line such as "sep=;". Return: 0; negative errno (said). */
static int take_separator(struct csv *csv)
{
	static const char mark[] = "sep=";
	const size_t size = strlen(mark) + 1;
	struct input *input = &csv->scan->input;
	const uint8_t *data;
	int64_t got = input_look(input, size + 2, &data);
	size_t end = size;

	if (got < 0)
		return from_input_failed(csv->scan, (int)got);
	if (got <= (int64_t)size || memcmp(data, mark, strlen(mark)) ||
	    !strchr(SEPARATORS, data[size - 1]))
		return 0;
	if (data[end] == '\r' && got > (int64_t)end + 1)
		end++;
	if (data[end] != '\n')
		return 0;
	csv->separator = (char)data[size - 1];
	csv->told = true;
	input_skip(input, end + 1);
	return 0;
}

int csv_scan(struct from_scan *scan)
{
	struct csv *csv = calloc(1, sizeof(*csv));
	int ret;

	if (!csv)
		return -ENOMEM;
	csv->scan = csv->row.scan = scan;
	ret = lines_begin(scan);
	if (!ret)
		ret = take_separator(csv);
	if (!ret)
		while ((ret = next_row(csv)) > 0)
			;
	free(csv->text);
	free(csv);
	return ret;
}

const struct from_format from_csv = {
	.name = "csv",
	.scan = csv_scan,
	.kind = FROM_RECORDS,
	.options = FROM_KEY | FROM_TYPES,
};
