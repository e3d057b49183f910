/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - what --json prints
 */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "text.h"

/*
 * Jansson's integers have a sign. A larger number is a string that begins with a
 * byte that no text has, until it is written.
 */
#define LARGE	   '\xff'
#define LARGE_SIZE 22

static bool broken; /* some value is missing */

/* ---- values ---------------------------------------------------------------- */

/* `value`, which must be there. */
static json_t *made(json_t *value)
{
	if (!value) {
		broken = true;
		cmd_lost();
	}
	return value;
}

json_t *json_make(void)
{
	return made(json_object());
}

json_t *json_make_list(void)
{
	return made(json_array());
}

void json_set(json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value) < 0)
		made(NULL);
}

void json_add(json_t *list, json_t *value)
{
	if (json_array_append_new(list, value) < 0)
		made(NULL);
}

json_t *json_number(uint64_t value)
{
	char text[LARGE_SIZE];

	if (value <= INT64_MAX)
		return made(json_integer((json_int_t)value));
	snprintf(text, sizeof(text), "%c%" PRIu64, LARGE, value);
	return made(json_string_nocheck(text));
}

void json_set_number(json_t *object, const char *name, uint64_t value)
{
	json_set(object, name, json_number(value));
}

void json_set_time(json_t *object, const char *name, int64_t seconds)
{
	json_set(object, name, json_integer(seconds));
}

void json_set_real(json_t *object, const char *name, double value)
{
	json_set(object, name,
		 isfinite(value) ? json_real(value) : json_null());
}

#define DIGITS 6 /* significant ones, of a duration that was measured */

static double round_digits(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*g", DIGITS, value);
	return strtod(text, NULL);
}

void json_set_seconds(json_t *object, const char *name, double seconds)
{
	json_set_real(object, name, round_digits(seconds));
}

void json_set_text(json_t *object, const char *name, const char *text)
{
	json_set_key(object, name, text, strlen(text));
}

void json_set_hex(json_t *object, const char *name, const uint8_t *bytes,
		  size_t size)
{
	char text[TEXT_HEX_SIZE] = "";

	json_set(object, name, json_string(text_hex(text, bytes, size)));
}

void json_set_uuid(json_t *object, const char *name, const uint8_t uuid[16])
{
	char text[TEXT_HEX_SIZE];

	json_set(object, name, json_string(text_uuid(text, uuid)));
}

json_t *json_text(const char *text)
{
	bool exact;
	char *utf8 = text_replace(text, strlen(text), &exact);
	json_t *value = made(utf8 ? json_string(utf8) : NULL);

	free(utf8);
	return value;
}

void json_set_key(json_t *object, const char *name, const char *key,
		  size_t size)
{
	char other[TEXT_SIZE], *text, *bytes = NULL;
	bool exact;

	text = text_replace(key, size, &exact);
	json_set(object, name, text ? json_string(text) : NULL);
	if (!exact) {
		bytes = text_base64(key, size);
		snprintf(other, sizeof(other), "%s_base64", name);
		json_set(object, other, bytes ? json_string(bytes) : NULL);
	}
	free(bytes);
	free(text);
}

/* ---- writing --------------------------------------------------------------- */

static void put_escaped(FILE *to, uint32_t point)
{
	if (point > 0xffff) {
		point -= 0x10000;
		fprintf(to, "\\u%04" PRIx32, 0xd800 + (point >> 10));
		point = 0xdc00 + (point & 0x3ff);
	}
	fprintf(to, "\\u%04" PRIx32, point);
}

/* Of valid UTF-8, which may have zeros. */
static void put_string(FILE *to, const char *text, size_t left)
{
	static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* byte, letter */
	size_t length;

	putc('"', to);
	for (; left; text += length, left -= length) {
		const char *pair = named;

		length = text_utf8(text, left);
		while (*pair && *pair != *text)
			pair += 2;
		if (*pair)
			fprintf(to, "\\%c", pair[1]);
		else if (text_shows(text, length))
			fwrite(text, 1, length, to);
		else
			put_escaped(to, text_point(text, length));
	}
	putc('"', to);
}

static void put_value(FILE *to, json_t *value);

static void put_object(FILE *to, json_t *object)
{
	const char *name, *between = "";
	json_t *value;

	putc('{', to);
	json_object_foreach(object, name, value) {
		fputs(between, to);
		put_string(to, name, strlen(name));
		putc(':', to);
		put_value(to, value);
		between = ",";
	}
	putc('}', to);
}

static void put_list(FILE *to, json_t *list)
{
	json_t *value;
	size_t i;

	putc('[', to);
	json_array_foreach(list, i, value) {
		if (i)
			putc(',', to);
		put_value(to, value);
	}
	putc(']', to);
}

static void put_value(FILE *to, json_t *value)
{
	const char *text = json_string_value(value);
	char *other, real[TEXT_SIZE];

	if (json_is_object(value)) {
		put_object(to, value);
	} else if (json_is_array(value)) {
		put_list(to, value);
	} else if (text && *text == LARGE) {
		fputs(text + 1, to);
	} else if (text) {
		put_string(to, text, json_string_length(value));
	} else if (json_is_real(value)) {
		fputs(text_real(real, json_real_value(value)), to);
	} else {
		other = json_dumps(value, JSON_ENCODE_ANY);
		fputs(other ? other : "", to);
		if (!other)
			made(NULL);
		free(other);
	}
}

void json_line(json_t *object)
{
	char *text = NULL;
	size_t size;
	FILE *to = broken ? NULL : open_memstream(&text, &size);

	if (to) {
		put_value(to, object);
		if ((ferror(to) | fclose(to)) || !text)
			made(NULL);
	} else {
		made(NULL);
	}
	if (!broken)
		printf("%s\n", text);
	free(text);
	json_decref(object);
}
