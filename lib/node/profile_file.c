/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_file.c - a profile as text, and back
 *
 *	stele profile 1
 *	device = Example SSD 9 eui.0123456789abcdef
 *	latency_us = 81.250000
 *	...
 *	crc32c = 89abcdef
 *
 * One table says what stands in which line. Numbers have six decimals and no
 * exponent, and are written and read here: those of stdio depend on the
 * program's locale. What is read must be what encoding it again would give, so
 * that there is one spelling of each profile.
 */
#include "lib/node/profile.h"

#include "format/crc32c.h"
#include "lib/read/model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MICRO	     1000000u
#define NUMBER_MAX   (UINT64_C(1) << 60)
#define TAIL	     "crc32c = "
#define TAIL_SIZE    (sizeof(TAIL) - 1 + 8 + 1)

/* Both in one, so that one table reaches all. */
struct record {
	struct stele_profile profile;
	struct stele_profile_facts facts;
};

enum kind {
	TEXT,	 /* printable, not empty */
	WORD,	 /* TEXT without blanks, or empty */
	REAL,	 /* double */
	MICROS,	 /* double of seconds, written as microseconds */
	NUMBER,	 /* uint64_t */
	NUMBER32, /* uint32_t */
};

struct field {
	const char *name;
	enum kind kind;
	size_t offset;
	size_t size; /* of TEXT and WORD */
};

#define FIELD(name, kind, member) \
	{name, kind, offsetof(struct record, member), \
	 sizeof(((struct record *)0)->member)}

static const struct field fields[] = {
	FIELD("device", TEXT, profile.device),
	FIELD("kernel", WORD, facts.kernel),
	FIELD("scheduler", WORD, facts.scheduler),
	FIELD("max_sectors_kb", NUMBER, facts.max_sectors_kb),
	FIELD("nr_requests", NUMBER, facts.nr_requests),
	FIELD("time", NUMBER, profile.time),
	FIELD("backend", WORD, profile.backend),
	FIELD("latency_us", MICROS, profile.latency),
	FIELD("stream_rate", REAL, profile.stream_rate),
	FIELD("iops_max", REAL, profile.iops_max),
	FIELD("bytes_max", REAL, profile.bytes_max),
	FIELD("kappa", REAL, profile.kappa),
	FIELD("residual", REAL, profile.residual),
	FIELD("depth", NUMBER32, profile.depth),
	FIELD("depth_max", NUMBER32, profile.depth_max),
	FIELD("transfer_max", NUMBER32, profile.transfer_max),
	FIELD("gap", NUMBER32, profile.gap),
	FIELD("p99_ns", NUMBER, profile.p99_ns),
};

#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

/* ---- encode ------------------------------------------------------------------ */

static void put_real(char *out, size_t size, double value)
{
	double whole = floor(value), part = floor((value - whole) * MICRO + 0.5);

	if (!(value >= 0) || value > (double)NUMBER_MAX) {
		whole = 0; /* no valid profile has one */
		part = 0;
	} else if (part >= MICRO) {
		whole += 1;
		part = 0;
	}
	snprintf(out, size, "%" PRIu64 ".%06" PRIu64, (uint64_t)whole,
		 (uint64_t)part);
}

static void put_value(const struct record *record, const struct field *field,
		      char *out, size_t size)
{
	const void *at = (const char *)record + field->offset;

	switch (field->kind) {
	case TEXT:
	case WORD:
		snprintf(out, size, "%.*s", (int)field->size, (const char *)at);
		break;
	case REAL:
		put_real(out, size, *(const double *)at);
		break;
	case MICROS:
		put_real(out, size, *(const double *)at * MICRO);
		break;
	case NUMBER:
		snprintf(out, size, "%" PRIu64, *(const uint64_t *)at);
		break;
	case NUMBER32:
		snprintf(out, size, "%" PRIu32, *(const uint32_t *)at);
		break;
	}
}

/* Return: bytes, without the checksum. */
static size_t put_fields(const struct record *record, char *text)
{
	size_t length = (size_t)snprintf(text, STELE_PROFILE_SIZE_MAX,
					 "stele profile %u\n",
					 STELE_PROFILE_VERSION);
	char value[160];

	for (size_t i = 0; i < FIELD_COUNT; i++) {
		put_value(record, &fields[i], value, sizeof(value));
		length += (size_t)snprintf(text + length,
					   STELE_PROFILE_SIZE_MAX - length,
					   "%s = %s\n", fields[i].name, value);
	}
	return length;
}
/* The longest of all: names, "= " and "\n", and texts to their last byte. */
_Static_assert(FIELD_COUNT * 64 + 128 + 72 + 32 + 32 + TAIL_SIZE + 20 <
		       STELE_PROFILE_SIZE_MAX,
	       "a profile fits");

static void put_tail(const char *text, size_t size, char tail[TAIL_SIZE + 1])
{
	snprintf(tail, TAIL_SIZE + 1, TAIL "%08" PRIx32 "\n",
		 stele_crc32c(0, text, size));
}

