/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c - text that a user gave to numbers, sizes, times, durations and UUIDs, or names
 */
#include "parse.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#define DECIMAL_MAX UINT64_C(1000000000000)

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

bool parse_number(const char *text, uint64_t max, uint64_t *out)
{
	uint64_t value;
	const char *end = digits(text, &value);

	if (!end || *end || value > max)
		return false;
	*out = value;
	return true;
}

bool parse_count(const char *text, uint32_t max, uint32_t *out)
{
	uint64_t value;

	if (!parse_number(text, max, &value) || !value)
		return false;
	*out = (uint32_t)value;
	return true;
}

bool parse_decimal(const char *text, double *out)
{
	uint64_t whole, digit;
	double fraction = 0, scale = 1;
	const char *end = digits(text, &whole);

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

bool parse_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGTPE";
	uint64_t value, base = 1024;
	const char *unit, *end = digits(text, &value);

	if (!end)
		return false;
	if (*end && strcmp(end, "B") != 0) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit)
			return false;
		end++;
		if (strcmp(end, "B") == 0)
			base = 1000;
		else if (*end && strcmp(end, "iB") != 0)
			return false;
		for (ptrdiff_t i = 0; i <= unit - units; i++) {
			if (__builtin_mul_overflow(value, base, &value))
				return false;
		}
	}
	if (!value)
		return false;
	*out = value;
	return true;
}

bool parse_power(const char *text, uint32_t max, uint32_t *out)
{
	uint64_t size;

	if (!parse_size(text, &size) || size < 4096 || size > max ||
	    size & (size - 1))
		return false;
	*out = (uint32_t)size;
	return true;
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
	*seconds = ((text[1] - '0') * 10 + text[2] - '0') * 3600 +
		   ((text[4] - '0') * 10 + text[5] - '0') * 60;
	if (text[0] == '-')
		*seconds = -*seconds;
	return true;
}

bool parse_time(const char *text, int64_t *out)
{
	static const char *const shapes[] = {
		"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
		"%Y-%m-%d %H:%M", "%Y-%m-%d",
	};
	int64_t time = 0, zone;
	uint64_t seconds;

	if (parse_number(text + (*text == '@'), INT64_MAX, &seconds))
		time = (int64_t)seconds;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct tm tm = {0};
		const char *end = strptime(text, shapes[i], &tm);
		int day = tm.tm_mday;

		if (!end || !parse_zone(end, &zone))
			continue;
		time = timegm(&tm) - zone;
		if (tm.tm_mday != day) /* February 30 */
			return false;
	}
	if (!time)
		return false;
	*out = time;
	return true;
}

bool parse_duration(const char *text, uint64_t *out)
{
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = {
		{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800},
	};
	uint64_t value, seconds = 0;
	const char *end = digits(text, &value);

	if (!end || (*end && end[1]))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!*end || *end == units[i].unit) {
			seconds = units[i].seconds;
			break;
		}
	}
	/* No time of a change is so far away. */
	if (!seconds || __builtin_mul_overflow(value, seconds, &value) ||
	    !value || value > INT64_MAX / 4)
		return false;
	*out = value;
	return true;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool parse_uuid(const char *text, uint8_t uuid[16])
{
	static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	uint8_t bytes[16];
	size_t nibbles = 0;

	if (strlen(text) != strlen(shape))
		return false;
	for (size_t i = 0; shape[i]; i++) {
		int value = hex_value(text[i]);

		if (shape[i] == '-') {
			if (text[i] != '-')
				return false;
			continue;
		}
		if (value < 0)
			return false;
		bytes[nibbles / 2] = (uint8_t)(nibbles % 2
				? bytes[nibbles / 2] << 4 | value
				: value);
		nibbles++;
	}
	memcpy(uuid, bytes, sizeof(bytes));
	return true;
}

const char parse_backends[] =
	"uring, threads, iopoll, hybrid, sqpoll, passthrough";

bool parse_backend(const char *text)
{
	const char *name = parse_backends;
	size_t size;

	for (; *name; name += size + strspn(name + size, ", ")) {
		size = strcspn(name, ",");
		if (size == strlen(text) && !memcmp(name, text, size))
			return true;
	}
	return false;
}
