/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fields.c - fields that are found on the way, and what type each has in the end
 */
#include "from/record.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define DIM_MAX ((UINT64_C(1) << 31) - 1) /* of the image */

/* As the image wants it: what may not be in a name becomes '_'. */
static bool take_name(char out[STELE_NAME_SIZE_MAX + 1], const char *name, size_t size)
{
	if (!size || size > STELE_NAME_SIZE_MAX)
		return false;
	memset(out, 0, STELE_NAME_SIZE_MAX + 1);
	for (size_t i = 0; i < size; i++) {
		const char c = name[i];
		const bool inner = c == '.' || c == '-';

		out[i] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
					 (c >= '0' && c <= '9') || (inner && i) ?
				 c : '_';
	}
	return true;
}

static int find(const struct record_fields *fields, const char *name)
{
	for (uint32_t i = 0; i < fields->count; i++)
		if (!strcmp(fields->list[i].field.name, name))
			return (int)i;
	return -1;
}

const struct record_field *record_find(const struct record_fields *fields, const char *name,
				       size_t size)
{
	char wanted[STELE_NAME_SIZE_MAX + 1];
	int known = take_name(wanted, name, size) ? find(fields, wanted) : -1;

	return known < 0 ? NULL : &fields->list[known];
}

/* Lists of JSON without elements go with others, whichever came first. */
static bool join(struct record_field *field, enum record_family family)
{
	const bool lists = field->family == RECORD_FAMILY_LIST ||
			   field->family == RECORD_FAMILY_JSON;

	if (field->family == RECORD_FAMILY_EMPTY &&
	    (family == RECORD_FAMILY_LIST || family == RECORD_FAMILY_JSON))
		field->family = family;
	return field->family == family || (lists && family == RECORD_FAMILY_EMPTY);
}

const char *record_family_words(enum record_family family)
{
	static const char *const words[] = {
		[RECORD_FAMILY_BYTES] = "bytes", [RECORD_FAMILY_TEXT] = "text",
		[RECORD_FAMILY_JSON] = "a list or an object", [RECORD_FAMILY_NUMBER] = "a number",
		[RECORD_FAMILY_CELL] = "a cell", [RECORD_FAMILY_CLASS] = "a class",
		[RECORD_FAMILY_LIST] = "a list of numbers", [RECORD_FAMILY_EMPTY] = "a list",
		[RECORD_FAMILY_ROW] = "an array"};

	return words[family];
}

int record_field(struct record_fields *fields, const char *name, size_t size,
		 enum record_family family)
{
	char wanted[STELE_NAME_SIZE_MAX + 1];
	struct record_field *field;
	int known;

	if (!take_name(wanted, name, size))
		return -EINVAL;
	known = find(fields, wanted);
	if (known >= 0)
		return join(&fields->list[known], family) ? known : -EPROTOTYPE;
	if (fields->count == STELE_FIELDS_MAX)
		return -EOVERFLOW;
	field = &fields->list[fields->count];
	*field = (struct record_field){
		.field = {.size = sizeof(field->field)}, .family = family,
		.least = UINT64_MAX};
	memcpy(field->field.name, wanted, sizeof(wanted));
	return (int)fields->count++;
}

void record_fields_release(struct record_fields *fields)
{
	for (uint32_t i = 0; i < fields->count; i++)
		record_names_release(&fields->list[i]);
	memset(fields, 0, sizeof(*fields));
}

/* ---- types --------------------------------------------------------------- */

bool record_is_large(int64_t value)
{
	const double f64 = (double)value;

	return f64 >= 0x1p63 || (int64_t)f64 != value;
}

bool record_is_large_u64(uint64_t value)
{
	const double f64 = (double)value;

	return f64 >= 0x1p64 || (uint64_t)f64 != value;
}

void record_note_large(struct record_field *field, uint64_t origin)
{
	if (!field->large)
		field->large_at = origin;
	field->large = true;
}

