/* SPDX-License-Identifier: Apache-2.0 */
/*
 * corrupt.c - see corrupt.h
 */
#include "tests/corrupt.h"

#include <errno.h>
#include <string.h>

#include "format/block.h"
#include "tests/tap.h"

#define SIZE_MAX_BYTES 4096

static const char *const how_names[HOW_COUNT] = {
	"",        "zero",     "ones",   "add 1", "subtract 1",
	"low bit", "high bit", "random", "swap",  "set",
};

static void add(uint8_t *field, size_t size, uint8_t addend)
{
	unsigned int carry = 0;

	for (size_t i = 0; i < size; i++) {
		carry += field[i] + (i == 0 || addend == 0xff ? addend : 0u);
		field[i] = (uint8_t)carry;
		carry >>= 8;
	}
}

static void randomise(uint8_t *field, size_t size)
{
	uint32_t state = 0x5eed;

	for (size_t i = 0; i < size; i++) {
		state = state * 1664525 + 1013904223;
		field[i] = (uint8_t)(state >> 24);
	}
}

static void set(uint8_t *field, size_t size, uint64_t value)
{
	for (size_t i = 0; i < size; i++)
		field[i] = i < 8 ? (uint8_t)(value >> 8 * i) : 0;
}

static void swap(uint8_t *a, uint8_t *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		uint8_t byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

static void mutate(uint8_t *bytes, const struct corrupt_row *row,
		   enum corrupt_how how)
{
	uint8_t *field = bytes + row->position;

	if (how == HOW_ZERO)
		memset(field, 0, row->size);
	else if (how == HOW_ONES)
		memset(field, 0xff, row->size);
	else if (how == HOW_ADD && row->size <= 8)
		add(field, row->size, 1);
	else if (how == HOW_SUB && row->size <= 8)
		add(field, row->size, 0xff);
	else if (how == HOW_LOW)
		field[0] ^= 1;
	else if (how == HOW_HIGH)
		field[row->size - 1] ^= 0x80;
	else if (how == HOW_RANDOM)
		randomise(field, row->size);
	else if (how == HOW_SWAP && row->sibling)
		swap(field, bytes + row->sibling, row->size);
	else if (how == HOW_SET)
		set(field, row->size, row->value);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool answers(const struct corrupt_subject *subject,
		    const struct corrupt_row *row, enum corrupt_how how,
		    const uint8_t *bytes, int error, const char *why)
{
	const char *seen = NULL;
	int ret = subject->decode(bytes, &seen);

	if (ret == error && same(seen, why))
		return true;
	diag("%s.%s, %s: wanted %d '%s', seen %d '%s'", subject->name,
	     row->field, how_names[how], error, why ? why : "", ret,
	     seen ? seen : "");
	return false;
}

static const char *wanted_why(const struct corrupt_row *row,
			      enum corrupt_how how)
{
	for (size_t i = 0; i < 7 && row->but[i].how != HOW_ALL; i++)
		if (row->but[i].how == how)
			return row->but[i].why;
	return row->why;
}

static bool run_one(const struct corrupt_subject *subject,
		    const struct corrupt_row *row, enum corrupt_how how)
{
	uint8_t bytes[SIZE_MAX_BYTES];
	const char *why = wanted_why(row, how);
	int error = why ? (row->error ? row->error : -EUCLEAN) : 0;
	bool good;

	memcpy(bytes, subject->bytes, subject->size);
	mutate(bytes, row, how);
	if (memcmp(bytes, subject->bytes, subject->size) == 0)
		return true;
	good = answers(subject, row, how, bytes, subject->error, subject->why);
	subject->repair(bytes);
	return answers(subject, row, how, bytes, error, why) && good;
}

void corrupt_repair_block(uint8_t *bytes)
{
	struct stele_disk_block *block = (struct stele_disk_block *)bytes;

	block->crc = le32_put(stele_block_crc(block));
}

void corrupt_run(const struct corrupt_subject *subject,
		 const struct corrupt_row *rows, size_t count)
{
	const char *why = NULL;

	is_int(0, subject->decode(subject->bytes, &why),
	       "%s: the specimen is valid", subject->name);
	if (why)
		diag("%s", why);
	for (size_t i = 0; i < count; i++) {
		bool good = true;

		for (int how = HOW_ZERO; how < HOW_COUNT; how++)
			if ((how == HOW_SET) == rows[i].set)
				good &= run_one(subject, &rows[i],
						(enum corrupt_how)how);
		ok(good, "%s.%s%s", subject->name, rows[i].field,
		   rows[i].set ? " at a bound" : "");
	}
}

void corrupt_covers(const struct corrupt_subject *subject,
		    const struct corrupt_row *rows, size_t count, size_t from,
		    size_t to, const char *what)
{
	size_t at = from;

	while (at < to) {
		size_t before = at;

		for (size_t i = 0; i < count; i++)
			if (!rows[i].set && rows[i].position <= at &&
			    rows[i].position + rows[i].size > at)
				at = rows[i].position + rows[i].size;
		if (at == before)
			break;
	}
	if (!ok(at >= to, "%s: rows cover each byte of %s", subject->name,
		what))
		diag("byte 0x%zx has no row", at);
}

void corrupt_bits(const struct corrupt_subject *subject, size_t size)
{
	uint8_t bytes[SIZE_MAX_BYTES];
	unsigned int accepted = 0;

	memcpy(bytes, subject->bytes, subject->size);
	for (size_t bit = 0; bit < size * 8; bit++) {
		const char *why = NULL;

		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (subject->decode(bytes, &why) >= 0 || !why)
			accepted++;
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	is_uint(0, accepted, "%s: no flip of one bit is accepted",
		subject->name);
}
