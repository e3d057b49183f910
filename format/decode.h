/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - what all decoders share: refusals, reserved bytes, padded text
 *
 * Private to format/. A decoder that refuses says why in one static text that
 * no other step uses, so that a message and a test can tell the steps apart.
 */
#ifndef STELE_FORMAT_DECODE_H
#define STELE_FORMAT_DECODE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/checked.h"

/* For `return refuse(...)`: `error` is one of the negative errnos. */
static inline int refuse(const char **why, int error, const char *text)
{
	if (why)
		*why = text;
	return error;
}

/* Most refusals: the checksum was right, and the content cannot be. */
static inline int unclean(const char **why, const char *text)
{
	return refuse(why, -EUCLEAN, text);
}

static inline bool bytes_zero(const void *data, size_t size)
{
	const uint8_t *p = data;

	return size == 0 || (p[0] == 0 && memcmp(p, p + 1, size - 1) == 0);
}

/* Is a field of `size` bytes text, terminated, and zeros after its end? */
static inline bool text_ok(const void *field, size_t size)
{
	size_t length = strnlen(field, size);

	return length < size &&
	       bytes_zero((const char *)field + length, size - length);
}

/* Text into a zero-padded field; what does not fit is cut. */
static inline void text_put(uint8_t *field, size_t size, const char *text)
{
	size_t length = strnlen(text, size - 1);

	memcpy(field, text, length);
	memset(field + length, 0, size - length);
}

static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

#endif