static void see_list(struct record_field *field, const struct record_value *value)
{
	static const uint8_t dtypes[] = {[RECORD_LIST_I64] = STELE_DTYPE_I64,
					 [RECORD_LIST_U64] = STELE_DTYPE_U64,
					 [RECORD_LIST_F32] = STELE_DTYPE_F32,
					 [RECORD_LIST_F64] = STELE_DTYPE_F64};
	const uint64_t count = value->size / (value->kind == RECORD_LIST_F32 ? 4 : 8);

	if (value->kind != RECORD_LIST_EMPTY && field->dtype != STELE_DTYPE_F64 &&
	    (value->kind != RECORD_LIST_I64 || field->dtype != STELE_DTYPE_U64))
		field->dtype = dtypes[value->kind];
	field->least = count < field->least ? count : field->least;
	field->most = count > field->most ? count : field->most;
}

void record_see(struct record_field *field, const struct record_value *value, uint64_t origin)
{
	field->count++;
	if (field->family == RECORD_FAMILY_CLASS && field->name_count)
		field->named[value->place] = true;
	switch (value->kind) {
	case RECORD_CELL:
	case RECORD_CLASS:
		field->texts = true;
		break;
	case RECORD_F64:
	case RECORD_CELL_F64:
	case RECORD_CLASS_F64:
		field->reals = true;
		break;
	case RECORD_I64:
	case RECORD_CELL_I64:
	case RECORD_CLASS_I64:
		if (record_is_large(value->number.i64))
			record_note_large(field, origin);
		field->negative |= value->number.i64 < 0;
		break;
	case RECORD_U64:
		if (record_is_large_u64(value->number.u64))
			record_note_large(field, origin);
		field->huge = true;
		break;
	case RECORD_LIST_EMPTY:
	case RECORD_LIST_I64:
	case RECORD_LIST_U64:
	case RECORD_LIST_F32:
	case RECORD_LIST_F64:
		see_list(field, value);
		break;
	}
}

/* Return: 0; -ERANGE. */
static int resolve_list(struct record_field *field, bool all)
{
	struct stele_field *out = &field->field;
	const bool same = all && field->least == field->most && field->most <= DIM_MAX;

	if (field->single && same && field->most == 1) {
		out->type = field->dtype == STELE_DTYPE_I64 ? STELE_TYPE_I64 :
							      STELE_TYPE_F64;
		return 0;
	}
	if (field->dtype == STELE_DTYPE_U64 && field->negative)
		field->dtype = STELE_DTYPE_F64;
	out->type = STELE_TYPE_TENSOR;
	out->dtype = field->dtype ? field->dtype : STELE_DTYPE_I64;
	out->rank = 1;
	out->dims[0] = same ? (uint32_t)field->most : 0;
	return out->dtype == STELE_DTYPE_F64 && field->large ? -ERANGE : 0;
}

static void make_u64(struct stele_field *field)
{
	field->type = STELE_TYPE_TENSOR;
	field->dtype = STELE_DTYPE_U64;
	field->rank = 0;
}

/* Return: 0; -ERANGE. */
static int resolve_numbers(struct record_field *field, bool all)
{
	const bool f64 = field->reals || !all || (field->huge && field->negative);

	if (field->huge && !f64)
		make_u64(&field->field);
	else
		field->field.type = f64 ? STELE_TYPE_F64 : STELE_TYPE_I64;
	return f64 && field->large ? -ERANGE : 0;
}

static int resolve(struct record_field *field, uint64_t samples)
{
	const bool all = field->count == samples;
	uint32_t *type = &field->field.type;

	switch (field->family) {
	case RECORD_FAMILY_BYTES:
		*type = STELE_TYPE_BYTES;
		return 0;
	case RECORD_FAMILY_NUMBER:
		return resolve_numbers(field, all);
	case RECORD_FAMILY_CELL:
		if (field->texts || !field->count || resolve_numbers(field, all))
			*type = STELE_TYPE_UTF8;
		return 0;
	case RECORD_FAMILY_CLASS:
		*type = field->reals && !field->texts ? STELE_TYPE_F64 : STELE_TYPE_I64;
		if (field->texts && field->names_lost)
			return -EOVERFLOW;
		if (field->texts)
			return record_sort_names(field);
		return *type == STELE_TYPE_F64 && field->large ? -ERANGE : 0;
	case RECORD_FAMILY_LIST:
	case RECORD_FAMILY_EMPTY:
		return resolve_list(field, all);
	case RECORD_FAMILY_ROW:
		*type = STELE_TYPE_TENSOR;
		return 0;
	default:
		*type = STELE_TYPE_UTF8;
		return 0;
	}
}

