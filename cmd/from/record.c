/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - fields that are found on the way, and samples that have some of them
 *
 * In the index: | head | values | key |
 */
#include "from/record.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store.h"

#define NAMES_SIZE_MAX (UINT64_C(16) << 20) /* of the image */
#define BLANKS " \t\r\n"
#define DIM_MAX	       ((UINT64_C(1) << 31) - 1) /* of the image */
#define NUMBER_MAX     64u /* bytes of one that is written out */

/* ---- fields -------------------------------------------------------------- */

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
	for (uint32_t i = 0; i < fields->count; i++) {
		struct record_field *field = &fields->list[i];

		tdestroy(field->known, free);
		for (uint32_t k = 0; k < field->name_count; k++)
			free(field->names[k]);
		free(field->names);
		free(field->named);
		free(field->ranks);
		free(field->sorted);
	}
	memset(fields, 0, sizeof(*fields));
}

/* ---- numbers and classes --------------------------------------------------- */

/* Decimal, or one of the ways in which programs write those that are none. */
static bool is_real(const char *text)
{
	static const char *const others[] = {"nan", "inf", "-inf", "infinity", "-infinity", NULL};

	for (size_t i = 0; others[i]; i++)
		if (!strcasecmp(text, others[i]))
			return true;
	return strspn(text, "+-.0123456789eE") == strlen(text) &&
	       strpbrk(text, "0123456789");
}

