/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.h - text that a user gave to numbers, sizes, times, durations and UUIDs, or names
 *
 * Each returns whether the whole text was understood and fits; *out is only
 * set then. A size, time or duration is never 0: to the library that says that
 * none was given.
 */
#ifndef STELE_CMD_PARSE_H
#define STELE_CMD_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal digits, nothing else. */
bool parse_number(const char *text, uint64_t max, uint64_t *out);
/* The same, from 1. */
bool parse_count(const char *text, uint32_t max, uint32_t *out);
/* Digits, which may have a fraction: 10, 0.25. At most 10^12. */
bool parse_decimal(const char *text, double *out);
/* Bytes: 4096, 64K, 64M, 1GiB (powers of 1024), 1GB (of 1000). */
bool parse_size(const char *text, uint64_t *out);
/* A power of two of at least 4096. */
bool parse_power(const char *text, uint32_t max, uint32_t *out);
#define PARSE_OBJECT_MAX (32u << 20) /* of RBD */
/* Seconds since 1970: 1700000000, @1700000000, 2026-11-21[T06:45[:00]][Z|+01:00]. */
bool parse_time(const char *text, int64_t *out);
/* Seconds: 90, 90s, 10m, 2h, 7d, 2w. */
bool parse_duration(const char *text, uint64_t *out);
/* 8-4-4-4-12 hexadecimal digits. */
bool parse_uuid(const char *text, uint8_t uuid[16]);

/* Of --backend, all that the library knows; not each serves every target. */
extern const char parse_backends[];
bool parse_backend(const char *text);

#endif
