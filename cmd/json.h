/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - what --json prints
 *
 * Reports are one object; lists are one object per line, so that a program can
 * read a million of them as they come. Sizes are bytes, times seconds since
 * 1970, digests and UUIDs hexadecimal.
 */
#ifndef STELE_CMD_JSON_H
#define STELE_CMD_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Print one line and drop the reference. Return: false when out of memory. */
bool json_line(json_t *object);

void json_set_number(json_t *object, const char *name, uint64_t value);
/* null, if it is no number. */
void json_set_real(json_t *object, const char *name, double value);
void json_set_text(json_t *object, const char *name, const char *text);
void json_set_hex(json_t *object, const char *name, const uint8_t *bytes,
		  size_t size);
void json_set_uuid(json_t *object, const char *name, const uint8_t uuid[16]);
/*
 * "NAME", with U+FFFD for each byte that is not UTF-8; only if there is one,
 * also "NAME_base64": the exact bytes.
 */
void json_set_key(json_t *object, const char *name, const char *key,
		  size_t size);

#endif
