/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query-bounds.c - bounds against comparisons that are exact
 *
 * A long double holds each i64 and each double, so it says what SQL says.
 */
#include "format/segment.h"
#include "lib/query/bounds.h"
#include "tests/tap.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 20000

_Static_assert(LDBL_MANT_DIG >= 64, "or another way to compare is needed");

static const int64_t integers[] = {
	0, 1, -1, 7, INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1, 1LL << 53,
	(1LL << 53) + 1, (1LL << 53) + 3, -(1LL << 53) - 1, (1LL << 62) + 1,
};
static const double reals[] = {
	0.0, -0.0, 1.0, 0.5, -0.5, 7.0, 1e300, -1e300, INFINITY, -INFINITY, NAN,
	9007199254740992.0, 9007199254740996.0, 9223372036854775808.0, -9223372036854775808.0,
	9223372036854774784.0, 4611686018427387904.0, 5e-324,
};

struct number {
	bool is_f64;
	int64_t i64;
	double f64;
};

static struct number pick(bool is_f64)
{
	struct number n = {.is_f64 = is_f64};

	if (rand() % 2) {
		n.i64 = rand() % 20 - 10;
		n.f64 = (rand() % 80 - 40) / 4.0;
	} else {
		n.i64 = integers[(size_t)rand() % (sizeof(integers) / sizeof(*integers))];
		n.f64 = reals[(size_t)rand() % (sizeof(reals) / sizeof(*reals))];
	}
	return n;
}

static bool holds(struct number a, enum stele_bounds_op op, struct number b)
{
	const long double x = a.is_f64 ? a.f64 : (long double)a.i64;
	const long double y = b.is_f64 ? b.f64 : (long double)b.i64;

	switch (op) {
	case STELE_BOUNDS_EQ:
		return x == y;
	case STELE_BOUNDS_GE:
		return x >= y;
	case STELE_BOUNDS_GT:
		return x > y;
	case STELE_BOUNDS_LE:
		return x <= y;
	default:
		return x < y;
	}
}

/* The block that holds these values, with its summary. */
static void fill(struct stele_disk_column *column, const struct number *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bits = (uint64_t)values[i].i64;

		if (values[i].is_f64)
			memcpy(&bits, &values[i].f64, sizeof(bits));
		column->values[i] = le64_put(bits);
	}
	stele_column_summarise(column, count,
			       values->is_f64 ? STELE_FIELD_F64 : STELE_FIELD_I64);
}

/* Return: 1: one too few; 2: one too many, which costs time; 3: a block, wrongly skipped. */
static int round_of(bool is_f64, unsigned int terms)
{
	struct number values[40], constants[3];
	enum stele_bounds_op ops[3];
	struct stele_disk_column column;
	struct stele_bounds bounds;
	uint64_t numbers[40], kept[40];
	size_t count = 0, wanted = 0;
	bool vague = false;

	stele_bounds_init(&bounds, 0, is_f64);
	for (size_t i = 0; i < 40; i++) {
		values[i] = pick(is_f64);
		numbers[i] = 1000 + i;
	}
	for (unsigned int t = 0; t < terms; t++) {
		constants[t] = pick(rand() % 2);
		ops[t] = (enum stele_bounds_op)(rand() % 5);
		if (constants[t].is_f64)
			stele_bounds_add_f64(&bounds, ops[t], constants[t].f64);
		else
			stele_bounds_add_i64(&bounds, ops[t], constants[t].i64);
		vague |= constants[t].is_f64 ? isnan(constants[t].f64) :
					       is_f64 && llabs(constants[t].i64 / 2) >= 1LL << 52;
	}
	fill(&column, values, 40);
	if (stele_bounds_meet(&bounds, &column))
		count = stele_bounds_keep(&bounds, &column, 1000, numbers, 40, kept);
	for (size_t i = 0, at = 0; i < 40; i++) {
		bool all = true, found = at < count && kept[at] == 1000 + i;

		for (unsigned int t = 0; t < terms; t++)
			all = all && holds(values[i], ops[t], constants[t]);
		wanted += all;
		at += found;
		if (all && !found)
			return count ? 1 : 3;
	}
	return !vague && count > wanted ? 2 : 0;
}

static void test_comparisons(bool is_f64)
{
	unsigned int results[4] = {0};

	for (int i = 0; i < ROUNDS; i++)
		results[round_of(is_f64, 1 + (unsigned int)i % 3)]++;
	is_uint(0, results[1], "%s: none is left out", is_f64 ? "f64" : "i64");
	is_uint(0, results[3], "no block, either");
	is_uint(0, results[2], "none is kept in vain");
}

static void test_lists(void)
{
	unsigned int wrong = 0, found = 0;

	for (int i = 0; i < ROUNDS; i++) {
		const size_t size = (size_t)rand() % 12;
		int64_t *list = calloc(size + 1, sizeof(*list));
		struct stele_disk_column column;
		struct stele_bounds bounds;
		struct number value = pick(false);
		uint64_t number = 3, kept;
		bool there = false, has;

		for (size_t j = 0; j < size; j++) {
			list[j] = pick(false).i64;
			there |= list[j] == value.i64;
		}
		stele_bounds_init(&bounds, 0, false);
		stele_bounds_add_list(&bounds, list, size);
		fill(&column, &value, 1);
		has = stele_bounds_meet(&bounds, &column) &&
		      stele_bounds_keep(&bounds, &column, 3, &number, 1, &kept);
		wrong += has != there;
		found += there;
		stele_bounds_release(&bounds);
	}
	is_uint(0, wrong, "lists: exactly theirs");
	ok(found > 1000, "of which some were there");
}

int main(void)
{
	plan_lazy();
	srand(3);
	test_comparisons(false);
	test_comparisons(true);
	test_lists();
	return done();
}
