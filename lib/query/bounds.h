/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.h - what comparisons with constants leave of the values of a scalar field
 *
 * A closed interval, and for integers a list of values, too. It never leaves out a value for
 * which all comparisons hold; where SQL's answer differs from C's it is wider, because SQLite
 * checks again what it gets. A NaN is NULL in SQL, and within no bounds.
 */
#ifndef STELE_QUERY_BOUNDS_H
#define STELE_QUERY_BOUNDS_H

#include <stdbool.h>

#include "format/sections.h"

enum stele_bounds_op {
	STELE_BOUNDS_EQ,
	STELE_BOUNDS_GE,
	STELE_BOUNDS_GT,
	STELE_BOUNDS_LE,
	STELE_BOUNDS_LT,
};

struct stele_bounds {
	uint32_t field;
	bool is_f64;
	int64_t low, high;   /* of i64; low > high: no value */
	double f_low, f_high; /* of f64 */
	int64_t *list;	     /* owned, ascending, all of low ... high; NULL: any of these */
	size_t list_count;
};

void stele_bounds_init(struct stele_bounds *bounds, uint32_t field, bool is_f64);
/* Idempotent on a zeroed struct. */
void stele_bounds_release(struct stele_bounds *bounds);

/* Narrow them by one comparison. */
void stele_bounds_add_i64(struct stele_bounds *bounds, enum stele_bounds_op op, int64_t value);
void stele_bounds_add_f64(struct stele_bounds *bounds, enum stele_bounds_op op, double value);
/* To one of `count` values of an i64; takes `list`, which is malloced. */
void stele_bounds_add_list(struct stele_bounds *bounds, int64_t *list, size_t count);

/* False: the summary of a block says that none of its values is within. */
bool stele_bounds_meet(const struct stele_bounds *bounds, const struct stele_disk_column *column);
/*
 * Of `count` numbers whose values are in the block that begins with number `first`, keep
 * those within, in order. Return: how many.
 */
size_t stele_bounds_keep(const struct stele_bounds *bounds,
			 const struct stele_disk_column *column, uint64_t first,
			 const uint64_t *numbers, size_t count, uint64_t *kept);

#endif
