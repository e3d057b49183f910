/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c - text that a user gave to numbers, sizes, times, durations and UUIDs, or names
 */
#include "parse.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "stele.h"

#define DECIMAL_MAX UINT64_C(1000000000000)
#define WANTED_SIZE 256

static const char size_units[] = "KMGTPE";

/* What the parsers return, where a limit or words are part of it. */
static const char *wanted(const char *format, ...)
	__attribute__((format(printf, 1, 2), returns_nonnull));
static const char *wanted(const char *format, ...)
{
	static char text[WANTED_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

/* "64K": as one would give it. */
static const char *as_size(char text[32], uint64_t size)
{
	const char *unit = NULL;

	while (size && size % 1024 == 0) {
		unit = unit ? unit + 1 : size_units;
		size /= 1024;
	}
	snprintf(text, 32, "%" PRIu64 "%.1s", size, unit ? unit : "");
	return text;
}

/* The digits at the start of `text`. Return: what follows; NULL (none, overflow). */
static const char *digits(const char *text, uint64_t *out)
{
	uint64_t value = 0;

	if (!isdigit((unsigned char)*text))
		return NULL;
	for (; isdigit((unsigned char)*text); text++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'),
					   &value))
			return NULL;
	}
	*out = value;
	return text;
}

const char *parse_number(const char *text, uint64_t min, uint64_t max,
			 uint64_t *out)
{
	uint64_t value;
	const char *end = digits(text, &value);

	if (!end || *end || value < min || value > max)
		return wanted("%" PRIu64 " to %" PRIu64, min, max);
	*out = value;
	return NULL;
}

const char *parse_count(const char *text, uint32_t max, uint32_t *out)
{
	uint64_t value;
	const char *reason = parse_number(text, 1, max, &value);

	if (!reason)
		*out = (uint32_t)value;
	return reason;
}

/* Return: whether there were digits, with or without a fraction. */
static bool decimal(const char *text, double *out)
{
	uint64_t whole = 0, digit;
	double fraction = 0, scale = 1;
	const char *end = *text == '.' ? text : digits(text, &whole);

	if (!end || whole > DECIMAL_MAX)
		return false;
	if (*end == '.') {
		do {
			end++;
			if (!isdigit((unsigned char)*end))
				return false;
			digit = (uint64_t)(*end - '0');
			scale /= 10;
			fraction += (double)digit * scale;
		} while (end[1]);
	} else if (*end) {
		return false;
	}
	*out = (double)whole + fraction;
	return true;
}

const char *parse_seconds(const char *text, double min, double max, double *out)
{
	double value;

	if (!decimal(text, &value) || value < min || value > max)
		return wanted("%.10g to %.10g seconds", min, max);
	*out = value;
	return NULL;
}

/* Return: whether it was digits, and maybe a unit. */
static bool bytes(const char *text, uint64_t *out)
{
	uint64_t value, base = 1024;
	const char *unit, *end = digits(text, &value);

	if (!end)
		return false;
	if (*end && strcmp(end, "B") != 0) {
		unit = strchr(size_units, toupper((unsigned char)*end));
		if (!unit)
			return false;
		end++;
		if (strcmp(end, "B") == 0)
			base = 1000;
		else if (*end && strcmp(end, "iB") != 0)
			return false;
		for (ptrdiff_t i = 0; i <= unit - size_units; i++) {
			if (__builtin_mul_overflow(value, base, &value))
				return false;
		}
	}
	*out = value;
	return true;
}

const char *parse_size(const char *text, uint64_t min, uint64_t max,
		       uint64_t *out)
{
	char least[32], most[32];
	uint64_t size;

	if (!bytes(text, &size) || size < min || size > max)
		return wanted("a size from %s to %s, e.g. 64M or 1GiB",
			      as_size(least, min), as_size(most, max));
	*out = size;
	return NULL;
}

const char *parse_power(const char *text, uint32_t max, uint32_t *out)
{
	uint64_t size;
	char most[32];

	/* The largest power is what there is to say. */
	max = UINT32_C(1) << (31 - __builtin_clz(max));
	if (!bytes(text, &size) || size < 4096 || size > max ||
	    size & (size - 1))
		return wanted("a power of two from 4K to %s",
			      as_size(most, max));
	*out = (uint32_t)size;
	return NULL;
}

/* "Z", "+hh:mm", "-hh:mm" or nothing (UTC). */
static bool parse_zone(const char *text, int64_t *seconds)
{
	static const char shape[] = "+00:00";

	*seconds = 0;
	if (!*text || strcmp(text, "Z") == 0)
		return true;
	if (strlen(text) != strlen(shape) || !strchr("+-", text[0]) ||
	    text[3] != ':')
		return false;
	for (int i = 1; shape[i]; i++) {
		if (i != 3 && !isdigit((unsigned char)text[i]))
			return false;
	}
	if (strncmp(text + 1, "24", 2) >= 0 || text[4] > '5')
		return false;
	*seconds = ((text[1] - '0') * 10 + text[2] - '0') * 3600 +
		   ((text[4] - '0') * 10 + text[5] - '0') * 60;
	if (text[0] == '-')
		*seconds = -*seconds;
	return true;
}

