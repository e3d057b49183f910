/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - numbers, times and keys as a person reads them
 */
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

char *text_size(char buffer[TEXT_SIZE], uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB",
					    "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(buffer, TEXT_SIZE, "%u byte%s", (unsigned int)bytes,
			 bytes == 1 ? "" : "s");
		return buffer;
	}
	/* 1023.95 would print as 1024.0 */
	while (value >= 1023.95 && unit < 5) {
		value /= 1024;
		unit++;
	}
	snprintf(buffer, TEXT_SIZE, "%.1f %s", value, units[unit]);
	return buffer;
}

char *text_count(char buffer[TEXT_SIZE], uint64_t count)
{
	char plain[TEXT_SIZE];
	int length = snprintf(plain, sizeof(plain), "%llu",
			      (unsigned long long)count);
	char *to = buffer;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = plain[i];
	}
	*to = '\0';
	return buffer;
}

char *text_counted(char buffer[TEXT_SIZE], uint64_t count, const char *noun)
{
	char number[TEXT_SIZE];

	snprintf(buffer, TEXT_SIZE, "%.26s %.19s%s", text_count(number, count),
		 noun, count == 1 ? "" : "s");
	return buffer;
}

char *text_share(char buffer[TEXT_SIZE], uint64_t part, uint64_t whole)
{
	snprintf(buffer, TEXT_SIZE, "%.2f %%",
		 whole ? 100.0 * (double)part / (double)whole : 0.0);
	return buffer;
}

char *text_time(char buffer[TEXT_SIZE], int64_t seconds)
{
	time_t clock = (time_t)seconds;
	struct tm tm;

	if (!gmtime_r(&clock, &tm) ||
	    !strftime(buffer, TEXT_SIZE, "%Y-%m-%d %H:%M:%S UTC", &tm))
		snprintf(buffer, TEXT_SIZE, "@%lld", (long long)seconds);
	return buffer;
}

char *text_duration(char buffer[TEXT_SIZE], uint64_t seconds)
{
	const unsigned long long s = seconds;

	if (s < 60)
		snprintf(buffer, TEXT_SIZE, "%llu s", s);
	else if (s < 3600)
		snprintf(buffer, TEXT_SIZE, "%llu min", s / 60);
	else if (s < 86400)
		snprintf(buffer, TEXT_SIZE, "%llu h %llu min", s / 3600,
			 s / 60 % 60);
	else
		snprintf(buffer, TEXT_SIZE, "%llu d %llu h", s / 86400,
			 s / 3600 % 24);
	return buffer;
}

char *text_latency(char buffer[TEXT_SIZE], uint64_t ns)
{
	static const char *const units[] = {"us", "ms", "s"};
	double value = (double)ns / 1e3;
	size_t unit = 0;

	while (value >= 999.5 && unit < 2) {
		value /= 1e3;
		unit++;
	}
	snprintf(buffer, TEXT_SIZE, "%.*f %s",
		 value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[unit]);
	return buffer;
}

char *text_real(char buffer[TEXT_SIZE], double value)
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(buffer, TEXT_SIZE, "%.*g", digits, value);
		if (strtod(buffer, NULL) == value)
			break;
	}
	if (!buffer[strcspn(buffer, ".einf")])
		strcat(buffer, ".0");
	return buffer;
}

char *text_hex(char buffer[TEXT_HEX_SIZE], const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size && 2 * i + 2 < TEXT_HEX_SIZE; i++)
		snprintf(buffer + 2 * i, 3, "%02x", bytes[i]);
	return buffer;
}

char *text_uuid(char buffer[TEXT_HEX_SIZE], const uint8_t uuid[16])
{
	char *to = buffer;

	for (size_t i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		to += snprintf(to, 3, "%02x", uuid[i]);
	}
	return buffer;
}

