/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member_text.c - members by their text: with numbers that the parser does not take
 *
 * The parser's value says what it is, with 0 for each such number.
 */
#include "from/member.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 32u /* bytes of a number in a message */

static int shown(const struct literal *literal)
{
	return (int)(literal->size < SHOWN_MAX ? literal->size : SHOWN_MAX);
}

static int refuse_type(struct row *row, const struct member *m, const char *type)
{
	return from_damaged(row->scan, row->record.offset, "'%s' has a value that is no %s",
			    m->name, type);
}

/* What neither type of numbers holds. */
static int refuse_number(struct row *row, const struct member *m, const struct literal *literal)
{
	const uint64_t offset = m->offset + (uint64_t)(literal->text - m->text);

	if (literal->kind == LITERAL_BEYOND)
		return from_damaged(row->scan, offset, "'%s' has the integer %.*s, beyond 64 bits "
				    "and no f64 (--type=%s:text takes it as text, --type=%s:none "
				    "leaves the column out)", m->name, shown(literal),
				    literal->text, m->name, m->name);
	return from_damaged(row->scan, offset, "real number %s near '%.*s' (--type=%s:text takes "
			    "it as text, --type=%s:none leaves the column out)",
			    literal->kind == LITERAL_OVERFLOW ? "overflow" : "underflow",
			    shown(literal), literal->text, m->name, m->name);
}

static int take_text(struct row *row, const struct member *m, enum record_family family,
		     enum record_kind kind)
{
	char *text = malloc((size_t)(m->end - m->text) + 1);
	int ret;

	if (!text)
		return -ENOMEM;
	ret = row_bytes(row, m->name, m->size, family, kind, text,
			literal_compact(m->text, m->end, text));
	free(text);
	return ret;
}

/* ---- lists ------------------------------------------------------------------- */

/* Which kind holds all of its numbers? One that no kind holds is in *wrong. Return: is there? */
static bool survey(const struct member *m, struct row_list *list, struct literal *wrong)
{
	struct literal literal;
	bool reals = false, unsigned64 = false;

	for (const char *at = m->text; literal_next(at, m->end, &literal);
	     at = literal.text + literal.size) {
		*wrong = literal;
		if (literal.kind > LITERAL_F64)
			return true;
		list->count++;
		reals |= literal.kind == LITERAL_F64;
		unsigned64 |= literal.kind == LITERAL_U64;
		if (literal.kind == LITERAL_I64)
			row_list_see(list, literal.number.i64);
		else if (literal.kind == LITERAL_U64)
			list->large |= record_is_large_u64(literal.number.u64);
	}
	reals |= unsigned64 && list->negative;
	list->kind = reals ? RECORD_LIST_F64 : unsigned64 ? RECORD_LIST_U64 : RECORD_LIST_I64;
	return false;
}

static void copy(const struct member *m, enum record_kind kind, uint64_t *elements)
{
	struct literal literal;

	for (const char *at = m->text; literal_next(at, m->end, &literal);
	     at = literal.text + literal.size, elements++) {
		double real = literal.kind == LITERAL_I64 ? (double)literal.number.i64 :
			      literal.kind == LITERAL_U64 ? (double)literal.number.u64 :
							    literal.number.f64;

		if (kind == RECORD_LIST_F64)
			memcpy(elements, &real, sizeof(real));
		else
			*elements = literal.number.u64; /* or an i64's bits */
	}
}

static int take_list(struct row *row, const struct member *m)
{
	struct row_list list = {0};
	struct literal wrong;
	uint64_t *elements;
	int ret;

	if (survey(m, &list, &wrong))
		return refuse_number(row, m, &wrong);
	elements = malloc(list.count * sizeof(*elements));
	if (!elements)
		return -ENOMEM;
	copy(m, list.kind, elements);
	list.elements = elements;
	ret = row_list(row, m->name, m->size, &list);
	free(elements);
	return ret;
}

/* Text of JSON may have any integer, but a real that is none is a mistake there, too. */
static int take_json(struct row *row, const struct member *m)
{
	struct literal literal;

	for (const char *at = m->text; literal_find_strange(at, m->end, &literal);
	     at = literal.text + literal.size)
		if (literal.kind == LITERAL_OVERFLOW || literal.kind == LITERAL_UNDERFLOW)
			return refuse_number(row, m, &literal);
	return take_text(row, m, RECORD_FAMILY_JSON, RECORD_JSON);
}

/* ---- numbers ----------------------------------------------------------------- */

static int take_number(struct row *row, const struct member *m, const struct literal *literal,
		       bool real)
{
	struct record_value value = {.kind = RECORD_F64, .number.f64 = literal->number.f64};

	if (literal->kind == LITERAL_U64 && !real) {
		value.kind = RECORD_U64;
		value.number.u64 = literal->number.u64;
	} else if (literal->kind == LITERAL_U64) {
		if (record_is_large_u64(literal->number.u64))
			return refuse_type(row, m, "f64");
		value.number.f64 = (double)literal->number.u64;
	} else if (literal->kind != LITERAL_F64) {
		return refuse_number(row, m, literal);
	}
	return row_value(row, m->name, m->size, RECORD_FAMILY_NUMBER, &value);
}

/* Digits only: an integer, whatever its size. */
static int take_key(struct row *row, const struct member *m, const struct literal *literal)
{
	if (strspn(literal->text, "-0123456789") < literal->size || !literal->strange)
		return from_damaged(row->scan, row->record.offset,
				    "'%s' is the key, and neither text nor an integer", m->name);
	row_key(row, literal->text, literal->size);
	return 0;
}

static int take_scalar(struct row *row, const struct member *m, enum row_role role)
{
	struct literal literal;

	if (!literal_next(m->text, m->end, &literal))
		return -EINVAL; /* the parser saw a number */
	switch (role) {
	case ROW_KEY:
		return take_key(row, m, &literal);
	case ROW_PAYLOAD:
		return row_payload(row, "", 0);
	case ROW_NAMES:
		return row_names(row, m->name, m->size, literal.text, literal.size);
	case ROW_CLASS:
		if (literal.kind == LITERAL_OVERFLOW || literal.kind == LITERAL_UNDERFLOW)
			return refuse_number(row, m, &literal);
		return row_class(row, m->name, m->size, literal.text, literal.size);
	default:
		return take_number(row, m, &literal, role == ROW_REAL);
	}
}

int member_take_text(struct row *row, const struct member *m, enum row_role role)
{
	enum record_kind kind;

	if (role == ROW_TEXT)
		return take_text(row, m, RECORD_FAMILY_TEXT, RECORD_TEXT);
	if (!json_is_array(m->value) && !json_is_object(m->value))
		return take_scalar(row, m, role);
	switch (role) {
	case ROW_KEY:
		return from_damaged(row->scan, row->record.offset,
				    "'%s' is the key, and neither text nor an integer", m->name);
	case ROW_PAYLOAD:
		return row_payload(row, "", 0);
	case ROW_NAMES:
		return refuse_type(row, m, "class");
	case ROW_REAL:
		return refuse_type(row, m, "f64");
	default:
		return json_is_array(m->value) && member_is_list(m->value, &kind) ?
			       take_list(row, m) : take_json(row, m);
	}
}
