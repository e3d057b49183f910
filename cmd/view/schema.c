/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - the fields of a snapshot, and what values those have that are numbers
 *
 * Columns are read twice: for what they span, and to count the values in bars of equal width.
 */
#include "view/view.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "fields.h"
#include "show.h"
#include "text.h"

#define CHUNK	     4096u
#define BARS	     32u
#define DISTINCT_MAX 4096u /* values that are told apart */
#define TABLE_SIZE   16384u
#define CLASSES_MAX  24u /* that are drawn; of more, the largest and the smallest */

struct values {
	bool real;
	uint64_t count, odd; /* numbers; what is none, or infinite */
	double min, max;
	uint64_t distinct, *table; /* bits of values, plus 1 */
	uint64_t bars[BARS];
};

static void add_distinct(struct values *values, uint64_t bits)
{
	uint64_t at = (bits * UINT64_C(0x9e3779b97f4a7c15)) >> 50;

	if (values->distinct > DISTINCT_MAX)
		return;
	while (values->table[at] && values->table[at] != bits + 1)
		at = (at + 1) % TABLE_SIZE;
	if (!values->table[at])
		values->distinct++;
	values->table[at] = bits + 1;
}

/* Return: false: it is no finite number. */
static bool number(const struct values *values, uint64_t bits, double *out)
{
	int64_t i64;

	if (values->real) {
		memcpy(out, &bits, sizeof(*out));
		return isfinite(*out);
	}
	memcpy(&i64, &bits, sizeof(i64));
	*out = (double)i64;
	return true;
}

static void add_span(struct values *values, uint64_t bits)
{
	double value;

	add_distinct(values, bits);
	if (!number(values, bits, &value)) {
		values->odd++;
		return;
	}
	if (!values->count++ || value < values->min)
		values->min = value;
	if (values->count == 1 || value > values->max)
		values->max = value;
}

static void add_bar(struct values *values, uint64_t bits)
{
	double value, place;

	if (!number(values, bits, &value))
		return;
	place = (value / 2 - values->min / 2) / (values->max / 2 - values->min / 2) * BARS;
	values->bars[place < BARS ? (unsigned int)place : BARS - 1]++;
}

static int each(struct stele_dataset *ds, uint32_t index, struct values *values,
		void (*fn)(struct values *values, uint64_t bits))
{
	const uint64_t total = stele_dataset_count(ds);
	uint64_t chunk[CHUNK];
	int error = 0;

	for (uint64_t id = 0; id < total && !error; id += CHUNK) {
		const uint64_t count = total - id < CHUNK ? total - id : CHUNK;

		error = stele_dataset_column(ds, index, id, count, chunk);
		for (uint64_t i = 0; i < count && !error; i++)
			fn(values, chunk[i]);
	}
	return error;
}

static char *value_text(char text[TEXT_SIZE], const struct values *values, double value)
{
	/* Whole numbers stay whole as long as a double can hold them. */
	snprintf(text, TEXT_SIZE, values->real || fabs(value) > 9e15 ? "%.6g" : "%.0f", value);
	return text;
}

static void draw_values(const struct view *view, const struct values *values)
{
	char text[TEXT_SIZE];

	fputs("<dl>\n", view->to);
	page_item(view->to, "Smallest", value_text(text, values, values->min));
	page_item(view->to, "Largest", value_text(text, values, values->max));
	if (values->distinct > DISTINCT_MAX)
		snprintf(text, sizeof(text), "over %u", DISTINCT_MAX);
	else
		text_count(text, values->distinct);
	page_item(view->to, "Distinct values", text);
	if (values->odd)
		page_item(view->to, "No number, or infinite", text_count(text, values->odd));
	fputs("</dl>\n", view->to);
	if (!(values->max > values->min))
		return;
	fputs("<div class=plot>\n", view->to);
	page_drawing(view->to, "small", 100, "samples by value");
	page_bars(view->to, "bar", values->bars, BARS);
	fputs("</svg></div>\n", view->to);
	page_ticks_begin(view->to);
	page_tick(view->to, 0, value_text(text, values, values->min));
	page_tick(view->to, 1, value_text(text, values, values->max));
	page_ticks_end(view->to);
}

