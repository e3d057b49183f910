/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.c - intervals out of comparisons, and blocks of values against them
 *
 * The loops have no branch that depends on a value: selective or not, a value takes about
 * a nanosecond.
 */
#include "lib/query/bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define I64_END		9223372036854775808.0 /* 2^63: the first double above all i64 */
#define F64_EXACT_MAX	(INT64_C(1) << 53)    /* up to here each i64 is a double */

void stele_bounds_init(struct stele_bounds *bounds, uint32_t field, bool is_f64)
{
	*bounds = (struct stele_bounds){
		.field = field,
		.is_f64 = is_f64,
		.low = INT64_MIN,
		.high = INT64_MAX,
		.f_low = -INFINITY,
		.f_high = INFINITY,
	};
}

void stele_bounds_release(struct stele_bounds *bounds)
{
	free(bounds->list);
	bounds->list = NULL;
	bounds->list_count = 0;
}

/* ---- from comparisons ------------------------------------------------------------- */

static void set_empty(struct stele_bounds *b)
{
	b->low = INT64_MAX;
	b->high = INT64_MIN;
	b->f_low = INFINITY;
	b->f_high = -INFINITY;
}

static void raise_i64(struct stele_bounds *b, int64_t low)
{
	b->low = low > b->low ? low : b->low;
}

static void lower_i64(struct stele_bounds *b, int64_t high)
{
	b->high = high < b->high ? high : b->high;
}

static void clip_f64(struct stele_bounds *b, double low, double high)
{
	b->f_low = low > b->f_low ? low : b->f_low;
	b->f_high = high < b->f_high ? high : b->f_high;
}

/* An f64 against an integer, which may lie between two doubles. */
static void add_between(struct stele_bounds *b, enum stele_bounds_op op, double value)
{
	const bool below = op == STELE_BOUNDS_LE || op == STELE_BOUNDS_LT;
	const bool above = op == STELE_BOUNDS_GE || op == STELE_BOUNDS_GT;

	clip_f64(b, below ? -INFINITY : nextafter(value, -INFINITY),
		 above ? INFINITY : nextafter(value, INFINITY));
}

void stele_bounds_add_i64(struct stele_bounds *b, enum stele_bounds_op op, int64_t value)
{
	if (b->is_f64 && (value > F64_EXACT_MAX || value < -F64_EXACT_MAX)) {
		add_between(b, op, (double)value);
		return;
	}
	if (b->is_f64) {
		stele_bounds_add_f64(b, op, (double)value);
		return;
	}
	if ((op == STELE_BOUNDS_GT && value == INT64_MAX) ||
	    (op == STELE_BOUNDS_LT && value == INT64_MIN)) {
		set_empty(b);
		return;
	}
	if (op == STELE_BOUNDS_EQ || op == STELE_BOUNDS_GE || op == STELE_BOUNDS_GT)
		raise_i64(b, value + (op == STELE_BOUNDS_GT));
	if (op == STELE_BOUNDS_EQ || op == STELE_BOUNDS_LE || op == STELE_BOUNDS_LT)
		lower_i64(b, value - (op == STELE_BOUNDS_LT));
}

/* An i64 against a double: the integers next to it. */
static void add_rounded(struct stele_bounds *b, enum stele_bounds_op op, double value)
{
	const bool whole = floor(value) == value;

	if (value >= I64_END || value < -I64_END) {
		/* All are on one side of it. */
		const bool is_above = value >= I64_END;

		if (op == STELE_BOUNDS_EQ ||
		    is_above == (op == STELE_BOUNDS_GE || op == STELE_BOUNDS_GT))
			set_empty(b);
		return;
	}
	if (whole)
		stele_bounds_add_i64(b, op, (int64_t)value);
	else if (op == STELE_BOUNDS_EQ)
		set_empty(b);
	else if (op == STELE_BOUNDS_GE || op == STELE_BOUNDS_GT)
		raise_i64(b, (int64_t)ceil(value));
	else
		lower_i64(b, (int64_t)floor(value));
}

void stele_bounds_add_f64(struct stele_bounds *b, enum stele_bounds_op op, double value)
{
	if (isnan(value))
		return;
	if (!b->is_f64) {
		add_rounded(b, op, value);
		return;
	}
	/* Nothing is next to an infinity. */
	if ((op == STELE_BOUNDS_GT && value == INFINITY) ||
	    (op == STELE_BOUNDS_LT && value == -INFINITY))
		set_empty(b);
	switch (op) {
	case STELE_BOUNDS_EQ:
		clip_f64(b, value, value);
		break;
	case STELE_BOUNDS_GE:
		clip_f64(b, value, INFINITY);
		break;
	case STELE_BOUNDS_GT:
		clip_f64(b, nextafter(value, INFINITY), INFINITY);
		break;
	case STELE_BOUNDS_LE:
		clip_f64(b, -INFINITY, value);
		break;
	case STELE_BOUNDS_LT:
		clip_f64(b, -INFINITY, nextafter(value, -INFINITY));
		break;
	}
}

static int by_value(const void *a, const void *b)
{
	int64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

/* A second list narrows the interval alone. */
void stele_bounds_add_list(struct stele_bounds *b, int64_t *list, size_t count)
{
	if (!count) {
		set_empty(b);
		free(list);
		return;
	}
	qsort(list, count, sizeof(*list), by_value);
	raise_i64(b, list[0]);
	lower_i64(b, list[count - 1]);
	if (b->list) {
		free(list);
		return;
	}
	b->list = list;
	b->list_count = count;
}

/* ---- values against them ------------------------------------------------------------ */

static double as_f64(le64 value)
{
	const uint64_t bits = le64_get(value);
	double f64;

	memcpy(&f64, &bits, sizeof(f64));
	return f64;
}

bool stele_bounds_meet(const struct stele_bounds *b, const struct stele_disk_column *column)
{
	if (b->is_f64)
		return as_f64(column->min) <= b->f_high && as_f64(column->max) >= b->f_low;
	return (int64_t)le64_get(column->min) <= b->high &&
	       (int64_t)le64_get(column->max) >= b->low && b->low <= b->high;
}

static bool is_listed(const struct stele_bounds *b, int64_t value)
{
	const int64_t *from = b->list;
	size_t count = b->list_count;

	while (count > 1) {
		const size_t half = count / 2;

		from = from[half] <= value ? from + half : from;
		count -= half;
	}
	return *from == value;
}

size_t stele_bounds_keep(const struct stele_bounds *b, const struct stele_disk_column *column,
			 uint64_t first, const uint64_t *numbers, size_t count, uint64_t *kept)
{
	const uint64_t span = (uint64_t)b->high - (uint64_t)b->low;
	size_t n = 0;

	for (size_t i = 0; i < count && b->is_f64; i++) {
		const double value = as_f64(column->values[numbers[i] - first]);

		kept[n] = numbers[i];
		n += (value >= b->f_low) & (value <= b->f_high);
	}
	for (size_t i = 0; i < count && !b->is_f64; i++) {
		const uint64_t value = le64_get(column->values[numbers[i] - first]);

		kept[n] = numbers[i];
		n += value - (uint64_t)b->low <= span;
	}
	if (!b->list)
		return n;
	count = n;
	n = 0;
	for (size_t i = 0; i < count; i++) {
		const uint64_t value = le64_get(column->values[kept[i] - first]);

		kept[n] = kept[i];
		n += is_listed(b, (int64_t)value);
	}
	return n;
}