int record_resolve(struct record_fields *fields, const struct record_field **field)
{
	int ret = 0;

	for (uint32_t i = 0; i < fields->count && !ret; i++) {
		*field = &fields->list[i];
		ret = resolve(&fields->list[i], fields->samples);
	}
	return ret;
}

/* ---- schema -------------------------------------------------------------- */

static bool is_integer(uint32_t dtype)
{
	return dtype == STELE_DTYPE_I64 || dtype == STELE_DTYPE_U64;
}

/*
 * Lists of one length fit where lengths differ, and integers reals: --type is not for lists.
 * Without elements they fit any dtype.
 */
static void fit_list(struct record_field *field, const struct stele_field *base)
{
	struct stele_field *own = &field->field;

	if ((field->family != RECORD_FAMILY_LIST && field->family != RECORD_FAMILY_EMPTY) ||
	    own->type != STELE_TYPE_TENSOR || base->type != STELE_TYPE_TENSOR || base->rank != 1)
		return;
	if (!base->dims[0])
		own->dims[0] = 0;
	if (!field->dtype || (is_integer(own->dtype) && base->dtype == STELE_DTYPE_F64 &&
			      !field->large) ||
	    (own->dtype == STELE_DTYPE_I64 && base->dtype == STELE_DTYPE_U64 && !field->negative))
		own->dtype = base->dtype;
}

/* Where the base has names, numbers are names, too: not those of its classes. */
static int fit_class(struct record_field *field, const struct stele_field *base)
{
	if (!base->name_count)
		return 0;
	if (field->family != RECORD_FAMILY_CLASS)
		return -EOPNOTSUPP;
	if (field->texts)
		return 0;
	if (field->names_lost)
		return -EOVERFLOW;
	field->texts = true;
	field->field.type = STELE_TYPE_I64;
	return field->name_count ? record_sort_names(field) : 0;
}

/* First those of the base, in its order; the library refuses what it lacks. */
static int take_base(struct record_fields *fields, const struct stele_schema *base, bool lacks,
		     bool taken[STELE_FIELDS_MAX], const char **name)
{
	const char *at = base ? (const char *)base->fields : NULL;

	for (uint32_t i = 0; at && i < base->count && i < STELE_FIELDS_MAX; i++) {
		struct stele_field *out = &fields->schema[fields->schema_count];
		int number, ret;

		memcpy(out, at + i * base->fields->size, sizeof(*out));
		number = find(fields, out->name);
		*name = out->name;
		if (number < 0 && !lacks)
			return -ENOENT;
		if (number >= 0) {
			fit_list(&fields->list[number], out);
			ret = fit_class(&fields->list[number], out);
			if (ret)
				return ret;
			*out = fields->list[number].field;
			fields->index[number] = fields->schema_count;
			taken[number] = true;
		} else {
			out->names = NULL;
			out->name_count = 0;
		}
		fields->schema_count++;
	}
	return 0;
}

int record_schema(struct record_fields *fields, const struct stele_schema *base, bool lacks,
		  struct stele_schema *out, const char **name)
{
	bool taken[STELE_FIELDS_MAX] = {false};
	int ret;

	fields->schema_count = 0;
	ret = take_base(fields, base, lacks || !fields->samples, taken, name);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < fields->count; i++) {
		if (taken[i])
			continue;
		if (fields->schema_count == STELE_FIELDS_MAX)
			return -EOVERFLOW;
		fields->index[i] = fields->schema_count;
		fields->schema[fields->schema_count++] = fields->list[i].field;
	}
	if (!fields->schema_count) /* of what has no samples: it named none */
		fields->schema[fields->schema_count++] = (struct stele_field){
			.size = sizeof(*fields->schema), .name = "data",
			.type = STELE_TYPE_BYTES};
	out->fields = fields->schema;
	out->count = fields->schema_count;
	return 0;
}