static int show_values(const struct view *view, uint32_t index, bool real)
{
	struct values values = {.real = real};
	int error;

	values.table = calloc(TABLE_SIZE, sizeof(*values.table));
	if (!values.table)
		return 0;
	error = each(view->ds, index, &values, add_span);
	if (!error && values.max > values.min)
		error = each(view->ds, index, &values, add_bar);
	if (!error && values.count)
		draw_values(view, &values);
	free(values.table);
	return error;
}

/* ---- classes ---------------------------------------------------------------------- */

struct class {
	const char *name; /* NULL: of those without one */
	uint64_t count;
};

static int larger(const void *a, const void *b)
{
	const struct class *one = a, *other = b;

	if (one->count == other->count)
		return one < other ? -1 : 1;
	return one->count > other->count ? -1 : 1;
}

static void show_class(const struct view *view, const struct class *class, uint64_t max)
{
	char text[TEXT_SIZE];

	fputs("<span>", view->to);
	if (class->name)
		page_bytes(view->to, class->name, strlen(class->name));
	else
		fputs("<i>none</i>", view->to);
	fprintf(view->to, "</span><b style=\"width:%.2f%%\"></b><span>%s</span>\n",
		max ? 100 * (double)class->count / (double)max : 0,
		text_count(text, class->count));
}

/* Of many, those at both ends. */
static void draw_classes(const struct view *view, struct class *classes, uint32_t count)
{
	const bool few = count <= CLASSES_MAX;
	char text[TEXT_SIZE];
	uint64_t max = 0;

	for (uint32_t i = 0; i < count; i++)
		max = classes[i].count > max ? classes[i].count : max;
	if (!few)
		qsort(classes, count, sizeof(*classes), larger);
	fputs("<div class=classes>\n", view->to);
	for (uint32_t i = 0; i < (few ? count : CLASSES_MAX / 2); i++)
		show_class(view, &classes[i], max);
	fputs("</div>\n", view->to);
	if (few)
		return;
	fprintf(view->to, "<p class=note>and %s more, the smallest of them:</p>\n"
		"<div class=classes>\n", text_count(text, count - CLASSES_MAX / 2));
	for (uint32_t i = count - CLASSES_MAX / 2; i < count; i++)
		show_class(view, &classes[i], max);
	fputs("</div>\n", view->to);
}

static int show_classes(const struct view *view, uint32_t index,
			const struct stele_field *field)
{
	const size_t count = (size_t)field->name_count + 1;
	uint64_t *counts = calloc(count, sizeof(*counts));
	struct class *classes = calloc(count, sizeof(*classes));
	int error = 0;

	if (counts && classes)
		error = columns_count(view->ds, index, field, counts);
	if (counts && classes && !error) {
		for (size_t i = 0; i < count; i++)
			classes[i] = (struct class){i + 1 < count ? field->names[i] : NULL,
						    counts[i]};
		draw_classes(view, classes, field->name_count + (counts[count - 1] > 0));
	}
	free(classes);
	free(counts);
	return error;
}

static void show_field(struct view *view, uint32_t index)
{
	struct stele_field field = {.size = sizeof(field)};
	const bool counted = view->info.sample_count <= SHOW_COUNTED_MAX;
	char type[STELE_FIELD_TYPE_SIZE], text[TEXT_SIZE];
	int error = stele_dataset_field(view->ds, index, &field);

	if (error)
		return;
	fputs("<div>\n<h3>", view->to);
	page_bytes(view->to, field.name, strlen(field.name));
	fprintf(view->to, " <span class=\"soft mono\">%s</span></h3>\n",
		stele_field_type(&field, type));
	if (field.name_count)
		fprintf(view->to, "<p class=note>%s class%s</p>\n",
			text_count(text, field.name_count), field.name_count == 1 ? "" : "es");
	else if (field.names_damaged)
		fputs("<p class=note>class names damaged</p>\n", view->to);
	if (field.name_count && counted)
		error = show_classes(view, index, &field);
	else if ((field.type == STELE_TYPE_I64 || field.type == STELE_TYPE_F64) && counted)
		error = show_values(view, index, field.type == STELE_TYPE_F64);
	if (error)
		view_failed(view, error);
	fputs("</div>\n", view->to);
}

void view_fields(struct view *view)
{
	page_section(view->to, "Fields",
		     view->info.sample_count > SHOW_COUNTED_MAX ?
			     "Values are not counted: there are too many samples." : NULL);
	fputs("<div class=cards>\n", view->to);
	for (uint32_t i = 0; i < view->info.field_count; i++)
		show_field(view, i);
	fputs("</div>\n</section>\n", view->to);
}
