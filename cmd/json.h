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

/*
 * The following functions create and combine values, and accept NULL. When out of
 * memory they call cmd_lost(), and not one more line is
 * printed: a line is complete or absent.
 */
json_t *json_make(void);
json_t *json_make_list(void);
/* These take the reference to `value`. */
void json_set(json_t *object, const char *name, json_t *value);
void json_add(json_t *list, json_t *value);
/* Print one line and drop the reference. */
void json_line(json_t *object);

json_t *json_number(uint64_t value);
json_t *json_text(const char *text);
/* Seconds since 1970, or before. */
void json_set_time(json_t *object, const char *name, int64_t seconds);
void json_set_number(json_t *object, const char *name, uint64_t value);
/* null if it is not a number. */
void json_set_real(json_t *object, const char *name, double value);
/* Of six significant digits. */
void json_set_seconds(json_t *object, const char *name, double seconds);
void json_set_text(json_t *object, const char *name, const char *text);
void json_set_hex(json_t *object, const char *name, const uint8_t *bytes,
		  size_t size);
void json_set_uuid(json_t *object, const char *name, const uint8_t uuid[16]);
/*
 * "NAME", with U+FFFD for each byte that is 0 or not UTF-8; only if there is any,
 * also "NAME_base64": the exact bytes.
 */
void json_set_key(json_t *object, const char *name, const char *key,
		  size_t size);

#endif