size_t text_utf8(const char *text, size_t size)
{
	/* By lead byte: length, and the range of the byte behind it. */
	static const struct {
		uint8_t first, last, length, low, high;
	} leads[] = {
		{0x00, 0x7f, 1, 0, 0},	     {0xc2, 0xdf, 2, 0x80, 0xbf},
		{0xe0, 0xe0, 3, 0xa0, 0xbf}, {0xe1, 0xec, 3, 0x80, 0xbf},
		{0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
		{0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf},
		{0xf4, 0xf4, 4, 0x80, 0x8f},
	};
	const uint8_t *byte = (const uint8_t *)text;

	for (size_t i = 0; size && i < sizeof(leads) / sizeof(leads[0]); i++) {
		if (byte[0] < leads[i].first || byte[0] > leads[i].last)
			continue;
		if (leads[i].length > size)
			return 0;
		for (size_t j = 1; j < leads[i].length; j++) {
			if (byte[j] < (j == 1 ? leads[i].low : 0x80) ||
			    byte[j] > (j == 1 ? leads[i].high : 0xbf))
				return 0;
		}
		return leads[i].length;
	}
	return 0;
}

size_t text_valid(const char *text, size_t size)
{
	size_t at = 0, length = 1;

	while (at < size && length) {
		uint64_t eight;

		if (size - at >= sizeof(eight)) {
			memcpy(&eight, text + at, sizeof(eight));
			if (!(eight & UINT64_C(0x8080808080808080))) {
				at += sizeof(eight);
				continue;
			}
		}
		length = text_utf8(text + at, size - at);
		at += length;
	}
	return at;
}

#define ESCAPED_MAX 4u /* also of a sequence of UTF-8 */

static char *escape_byte(char *to, unsigned char byte)
{
	static const char named[] = "\\\\\nn\tt\rr"; /* byte, letter */

	*to++ = '\\';
	for (const char *pair = named; *pair; pair += 2) {
		if ((unsigned char)*pair == byte) {
			*to++ = pair[1];
			return to;
		}
	}
	return to + sprintf(to, "x%02x", byte);
}

uint32_t text_point(const char *text, size_t length)
{
	uint32_t point = (uint8_t)*text;

	if (length > 1)
		point &= 0x7fu >> length;
	for (size_t i = 1; i < length; i++)
		point = point << 6 | ((uint8_t)text[i] & 0x3f);
	return point;
}

bool text_shows(const char *text, size_t length)
{
	/* Cc, Cf, Zl and Zp of Unicode 15, and U+FDD0 to U+FDEF; ascending. */
	static const uint32_t hidden[][2] = {
		{0x0000, 0x001f},   {0x007f, 0x009f},	{0x00ad, 0x00ad},
		{0x0600, 0x0605},   {0x061c, 0x061c},	{0x06dd, 0x06dd},
		{0x070f, 0x070f},   {0x0890, 0x0891},	{0x08e2, 0x08e2},
		{0x180e, 0x180e},   {0x200b, 0x200f},	{0x2028, 0x202e},
		{0x2060, 0x206f},   {0xfdd0, 0xfdef},	{0xfeff, 0xfeff},
		{0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
		{0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe007f},
	};
	const uint32_t point = text_point(text, length);

	if ((point & 0xfffe) == 0xfffe) /* U+xxFFFE, U+xxFFFF */
		return false;
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (point >= hidden[i][0] && point <= hidden[i][1])
			return false;
	return true;
}

char *text_escape(const char *key, size_t size)
{
	char *out, *to;

	out = to = size > (SIZE_MAX - 1) / 4 ? NULL : malloc(4 * size + 1);
	if (!out) {
		cmd_lost();
		return NULL;
	}
	for (size_t i = 0; i < size;) {
		size_t length = text_utf8(key + i, size - i);

		if (length && key[i] != '\\' && text_shows(key + i, length)) {
			memcpy(to, key + i, length);
			to += length;
			i += length;
		} else {
			to = escape_byte(to, (unsigned char)key[i]);
			i++;
		}
	}
	*to = '\0';
	return out;
}

int text_pad(const char *text, int width)
{
	for (; text && *text; text++)
		width += ((unsigned char)*text & 0xC0) == 0x80;
	return width;
}

char *text_replace(const char *key, size_t size, bool *exact)
{
	char *out = malloc(3 * size + 1), *to = out;

	*exact = true;
	for (size_t i = 0; out && i < size;) {
		size_t length = text_utf8(key + i, size - i);

		if (length && key[i]) {
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
	else
		cmd_lost();
	return out;
}

void text_show(char *out, size_t room, const char *text)
{
	char *const end = out + room - ESCAPED_MAX - 1;
	size_t left = strlen(text);

	while (left && out < end) {
		size_t length = text_utf8(text, left);

		if (length && text_shows(text, length)) {
			memcpy(out, text, length);
			out += length;
		} else {
			length = 1;
			out = escape_byte(out, (unsigned char)*text);
		}
		text += length;
		left -= length;
	}
	*out = '\0';
}

char *text_base64(const char *bytes, size_t size)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = malloc((size + 2) / 3 * 4 + 1), *to = out;

	for (size_t i = 0; out && i < size; i += 3) {
		size_t left = size - i;
		uint32_t bits = (uint32_t)(uint8_t)bytes[i] << 16;

		bits |= left > 1 ? (uint32_t)(uint8_t)bytes[i + 1] << 8 : 0;
		bits |= left > 2 ? (uint32_t)(uint8_t)bytes[i + 2] : 0;
		*to++ = letters[bits >> 18];
		*to++ = letters[bits >> 12 & 63];
		*to++ = left > 1 ? letters[bits >> 6 & 63] : '=';
		*to++ = left > 2 ? letters[bits & 63] : '=';
	}
	if (out)
		*to = '\0';
	return out;
}

void text_list(char list[TEXT_LIST_SIZE], const char *name)
{
	static const char more[] = ", ...";
	const size_t at = strlen(list);

	if (at >= 3 && !strcmp(list + at - 3, "...")) /* of a name a quote is the end */
		return;
	if (at + strlen(name) + strlen(", ''") + sizeof(more) > TEXT_LIST_SIZE)
		strcpy(list + at, at ? more : "...");
	else
		sprintf(list + at, "%s'%s'", at ? ", " : "", name);
}