void stele_profile_encode(const struct stele_profile *profile,
			  const struct stele_profile_facts *facts, char *text)
{
	const struct record record = {*profile, *facts};
	size_t length = put_fields(&record, text);

	put_tail(text, length, text + length);
}

/* ---- decode ------------------------------------------------------------------ */

/* Decimal digits, at least one. False: none, or too large. */
static bool get_digits(const char **at, uint64_t *out)
{
	const char *begin = *at;

	*out = 0;
	while (**at >= '0' && **at <= '9') {
		if (*out > NUMBER_MAX)
			return false;
		*out = *out * 10 + (uint64_t)(*(*at)++ - '0');
	}
	return *at > begin && *out <= NUMBER_MAX;
}

static bool get_real(const char *value, double *out)
{
	uint64_t whole, part;

	if (!get_digits(&value, &whole) || *value++ != '.' ||
	    strlen(value) != 6 || !get_digits(&value, &part) || *value)
		return false;
	*out = (double)whole + (double)part / MICRO;
	return true;
}

static bool get_number(const char *value, uint64_t max, uint64_t *out)
{
	return get_digits(&value, out) && !*value && *out <= max;
}

static bool get_text(const char *value, const struct field *field, char *out)
{
	size_t length = strlen(value);

	if (length >= field->size || (field->kind == TEXT && !length))
		return false;
	for (size_t i = 0; i < length; i++)
		if (value[i] < ' ' || value[i] > '~' ||
		    (field->kind == WORD && value[i] == ' '))
			return false;
	memcpy(out, value, length + 1);
	return true;
}

static bool get_value(const char *value, const struct field *field,
		      struct record *record)
{
	void *at = (char *)record + field->offset;
	uint64_t number;

	switch (field->kind) {
	case TEXT:
	case WORD:
		return get_text(value, field, at);
	case REAL:
		return get_real(value, at);
	case MICROS:
		if (!get_real(value, at))
			return false;
		*(double *)at /= MICRO;
		return true;
	case NUMBER:
		return get_number(value, NUMBER_MAX, at);
	case NUMBER32:
		if (!get_number(value, UINT32_MAX, &number))
			return false;
		*(uint32_t *)at = (uint32_t)number;
		return true;
	}
	return false;
}

/* `line` is "NAME = VALUE". */
static bool get_field(const char *line, const struct field *field,
		      struct record *record)
{
	size_t length = strlen(field->name);

	return !strncmp(line, field->name, length) &&
	       !strncmp(line + length, " = ", 3) &&
	       get_value(line + length + 3, field, record);
}

static bool are_sound(const struct stele_profile *profile)
{
	struct stele_model model;

	return *profile->backend && stele_model_set(&model, profile) &&
	       profile->depth && profile->depth <= STELE_QUEUE_DEPTH_MAX &&
	       profile->depth_max &&
	       profile->depth_max <= STELE_QUEUE_DEPTH_MAX &&
	       profile->transfer_max &&
	       profile->transfer_max <= STELE_TRANSFER_SIZE_MAX;
}

static int bad(const char **why, const char *step, int err)
{
	*why = step;
	return err;
}

/* copy[0..size) is what stands above the checksum. */
static int get_fields(char *copy, size_t size, struct record *record,
		      const char **why)
{
	char again[STELE_PROFILE_SIZE_MAX], head[32], *line = copy, *next;

	snprintf(head, sizeof(head), "stele profile %u",
		 STELE_PROFILE_VERSION);
	for (size_t i = 0; i <= FIELD_COUNT; i++, line = next) {
		next = memchr(line, '\n', size - (size_t)(line - copy));
		if (!next)
			return bad(why, "lines", -EUCLEAN);
		*next++ = '\0';
		if (!i && strcmp(line, head))
			return bad(why, "version", -EOPNOTSUPP);
		if (i && !get_field(line, &fields[i - 1], record))
			return bad(why, fields[i - 1].name, -EUCLEAN);
		next[-1] = '\n';
	}
	if (line != copy + size)
		return bad(why, "lines", -EUCLEAN);
	if (!are_sound(&record->profile))
		return bad(why, "bounds", -EUCLEAN);
	if (put_fields(record, again) != size || memcmp(again, copy, size))
		return bad(why, "spelling", -EUCLEAN);
	return 0;
}

int stele_profile_decode(const char *text, size_t size,
			 struct stele_profile *profile,
			 struct stele_profile_facts *facts, const char **why)
{
	char copy[STELE_PROFILE_SIZE_MAX], tail[TAIL_SIZE + 1];
	struct record record = {0};
	int err;

	if (size <= TAIL_SIZE || size >= sizeof(copy) || memchr(text, 0, size))
		return bad(why, "length", -EBADMSG);
	memcpy(copy, text, size);
	copy[size] = '\0';
	size -= TAIL_SIZE;
	put_tail(copy, size, tail);
	if (memcmp(copy + size, tail, TAIL_SIZE))
		return bad(why, "checksum", -EBADMSG);
	err = get_fields(copy, size, &record, why);
	if (err)
		return err;
	*profile = record.profile;
	*facts = record.facts;
	return 0;
}
