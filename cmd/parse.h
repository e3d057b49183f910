/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.h - parse numbers, sizes, times, durations, UUIDs and names given by the user
 *
 * Each returns NULL if the whole text is valid and in range, and sets *out
 * only then; otherwise what it must be, for the message, valid until the next call. A
 * size, time or duration is never 0, which tells the library that none was
 * given.
 */
#ifndef STELE_CMD_PARSE_H
#define STELE_CMD_PARSE_H

#include <stdint.h>

/* Decimal digits, nothing else. */
const char *parse_number(const char *text, uint64_t min, uint64_t max,
			 uint64_t *out);
#define PARSE_TIME_MAX INT64_C(253402300799) /* the end of the year 9999 */
/* The same, from 1. */
const char *parse_count(const char *text, uint32_t max, uint32_t *out);
#define PARSE_JOBS_MAX	  1024	/* of the library */
#define PARSE_TIMEOUT_MAX 86400 /* seconds, of RBD */
/* Digits, which may have a fraction: 10, 0.25. */
const char *parse_seconds(const char *text, double min, double max,
			  double *out);
/* Bytes: 4096, 64K, 64M, 1GiB (powers of 1024), 1GB (of 1000). */
const char *parse_size(const char *text, uint64_t min, uint64_t max,
		       uint64_t *out);
#define PARSE_SIZE_MAX (UINT64_C(1) << 62)
/* A power of two of at least 4096. */
const char *parse_power(const char *text, uint32_t max, uint32_t *out);
#define PARSE_OBJECT_MAX (32u << 20) /* of RBD */
/* Seconds since 1970: 1700000000, @1700000000, 2026-11-21[T06:45[:00]][Z|+01:00]. */
const char *parse_time(const char *text, int64_t *out);
/* Seconds: 90, 90s, 10m, 2h, 7d, 2w. */
const char *parse_duration(const char *text, uint64_t *out);
/* 8-4-4-4-12 hexadecimal digits. */
const char *parse_uuid(const char *text, uint8_t uuid[16]);
/* Any text of `min` to `max` bytes. */
const char *parse_text(const char *text, uint32_t min, uint32_t max,
		       const char **out);
/* The label of an image. */
const char *parse_label(const char *text, const char **out);

/* One of `words`, terminated by NULL: its index. Empty ones are placeholders. */
const char *parse_word(const char *text, const char *const *words,
		       uint32_t *out);
/* Of --verify: none, crc, digest; by enum stele_verify. */
extern const char *const parse_verify_words[];
const char *parse_verify(const char *text, uint32_t *out);
/* For --backend, all that the library has; not all work on every target. */
const char *parse_backend(const char *text, const char **out);
/* Accept `word` as an alternative to what another parser accepts. */
const char *parse_or(const char *text, const char *word, const char *wanted);

#endif
