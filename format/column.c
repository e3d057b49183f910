/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column.c - blocks of a column, and the summary at the head of each
 *
 * The summary lets a filter skip a block without reading its values. Of equal
 * values that differ in bits (-0.0 and 0.0) it keeps the first.
 */
#include "format/sections.h"

#include "format/decode.h"
#include "format/segment.h"

uint64_t stele_column_blocks(uint64_t count)
{
	return ceil_div(count, STELE_COLUMN_PER_BLOCK);
}

static void summarise_i64(struct stele_disk_column *column, uint32_t count)
{
	int64_t min = INT64_MAX, max = INT64_MIN;

	for (uint32_t i = 0; i < count; i++) {
		int64_t value = (int64_t)le64_get(column->values[i]);

		min = value < min ? value : min;
		max = value > max ? value : max;
	}
	column->min = le64_put((uint64_t)min);
	column->max = le64_put((uint64_t)max);
}

static double f64_get(le64 v)
{
	uint64_t bits = le64_get(v);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static le64 f64_put(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return le64_put(bits);
}

static void summarise_f64(struct stele_disk_column *column, uint32_t count)
{
	double min = __builtin_inf(), max = -__builtin_inf();

	/* A NaN compares false with everything, and so is left out. */
	for (uint32_t i = 0; i < count; i++) {
		double value = f64_get(column->values[i]);

		min = value < min ? value : min;
		max = value > max ? value : max;
	}
	column->min = f64_put(min);
	column->max = f64_put(max);
}

void stele_column_summarise(struct stele_disk_column *column, uint32_t count,
			    uint32_t type)
{
	if (type == STELE_FIELD_F64)
		summarise_f64(column, count);
	else
		summarise_i64(column, count);
}
