/* SPDX-License-Identifier: Apache-2.0 */
/*
 * literal.c - see literal.h
 *
 * What is no number by the grammar of JSON is left to the parser to refuse.
 */
#include "from/literal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS	     "0123456789"
#define F64_SIZE_MAX 320u /* of an integer that is one, written out */

/* ---- tokens ------------------------------------------------------------------ */

static const char *behind_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		at += *at == '\\';
	return at < end ? at + 1 : end;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '+' || c == '.' || c == '_';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* As the grammar has them. Return: the size; 0: it is none. *integer: nothing but digits. */
static size_t number_size(const char *text, bool *integer)
{
	const char *at = text + (*text == '-');
	size_t digits = strspn(at, DIGITS);

	*integer = true;
	if (!digits || (*at == '0' && digits > 1))
		return 0;
	at += digits;
	if (*at == '.') {
		*integer = false;
		digits = strspn(++at, DIGITS);
		if (!digits)
			return 0;
		at += digits;
	}
	if (*at == 'e' || *at == 'E') {
		*integer = false;
		at++;
		at += *at == '-' || *at == '+';
		digits = strspn(at, DIGITS);
		if (!digits)
			return 0;
		at += digits;
	}
	return (size_t)(at - text);
}

/* ---- numbers ----------------------------------------------------------------- */

static void take_large(struct literal *out)
{
	char again[F64_SIZE_MAX];

	out->strange = true;
	out->kind = LITERAL_F64;
	out->number.f64 = strtod(out->text, NULL);
	if (isinf(out->number.f64) ||
	    (size_t)snprintf(again, sizeof(again), "%.0f", out->number.f64) != out->size ||
	    memcmp(again, out->text, out->size) != 0)
		out->kind = LITERAL_BEYOND;
}

static void take_integer(struct literal *out)
{
	errno = 0;
	out->kind = LITERAL_I64;
	out->number.i64 = strtoll(out->text, NULL, 10);
	if (!errno)
		return;
	errno = 0;
	out->kind = LITERAL_U64;
	out->strange = true;
	out->number.u64 = strtoull(out->text, NULL, 10);
	if (errno || *out->text == '-')
		take_large(out);
}

static void take_real(struct literal *out)
{
	const char *digits = out->text + strspn(out->text, "-0.");

	out->kind = LITERAL_F64;
	out->number.f64 = strtod(out->text, NULL);
	if (isinf(out->number.f64))
		out->kind = LITERAL_OVERFLOW;
	else if (out->number.f64 == 0 && isdigit((unsigned char)*digits))
		out->kind = LITERAL_UNDERFLOW;
	out->strange = out->kind != LITERAL_F64;
}

static bool take_name(struct literal *out)
{
	static const struct {
		const char *text;
		double value;
	} names[] = {{"NaN", (double)NAN}, {"Infinity", HUGE_VAL}, {"-Infinity", -HUGE_VAL}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (out->size != strlen(names[i].text) ||
		    memcmp(out->text, names[i].text, out->size) != 0)
			continue;
		out->kind = LITERAL_F64;
		out->strange = true;
		out->number.f64 = names[i].value;
		return true;
	}
	return false;
}

/* Of the token that begins here; its size is taken in any case. */
static bool take_token(const char *at, const char *end, struct literal *out)
{
	bool integer;

	*out = (struct literal){.text = at};
	while (at + out->size < end && is_word(at[out->size]))
		out->size++;
	if (take_name(out))
		return true;
	if (number_size(at, &integer) != out->size)
		return false;
	if (integer)
		take_integer(out);
	else
		take_real(out);
	return true;
}

bool literal_next(const char *at, const char *end, struct literal *out)
{
	while (at < end) {
		if (*at == '"') {
			at = behind_string(at, end);
		} else if (!is_word(*at)) {
			at++;
		} else {
			if (take_token(at, end, out))
				return true;
			at += out->size;
		}
	}
	return false;
}

bool literal_find_strange(const char *at, const char *end, struct literal *out)
{
	for (; literal_next(at, end, out); at = out->text + out->size)
		if (out->strange)
			return true;
	return false;
}

void literal_blank(char *text, const char *end)
{
	struct literal literal;

	for (char *at = text; literal_find_strange(at, end, &literal); at += literal.size) {
		at = text + (literal.text - text);
		memset(at, ' ', literal.size);
		*at = '0';
	}
}

/* ---- members ----------------------------------------------------------------- */

static const char *behind_value(const char *at, const char *end)
{
	size_t depth = 0;

	while (at < end) {
		const bool closes = *at == '}' || *at == ']';

		if (!depth && (closes || *at == ',' || is_blank(*at)))
			return at;
		depth += *at == '{' || *at == '[';
		depth -= closes;
		at = *at == '"' ? behind_string(at, end) : at + 1;
		if (!depth && (closes || at[-1] == '"'))
			return at;
	}
	return end;
}

const char *literal_member(const char *at, const char *end, struct literal_member *out)
{
	while (at < end && *at != '"')
		at++;
	at = at < end ? behind_string(at, end) : end;
	while (at < end && (*at == ':' || is_blank(*at)))
		at++;
	out->value = at;
	return out->end = behind_value(at, end);
}

size_t literal_compact(const char *at, const char *end, char *out)
{
	char *to = out;

	while (at < end) {
		const char *next = *at == '"' ? behind_string(at, end) : at + 1;

		if (!is_blank(*at)) {
			memcpy(to, at, (size_t)(next - at));
			to += next - at;
		}
		at = next;
	}
	return (size_t)(to - out);
}
