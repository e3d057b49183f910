/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfrecord.c - records of TFRecord files, each of them a sample, as it is or parsed
 *
 *	| u64 size | u32 masked CRC-32C of it | bytes | u32 masked CRC-32C of them |
 *
 * A record has no name, so its key is that of the file and its number there, with zeros in
 * front, so that keys sort as records do. Both checksums are checked during the scan: all
 * of a file is read then, and of a plain one the samples again, when they are written.
 */
#include <errno.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <stdio.h>
#include <string.h>

#include "from/example.h"
#include "text.h"
#include "from/tfrecord.h"

#define HEAD_SIZE  12u
#define TAIL_SIZE  4u
#define PIECE_SIZE ((size_t)256 << 10)

/* ---- framing ----------------------------------------------------------------- */

static uint32_t get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* Rotated and shifted, so that a checksum of checksums is not a constant. */
static uint32_t mask(uint32_t crc)
{
	return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
	const uint8_t *at = data;

	for (crc = ~crc; size;) { /* isa-l takes an int */
		const size_t n = size < PIECE_SIZE ? size : PIECE_SIZE;

		crc = crc32_iscsi((unsigned char *)(uintptr_t)at, (int)n, crc);
		at += n;
		size -= n;
	}
	return ~crc;
}

uint32_t tfrecord_crc(const void *data, size_t size)
{
	return mask(crc32c(0, data, size));
}

/* Is the checksum of the size right? */
static bool read_head(const uint8_t *head, uint64_t *size)
{
	*size = get32(head) | (uint64_t)get32(head + 4) << 32;
	return get32(head + 8) == tfrecord_crc(head, 8);
}

static bool detect(const uint8_t *data, size_t size)
{
	uint64_t record;

	return size >= HEAD_SIZE && read_head(data, &record);
}

/* ---- scan -------------------------------------------------------------------- */

/* A record, while it is read. */
struct record_reader {
	struct from_scan *scan;
	uint64_t offset; /* of its head */
	uint64_t size;
	struct row row; /* its number is that of the record */
};

static int cut_short(struct record_reader *r)
{
	char bytes[TEXT_SIZE];

	return from_damaged(r->scan, r->offset, "record %" PRIu64 " is cut short: it has %s",
			    r->row.number, text_counted(bytes, r->size, "byte"));
}

/* Return: 1; 0: cut short, and skipped; negative errno (said). */
static int read_bytes(struct record_reader *r, uint32_t *crc, bool keep)
{
	struct input *input = &r->scan->input;

	for (uint64_t left = r->size; left;) {
		const size_t want = left < PIECE_SIZE ? (size_t)left : PIECE_SIZE;
		const uint8_t *data;
		int64_t got = input_look(input, want, &data);
		int ret = 0;

		if (got < 0)
			return from_input_failed(r->scan, (int)got);
		if ((size_t)got < want)
			return cut_short(r);
		*crc = crc32c(*crc, data, want);
		if (!r->row.number && want == r->size && example_guess(data, want))
			r->scan->from->parser = "--example";
		if (keep)
			ret = from_append(r->scan, data, want);
		if (ret)
			return ret;
		input_skip(input, want);
		left -= want;
	}
	return 1;
}

static int wrong_checksum(struct record_reader *r)
{
	return from_damaged(r->scan, r->offset, "record %" PRIu64 " has a wrong checksum",
			    r->row.number);
}

/* Return: 1: it is right; 0: it is not, or cut short, and skipped; negative errno (said). */
static int check_tail(struct record_reader *r, uint32_t crc, bool *whole)
{
	const uint8_t *tail;
	int64_t got = input_look(&r->scan->input, TAIL_SIZE, &tail);
	bool right;

	if (got < 0)
		return from_input_failed(r->scan, (int)got);
	*whole = got >= TAIL_SIZE;
	if (!*whole)
		return from_damaged(r->scan, r->offset, "record %" PRIu64 " is cut short",
				    r->row.number);
	right = get32(tail) == mask(crc);
	input_skip(&r->scan->input, TAIL_SIZE);
	return right ? 1 : wrong_checksum(r);
}

