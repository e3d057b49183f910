/* SPDX-License-Identifier: Apache-2.0 */
/*
 * literal.h - numbers in the text of JSON, also those that its parser does not take
 *
 * Python writes NaN, Infinity and -Infinity, and integers of any size. The parser refuses these,
 * as well as reals beyond an f64, and makes 0 of what is too close to it. Such a number is
 * strange: the parser sees 0 in its place, and what it says is read from the text.
 */
#ifndef STELE_CMD_FROM_LITERAL_H
#define STELE_CMD_FROM_LITERAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum literal_kind {
	LITERAL_I64,
	LITERAL_U64,	   /* that is no i64 */
	LITERAL_F64,	   /* also an integer, if it is one exactly, and neither of the above */
	LITERAL_BEYOND,	   /* any other integer */
	LITERAL_OVERFLOW,  /* a real that no f64 can be */
	LITERAL_UNDERFLOW,
};

struct literal {
	const char *text;
	size_t size;
	enum literal_kind kind;
	bool strange;
	union {
		int64_t i64;
		uint64_t u64;
		double f64;
	} number;
};

/* All texts end with '\0' at `end`. */

/* The first from `at` on, outside of strings. */
bool literal_next(const char *at, const char *end, struct literal *out);
/* The first strange one. */
bool literal_find_strange(const char *at, const char *end, struct literal *out);
/* Make all that are strange 0, with blanks behind it. */
void literal_blank(char *text, const char *end);

/* A member of an object, which the parser has taken. */
struct literal_member {
	const char *value, *end;
};
/* The next one from `at` on, in the object's order. Return: what is behind it. */
const char *literal_member(const char *at, const char *end, struct literal_member *out);
/* Copy without blanks between tokens. Return: how many bytes. */
size_t literal_compact(const char *at, const char *end, char *out);

#endif