static bool seconds_of(const char *text, int64_t *out)
{
	static const char *const shapes[] = {
		"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
		"%Y-%m-%d %H:%M", "%Y-%m-%d",
	};
	uint64_t seconds;
	int64_t zone;

	if (!parse_number(text + (*text == '@'), 1, PARSE_TIME_MAX, &seconds)) {
		*out = (int64_t)seconds;
		return true;
	}
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct tm tm = {0};
		const char *end = strptime(text, shapes[i], &tm);
		int day = tm.tm_mday;

		if (!end || !parse_zone(end, &zone))
			continue;
		*out = timegm(&tm) - zone;
		/* No February 30. */
		return *out >= 1 && *out <= PARSE_TIME_MAX && tm.tm_mday == day;
	}
	return false;
}

const char *parse_time(const char *text, int64_t *out)
{
	int64_t seconds = 0;

	if (!seconds_of(text, &seconds))
		return "seconds since 1970, at least 1 and before the year 10000, or a time like "
		       "2026-11-21T06:45Z";
	*out = seconds;
	return NULL;
}

const char *parse_duration(const char *text, uint64_t *out)
{
	static const char reason[] = "a duration above 0, e.g. 90 (seconds), 10m, 2h or 7d";
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = {
		{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800},
	};
	uint64_t value, seconds = 0;
	const char *end = digits(text, &value);

	if (!end || (*end && end[1]))
		return reason;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!*end || *end == units[i].unit) {
			seconds = units[i].seconds;
			break;
		}
	}
	/* No time of a change is so far away. */
	if (!seconds || __builtin_mul_overflow(value, seconds, &value) ||
	    !value || value > INT64_MAX / 4)
		return reason;
	*out = value;
	return NULL;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

const char *parse_uuid(const char *text, uint8_t uuid[16])
{
	static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	static const char reason[] =
		"32 hexadecimal digits, grouped by '-' as 8-4-4-4-12";
	uint8_t bytes[16];
	size_t nibbles = 0;

	if (strlen(text) != strlen(shape))
		return reason;
	for (size_t i = 0; shape[i]; i++) {
		int value = hex_value(text[i]);

		if (shape[i] == '-') {
			if (text[i] != '-')
				return reason;
			continue;
		}
		if (value < 0)
			return reason;
		bytes[nibbles / 2] = (uint8_t)(nibbles % 2
				? bytes[nibbles / 2] << 4 | value
				: value);
		nibbles++;
	}
	memcpy(uuid, bytes, sizeof(bytes));
	return NULL;
}

const char *parse_text(const char *text, uint32_t min, uint32_t max,
		       const char **out)
{
	size_t size = strlen(text);

	if (size < min || size > max)
		return wanted("%" PRIu32 " to %" PRIu32 " bytes", min, max);
	*out = text;
	return NULL;
}

const char *parse_label(const char *text, const char **out)
{
	const char *reason = parse_text(text, 0, STELE_NAME_SIZE_MAX, out);

	for (; !reason && *text; text++)
		if (iscntrl((unsigned char)*text))
			reason = "text without control characters";
	return reason;
}

/* "a, b or c". */
static const char *list(const char *const *words)
{
	char text[WANTED_SIZE] = "";
	size_t size = 0;

	for (; *words && size < sizeof(text); words++)
		if (**words)
			size += (size_t)snprintf(text + size,
						 sizeof(text) - size, "%s%s",
						 !size	    ? "" :
						 words[1]   ? ", " :
							      " or ",
						 *words);
	return wanted("%s", text);
}

const char *parse_word(const char *text, const char *const *words,
		       uint32_t *out)
{
	for (uint32_t i = 0; *text && words[i]; i++) {
		if (strcmp(words[i], text) == 0) {
			*out = i;
			return NULL;
		}
	}
	return list(words);
}

const char *const parse_verify_words[] = {
	[STELE_VERIFY_DEFAULT] = "",
	[STELE_VERIFY_NONE] = "none",
	[STELE_VERIFY_CRC] = "crc",
	[STELE_VERIFY_DIGEST] = "digest",
	NULL,
};

const char *parse_verify(const char *text, uint32_t *out)
{
	return parse_word(text, parse_verify_words, out);
}

const char *parse_backend(const char *text, const char **out)
{
	static const char *const names[] = {
		"uring", "threads", "iopoll", "hybrid", "sqpoll", "passthrough",
		NULL,
	};
	uint32_t which;
	const char *reason = parse_word(text, names, &which);

	if (!reason)
		*out = names[which];
	return reason;
}

const char *parse_or(const char *text, const char *word, const char *reason)
{
	char copy[WANTED_SIZE];

	if (!reason || strcmp(text, word) == 0)
		return NULL;
	snprintf(copy, sizeof(copy), "%s", reason);
	return wanted("%s, or %s", word, copy);
}
