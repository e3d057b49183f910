/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_fields.c - what the digests of samples do not tell: two snapshots may have the same
 * numbers, and mean other classes by them
 */
#include "lib/ops/diff_fields.h"

#include <inttypes.h>
#include <string.h>

#include "lib/read/classes.h"

/* A field of both. */
struct pair {
	const struct stele_diff_sides *sides;
	const struct stele_log *log;
	struct stele_field field[2];
};

/* Return: 1: a class has two names, or one side none at all (said); 0. */
static int log_renamed(const struct pair *pair)
{
	const struct stele_field *a = &pair->field[0], *b = &pair->field[1];
	const char *const *target = pair->sides->target;
	int64_t number;

	if (!a->name_count != !b->name_count) {
		stele_log_warning(pair->log, "field '%s' has class names only in '%s'", a->name,
				  target[!a->name_count]);
		return 1;
	}
	number = stele_classes_differ(a, b);
	if (number < 0)
		return 0;
	stele_log_warning(pair->log,
			  "class %" PRIi64 " of field '%s' is '%s' in '%s', and '%s' in '%s'",
			  number, a->name, a->names[number], target[0], b->names[number],
			  target[1]);
	return 1;
}

static int differ(const struct pair *pair)
{
	const struct stele_field *a = &pair->field[0], *b = &pair->field[1];
	const char *const *target = pair->sides->target;
	char type[2][STELE_FIELD_TYPE_SIZE];

	stele_field_type(a, type[0]);
	stele_field_type(b, type[1]);
	if (strcmp(type[0], type[1]) != 0) {
		stele_log_warning(pair->log, "field '%s' is %s in '%s', and %s in '%s'", a->name,
				  type[0], target[0], type[1], target[1]);
		return 1;
	}
	if (a->names_damaged || b->names_damaged)
		return 0;
	if (log_renamed(pair))
		return 1;
	if (a->name_count != b->name_count)
		stele_log_info(pair->log,
			       "field '%s' has %" PRIu32 " classes in '%s', and %" PRIu32
			       " in '%s'", a->name, a->name_count, target[0], b->name_count,
			       target[1]);
	return a->name_count != b->name_count;
}

static uint32_t field_count(const struct stele_dataset *ds)
{
	struct stele_dataset_info info = {.size = sizeof(info)};

	return stele_dataset_info(ds, &info) ? 0 : info.field_count;
}

/* Those of one side. The other's count if that lacks them; what both have counts once. */
static uint64_t compare(const struct stele_diff_sides *sides, int side)
{
	const struct stele_dataset *ds = sides->side[side];
	struct pair pair = {.sides = sides, .log = &sides->side[0]->image.log};
	uint64_t count = 0;

	for (uint32_t i = 0; i < field_count(ds); i++) {
		struct stele_field *field = &pair.field[side];

		field->size = sizeof(*field);
		if (stele_dataset_field(ds, i, field))
			continue;
		if (!stele_field_find(sides->side[!side], field->name, &pair.field[!side])) {
			stele_log_warning(pair.log, "only '%s' has the field '%s'",
					  sides->target[side], field->name);
			count++;
		} else if (!side && differ(&pair)) {
			count++;
		}
	}
	return count;
}

uint64_t stele_diff_fields(const struct stele_diff_sides *sides)
{
	for (int side = 0; side < 2; side++)
		if (!stele_dataset_count(sides->side[side]))
			return 0;
	return compare(sides, 0) + compare(sides, 1);
}