/* As it is. Return: 1, also if it is skipped; 0: cut short; negative errno (said). */
static int read_record(struct record_reader *r)
{
	struct from_scan *scan = r->scan;
	struct store *store = &scan->from->store;
	const bool plain = from_is_plain(scan);
	const uint64_t stored = store->size;
	uint64_t place = from_place(scan, r->offset + HEAD_SIZE);
	char key[FROM_NUMBER_KEY_MAX];
	bool whole = false;
	uint32_t crc = 0;
	int ret = plain ? 0 : from_store(scan, r->offset, &place);

	if (!ret)
		ret = read_bytes(r, &crc, !plain);
	if (ret > 0)
		ret = check_tail(r, crc, &whole);
	if (ret > 0) {
		ret = from_number_key(scan, r->row.number, key);
		ret = from_sample(scan, key, (size_t)ret, r->size, place);
	} else if (!ret) {
		store_truncate(store, plain ? store->size : stored);
	}
	return ret ? ret : whole;
}

/* Parsed. Return: as read_record(). */
static int read_example(struct record_reader *r)
{
	struct from_scan *scan = r->scan;
	uint64_t place = from_place(scan, r->offset + HEAD_SIZE);
	const uint8_t *data;
	int64_t got;
	int ret = 0;

	if (r->size > FROM_RECORD_SIZE_MAX)
		return from_damaged(scan, r->offset, "an Example of %" PRIu64 " bytes, more than "
				    "%zu: what follows is lost", r->size, FROM_RECORD_SIZE_MAX);
	got = input_look(&scan->input, (size_t)r->size + TAIL_SIZE, &data);
	if (got < 0)
		return from_input_failed(scan, (int)got);
	if ((uint64_t)got < r->size + TAIL_SIZE)
		return cut_short(r);
	if (get32(data + r->size) != tfrecord_crc(data, (size_t)r->size)) {
		input_skip(&scan->input, r->size + TAIL_SIZE);
		ret = wrong_checksum(r);
		return ret ? ret : 1;
	}
	row_begin(&r->row, r->offset);
	if (!from_is_plain(scan))
		ret = from_store(scan, r->offset, &place);
	if (!ret && !from_is_plain(scan))
		ret = from_append(scan, data, (size_t)r->size);
	if (!ret)
		ret = example_take(&r->row, data, (size_t)r->size, place);
	input_skip(&scan->input, r->size + TAIL_SIZE);
	if (!ret)
		ret = row_end(&r->row);
	r->row.number -= !ret; /* the caller counts */
	return ret ? ret : 1;
}

/* Return: 1: there was one; 0: no more; negative errno (said). */
static int next_record(struct record_reader *r)
{
	struct input *input = &r->scan->input;
	const uint8_t *head;
	int64_t got = input_look(input, HEAD_SIZE, &head);
	char bytes[TEXT_SIZE];

	r->offset = input->offset;
	if (got < 0)
		return from_input_failed(r->scan, (int)got);
	if (!got)
		return 0;
	if (got < HEAD_SIZE)
		return from_damaged(r->scan, r->offset, "%s, too few for a record",
				    text_counted(bytes, (uint64_t)got, "byte"));
	if (!read_head(head, &r->size))
		return from_damaged(r->scan, r->offset, "the size of record %" PRIu64
				    " has a wrong checksum: what follows is lost",
				    r->row.number);
	input_skip(input, HEAD_SIZE);
	return r->scan->from->opts.example ? read_example(r) : read_record(r);
}

static int scan_records(struct from_scan *scan)
{
	struct record_reader reader = {.scan = scan, .row = {.scan = scan}};
	int ret;

	do
		ret = next_record(&reader);
	while (ret > 0 && ++reader.row.number);
	return ret;
}

const struct from_format from_tfrecord = {
	.name = "tfrecord",
	.detect = detect,
	.scan = scan_records,
	.kind = FROM_BLOBS,
	.verifies = true,
};

/* The same, with fields. */
const struct from_format from_example = {
	.name = "tfrecord",
	.scan = scan_records,
	.kind = FROM_RECORDS,
	.verifies = true,
	.options = FROM_KEY | FROM_EXAMPLE,
};
