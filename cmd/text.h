/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - numbers, times and keys as a person reads them
 *
 * Functions that fill a buffer return it, so that they can be used as printf's
 * arguments. A key may hold any byte: wherever it may reach a terminal, it is escaped.
 */
#ifndef STELE_CMD_TEXT_H
#define STELE_CMD_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>

#define ROW "%-12s" /* how a line of a report begins: with its name */
#define TEXT_SIZE 48 /* of a number with its noun, or of a time */
#define TEXT_HEX_SIZE 72 /* of a digest or UUID */

/* "0 bytes", "12.3 GiB". */
char *text_size(char buffer[TEXT_SIZE], uint64_t bytes);
/* "1,234,567". */
char *text_count(char buffer[TEXT_SIZE], uint64_t count);
/* "1 sample", "1,234,567 samples". */
char *text_counted(char buffer[TEXT_SIZE], uint64_t count, const char *noun);
/* "0.24 %", of `whole`. */
char *text_share(char buffer[TEXT_SIZE], uint64_t part, uint64_t whole);
/* "2026-11-21 06:45:00 UTC". */
char *text_time(char buffer[TEXT_SIZE], int64_t seconds);
/* "12 s", "3 h 5 min", "2 d 4 h". */
char *text_duration(char buffer[TEXT_SIZE], uint64_t seconds);
/* Three significant digits: "41.8 us", "1.20 ms". */
char *text_latency(char buffer[TEXT_SIZE], uint64_t ns);
/* The shortest that reads back as the same number, and shows that it is a real one: "1.0". */
char *text_real(char buffer[TEXT_SIZE], double value);
char *text_hex(char buffer[TEXT_HEX_SIZE], const uint8_t *bytes, size_t size);
char *text_uuid(char buffer[TEXT_HEX_SIZE], const uint8_t uuid[16]);

/* Length of the valid UTF-8 sequence that `text` begins with; 0: none. */
size_t text_utf8(const char *text, size_t size);
/* How many bytes of well-formed UTF-8 it begins with. */
size_t text_valid(const char *text, size_t size);
/* Its code point. */
uint32_t text_point(const char *text, size_t length);
/*
 * Is that sequence printable? Neither a control, nor a format character that reorders,
 * joins or hides its neighbours (Cf), nor a line or paragraph separator (Zl,
 * Zp), nor unassigned.
 */
bool text_shows(const char *text, size_t length);
/*
 * Escape what text_shows() denies, backslashes and non-UTF-8 as \n, \t, \\, \xHH.
 * Return: malloc'ed text; NULL (no memory; told to cmd_lost()).
 */
char *text_escape(const char *key, size_t size);
/* The width for printf() that pads UTF-8 to so many characters; NULL is one. */
int text_pad(const char *text, int width);
/*
 * UTF-8, with U+FFFD for each byte that is 0 or not UTF-8; *exact if there is none. Also
 * malloc'ed.
 */
char *text_replace(const char *key, size_t size, bool *exact);
/* Malloc'ed; NULL: no memory. */
char *text_base64(const char *bytes, size_t size);
/* The same but for backslashes, as much as `room` has, at least 6 bytes. */
void text_show(char *out, size_t room, const char *text);
/* Names for a message: "'a', 'b', ...", as many as there is room for. Begins as "". */
#define TEXT_LIST_SIZE 512u
void text_list(char list[TEXT_LIST_SIZE], const char *name);

#endif
