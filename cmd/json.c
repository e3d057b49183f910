/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - what --json prints
 */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

bool json_line(json_t *object)
{
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	bool done = text != NULL;

	if (done)
		printf("%s\n", text);
	free(text);
	json_decref(object);
	return done;
}

void json_set_number(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

void json_set_real(json_t *object, const char *name, double value)
{
	json_object_set_new(object, name,
			    isfinite(value) ? json_real(value) : json_null());
}

void json_set_text(json_t *object, const char *name, const char *text)
{
	json_set_key(object, name, text, strlen(text));
}

void json_set_hex(json_t *object, const char *name, const uint8_t *bytes,
		  size_t size)
{
	char text[TEXT_HEX_SIZE] = "";

	json_object_set_new(object, name,
			    json_string(text_hex(text, bytes, size)));
}

void json_set_uuid(json_t *object, const char *name, const uint8_t uuid[16])
{
	char text[TEXT_HEX_SIZE];

	json_object_set_new(object, name, json_string(text_uuid(text, uuid)));
}

static char *base64(const char *key, size_t size)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = malloc((size + 2) / 3 * 4 + 1), *to = out;

	for (size_t i = 0; out && i < size; i += 3) {
		size_t left = size - i;
		uint32_t bits = (uint32_t)(uint8_t)key[i] << 16;

		bits |= left > 1 ? (uint32_t)(uint8_t)key[i + 1] << 8 : 0;
		bits |= left > 2 ? (uint32_t)(uint8_t)key[i + 2] : 0;
		*to++ = letters[bits >> 18];
		*to++ = letters[bits >> 12 & 63];
		*to++ = left > 1 ? letters[bits >> 6 & 63] : '=';
		*to++ = left > 2 ? letters[bits & 63] : '=';
	}
	if (out)
		*to = '\0';
	return out;
}

/* NULL: no memory. *exact: nothing had to be replaced. */
static char *to_utf8(const char *key, size_t size, bool *exact)
{
	char *out = malloc(3 * size + 1), *to = out;

	*exact = true;
	for (size_t i = 0; out && i < size;) {
		size_t length = text_utf8(key + i, size - i);

		if (length) {
			memcpy(to, key + i, length);
			to += length;
			i += length;
		} else {
			memcpy(to, REPLACEMENT, 3);
			to += 3;
			i++;
			*exact = false;
		}
	}
	if (out)
		*to = '\0';
	return out;
}

void json_set_key(json_t *object, const char *name, const char *key,
		  size_t size)
{
	char other[TEXT_SIZE], *text, *bytes = NULL;
	bool exact;

	text = to_utf8(key, size, &exact);
	if (text)
		json_object_set_new(object, name, json_string(text));
	if (!exact)
		bytes = base64(key, size);
	if (bytes) {
		snprintf(other, sizeof(other), "%s_base64", name);
		json_object_set_new(object, other, json_string(bytes));
	}
	free(bytes);
	free(text);
}