int record_number(const char *text, size_t size, int64_t *i64, double *f64)
{
	char copy[NUMBER_MAX + 1], again[32];
	const char *digits;
	char *end;

	if (!size || size > NUMBER_MAX || memchr(text, '\0', size))
		return 0;
	memcpy(copy, text, size);
	copy[size] = '\0';
	if (!is_real(copy))
		return 0;
	/* No integer has that sign. */
	if (!strcmp(copy, "-0")) {
		*f64 = -0.0;
		return 2;
	}
	errno = 0;
	*i64 = strtoll(copy, &end, 10);
	snprintf(again, sizeof(again), "%lld", (long long)*i64);
	if (!*end && !errno && !strcmp(copy, again))
		return 1;
	/* A code such as 007, or longer than an integer is: not to be rounded. */
	digits = copy + strspn(copy, "+-");
	if (strspn(digits, "0123456789") == strlen(digits))
		return 0;
	if (digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9')
		return 0;
	errno = 0;
	*f64 = strtod(copy, &end);
	/* What is beyond an f64, or too close to zero; subnormals are not. */
	if (errno == ERANGE && (isinf(*f64) || *f64 == 0))
		return 0;
	return *end ? 0 : 2;
}

/* A name in the tree. */
struct known {
	const char *name;
	uint32_t index;
};

static int compare_known(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int add_name(struct record_field *field, const char *name, uint64_t *index)
{
	struct known *known;

	if (field->names_size + strlen(name) + 2 > NAMES_SIZE_MAX)
		return -EOVERFLOW;
	if ((field->name_count & (field->name_count - 1)) == 0) {
		const size_t room = field->name_count ? 2u * field->name_count : 1;
		char **names = realloc(field->names, room * sizeof(*names));
		bool *named = realloc(field->named, room * sizeof(*named));

		field->names = names ? names : field->names;
		field->named = named ? named : field->named;
		if (!names || !named)
			return -ENOMEM;
	}
	known = malloc(sizeof(*known));
	field->names[field->name_count] = strdup(name);
	if (known && field->names[field->name_count]) {
		*known = (struct known){field->names[field->name_count], field->name_count};
		if (tsearch(known, &field->known, compare_known)) {
			field->names_size += strlen(name) + 2;
			field->named[field->name_count] = false;
			*index = field->name_count++;
			return 0;
		}
	}
	free(known);
	free(field->names[field->name_count]);
	return -ENOMEM;
}

static size_t without_blanks(const char *text, size_t size)
{
	while (size && strchr(BLANKS, text[size - 1]))
		size--;
	return size;
}

/* Return: as record_class(). */
static int check_name(const char *text, size_t size)
{
	if (memchr(text, '\0', size))
		return -EILSEQ;
	if (size > STELE_KEY_SIZE_MAX)
		return -ENAMETOOLONG;
	return without_blanks(text, size) ? 0 : -EINVAL;
}

/* Blanks around a number mean nothing, those of a name are part of it. As record_number(). */
static int class_number(const char *name, int64_t *i64, double *f64)
{
	const char *digits = name + strspn(name, BLANKS);

	return record_number(digits, without_blanks(digits, strlen(digits)), i64, f64);
}

enum record_class_is record_class_is(const char *name)
{
	int64_t i64;
	double f64;

	if (!without_blanks(name, strlen(name)))
		return RECORD_CLASS_IS_BLANK;
	return class_number(name, &i64, &f64) ? RECORD_CLASS_IS_NUMBER : RECORD_CLASS_IS_NAME;
}

int record_class(struct record_fields *fields, uint32_t number, const char *text,
		 size_t size, struct record_value *out)
{
	static const enum record_kind kinds[] = {RECORD_CLASS, RECORD_CLASS_I64,
						 RECORD_CLASS_F64};
	struct record_field *field = &fields->list[number];
	char name[STELE_KEY_SIZE_MAX + 1];
	struct known **found;
	int ret = check_name(text, size);

	if (ret)
		return ret;
	memcpy(name, text, size);
	name[size] = '\0';
	*out = (struct record_value){.field = number};
	out->kind = kinds[class_number(name, &out->number.i64, &out->number.f64)];
	found = tfind(&(struct known){.name = name}, &field->known, compare_known);
	if (found)
		out->place = (*found)->index;
	else
		ret = add_name(field, name, &out->place);
	if (ret == -EOVERFLOW && out->kind != RECORD_CLASS) {
		field->names_lost = true; /* no harm, unless others are names */
		return 0;
	}
	return ret;
}

/* Without blanks at either end. */
static int compare_meant(const char *a, const char *b)
{
	size_t m, n;
	int order;

	a += strspn(a, BLANKS);
	b += strspn(b, BLANKS);
	m = without_blanks(a, strlen(a));
	n = without_blanks(b, strlen(b));
	order = memcmp(a, b, m < n ? m : n);
	return order ? order : (m > n) - (m < n);
}

static int by_meaning(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int order = compare_meant(x, y);

	return order ? order : strcmp(x, y);
}

static int by_meaning_only(const void *a, const void *b)
{
	return compare_meant(*(const char *const *)a, *(const char *const *)b);
}

/* Return: a copy, by meaning; NULL: no memory. */
static const char **sorted_names(const char *const *names, uint32_t count)
{
	const char **copy = calloc(count + 1u, sizeof(*copy));

	if (copy && count) {
		memcpy(copy, names, count * sizeof(*copy));
		qsort(copy, count, sizeof(*copy), by_meaning);
	}
	return copy;
}

int record_alike(const struct record_field *field, const struct stele_field *base,
		 const char *alike[2])
{
	const uint32_t count = field->texts ? field->field.name_count : 0;
	const uint32_t there = base ? base->name_count : 0;
	const char **names = sorted_names(field->field.names, count), **others = NULL;
	int found = names ? 0 : -ENOMEM;

	if (there && !found) {
		others = sorted_names(base->names, there);
		found = others ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; i < count && !found; i++) {
		const char **other = others ? bsearch(&names[i], others, there, sizeof(*others),
						      by_meaning_only) : NULL;

		if (other && bsearch(&names[i], others, there, sizeof(*others), by_meaning))
			other = NULL;
		if (!other && i && !compare_meant(names[i - 1], names[i]))
			other = &names[i - 1];
		found = other != NULL;
		alike[0] = other ? *other : NULL;
		alike[1] = names[i];
	}
	free(names);
	free(others);
	return found;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names get the numbers of a sorted list, whatever order they came in. */
static int sort_names(struct record_field *field)
{
	uint32_t count = 0;

	field->sorted = calloc(field->name_count, sizeof(*field->sorted));
	field->ranks = calloc(field->name_count, sizeof(*field->ranks));
	if (!field->sorted || !field->ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < field->name_count; i++)
		if (field->named[i])
			field->sorted[count++] = field->names[i];
	qsort(field->sorted, count, sizeof(*field->sorted), compare_texts);
	for (uint32_t i = 0; i < count; i++) {
		struct known **known = tfind(&(struct known){.name = field->sorted[i]},
					     &field->known, compare_known);

		field->ranks[(*known)->index] = i;
	}
	field->field.names = (const char *const *)field->sorted;
	field->field.name_count = count;
	return 0;
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

/* A sample has it: what follows for its type? */
static void see(struct record_field *field, const struct record_value *value, uint64_t origin)
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
			return sort_names(field);
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
	return field->name_count ? sort_names(field) : 0;
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

/* ---- samples ------------------------------------------------------------- */

/* Of a sample in the index. */
struct head {
	uint32_t count, key_size;
	uint64_t origin;
	int64_t changed;
};

#define FIXED_MAX (sizeof(struct head) + STELE_KEY_SIZE_MAX + \
		   STELE_FIELDS_MAX * sizeof(struct record_value))
#define FIXED_USUAL 512 /* bytes that are read at first */

static bool is_scalar(uint32_t type)
{
	return type == STELE_TYPE_I64 || type == STELE_TYPE_F64;
}

bool record_has(const struct record *record, uint32_t field)
{
	for (uint32_t i = 0; i < record->count; i++)
		if (record->values[i].field == field)
			return true;
	return false;
}

int record_append(struct store *index, const struct record *record, const char *key,
		  size_t key_size, uint64_t origin)
{
	const struct head head = {record->count, (uint32_t)key_size, origin,
				  record->changed};
	int ret = store_append(index, &head, sizeof(head));

	if (!ret)
		ret = store_append(index, record->values,
				   record->count * sizeof(*record->values));
	return ret ? ret : store_append(index, key, key_size);
}

int record_keep(struct store *index, struct record_fields *fields,
		const struct record *record, const char *key, size_t key_size,
		uint64_t origin)
{
	int ret = record_append(index, record, key, key_size, origin);

	if (ret)
		return ret;
	fields->samples++;
	for (uint32_t i = 0; i < record->count; i++)
		see(&fields->list[record->values[i].field], &record->values[i], origin);
	return 0;
}

/* Also one that becomes a tensor. */
static bool is_number(const struct record_value *value)
{
	return value->kind == RECORD_I64 || value->kind == RECORD_U64;
}

static uint64_t bytes_of(const struct record_field *field, const struct record_value *value)
{
	const bool empty = value->kind == RECORD_LIST_EMPTY && field->family == RECORD_FAMILY_JSON;

	if (is_number(value))
		return sizeof(value->number);
	return value->kind == RECORD_FILE || empty ? (uint64_t)value->number.i64 : value->size;
}

/* Return: 0; -EIO (it is not all there); errors of the store. */
static int read_fixed(const struct store *index, uint64_t offset, struct head *head,
		      uint8_t data[FIXED_MAX])
{
	size_t size = sizeof(*head);
	int64_t got = store_read(index, offset, data, FIXED_USUAL);

	if (got < (int64_t)size)
		return got < 0 ? (int)got : -EIO;
	memcpy(head, data, size);
	if (head->count > STELE_FIELDS_MAX || head->key_size > STELE_KEY_SIZE_MAX)
		return -EIO;
	size += head->count * sizeof(struct record_value) + head->key_size;
	if ((size_t)got < size && got == FIXED_USUAL)
		got = store_read(index, offset, data, size);
	return got < 0 ? (int)got : (size_t)got < size ? -EIO : 0;
}

int record_load(const struct store *index, const struct record_fields *fields,
		uint64_t offset, struct record_entry *out)
{
	struct record *record = &out->record;
	uint8_t data[FIXED_MAX];
	struct head head = {0};
	size_t at = sizeof(head);
	int ret = read_fixed(index, offset, &head, data);

	if (ret)
		return ret;
	memcpy(record->values, data + at, head.count * sizeof(*record->values));
	at += head.count * sizeof(*record->values);
	memcpy(out->key, data + at, head.key_size);
	record->count = head.count;
	record->changed = head.changed;
	out->origin = head.origin;
	out->key_size = head.key_size;
	out->next = offset + at + head.key_size;
	out->data_size = 0;
	for (uint32_t i = 0; i < head.count; i++) {
		const struct record_value *value = &record->values[i];

		if (!is_scalar(fields->list[value->field].field.type))
			out->data_size += bytes_of(&fields->list[value->field], value);
	}
	return 0;
}

static void set_number(const struct record_field *field, const struct record_value *value,
		       union stele_value *out)
{
	const bool integer = value->kind == RECORD_I64 || value->kind == RECORD_CELL_I64 ||
			     value->kind == RECORD_CLASS_I64 ||
			     value->kind == RECORD_LIST_I64;

	if (field->ranks)
		out->i64 = field->ranks[value->place];
	else if (field->field.type == STELE_TYPE_I64)
		out->i64 = value->number.i64;
	else
		out->f64 = integer ? (double)value->number.i64 :
			   value->kind == RECORD_U64 ? (double)value->number.u64 :
						       value->number.f64;
}

void record_values(const struct record_fields *fields, const struct record *record,
		   union stele_value *values, struct record_piece pieces[STELE_FIELDS_MAX])
{
	memset(pieces, 0, STELE_FIELDS_MAX * sizeof(*pieces));
	for (uint32_t i = 0; i < fields->schema_count; i++) {
		values[i] = (union stele_value){0};
		if (fields->schema[i].type == STELE_TYPE_I64)
			values[i].i64 = -1;
		else if (fields->schema[i].type == STELE_TYPE_F64)
			values[i].f64 = (double)NAN;
	}
	for (uint32_t i = 0; i < record->count; i++) {
		const struct record_value *value = &record->values[i];
		const struct record_field *field = &fields->list[value->field];
		const uint32_t at = fields->index[value->field];

		if (is_scalar(field->field.type)) {
			set_number(field, value, &values[at]);
			continue;
		}
		values[at].size = bytes_of(field, value);
		pieces[at] = (struct record_piece){
			.place = value->place, .size = values[at].size,
			.path_size = value->kind == RECORD_FILE ? value->size : 0,
			.held = is_number(value), .number = value->number.u64,
			.converts = (value->kind == RECORD_LIST_I64 ||
				     value->kind == RECORD_LIST_U64) &&
				    field->field.dtype == STELE_DTYPE_F64,
			.is_unsigned = value->kind == RECORD_LIST_U64};
	}
}
