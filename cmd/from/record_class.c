/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_class.c - texts that are numbers, and names of classes
 */
#include "from/record.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_SIZE_MAX (UINT64_C(16) << 20) /* of the image */
#define BLANKS " \t\r\n"
#define NUMBER_MAX 64u /* bytes of one that is written out */

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

int record_sort_names(struct record_field *field)
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

void record_names_release(struct record_field *field)
{
	tdestroy(field->known, free);
	for (uint32_t i = 0; i < field->name_count; i++)
		free(field->names[i]);
	free(field->names);
	free(field->named);
	free(field->ranks);
	free(field->sorted);
}
