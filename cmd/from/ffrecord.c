/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ffrecord.c - samples of FFRecord files
 *
 *	| u32 checksum of the next three | i64 count | count u32, checksums of samples |
 *	| count i64, their offsets | samples |
 *
 * Checksums are CRC-32, as zlib's. Samples are without gaps; the last one ends where the file
 * does. All checksums are checked during the scan. The tables are in memory meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "from/scan.h"
#include "text.h"

#define HEAD_SIZE  12u
#define ENTRY_SIZE 12u /* of both tables */
#define PIECE_SIZE ((size_t)256 << 10)

struct reader {
	struct from_scan *scan;
	uint64_t count;
	uint8_t *tables; /* owned */
	uint64_t number;
};

static uint64_t get(const uint8_t *at, unsigned int size)
{
	uint64_t value = 0;

	while (size--)
		value = value << 8 | at[size];
	return value;
}

static uint32_t checksum_of(const struct reader *r, uint64_t number)
{
	return (uint32_t)get(r->tables + number * 4, 4);
}

static uint64_t offset_of(const struct reader *r, uint64_t number)
{
	return get(r->tables + r->count * 4 + number * 8, 8);
}

/* ---- header -------------------------------------------------------------------- */

/* Return: 1; 0: damage; negative errno (said). */
static int read_tables(struct reader *r, uint32_t *crc)
{
	const size_t size = (size_t)r->count * ENTRY_SIZE;
	struct input *input = &r->scan->input;
	size_t room = 0; /* whole pieces: all but the last are whole, too */

	for (size_t at = 0; at < size;) {
		const size_t want = size - at < PIECE_SIZE ? size - at : PIECE_SIZE;
		const uint8_t *data;
		int64_t got = input_look(input, want, &data);
		char samples[TEXT_SIZE];
		uint8_t *more;

		if (got < 0)
			return from_input_failed(r->scan, (int)got);
		if ((size_t)got < want)
			return from_damaged(r->scan, 0, "the header of %s is cut short",
					    text_counted(samples, r->count, "sample"));
		/* As it comes: a count that is wrong costs no memory. */
		if (at == room) {
			room = room ? 2 * room : PIECE_SIZE;
			more = realloc(r->tables, room);
			if (!more)
				return -ENOMEM;
			r->tables = more;
		}
		memcpy(r->tables + at, data, want);
		*crc = crc32_gzip_refl(*crc, data, want);
		input_skip(input, want);
		at += want;
	}
	return 1;
}

/* Return: as read_tables(). */
static int read_header(struct reader *r)
{
	struct input *input = &r->scan->input;
	uint32_t crc, wanted;
	const uint8_t *data;
	int64_t got = input_look(input, HEAD_SIZE, &data);
	int ret;

	if (got < 0)
		return from_input_failed(r->scan, (int)got);
	if (got < HEAD_SIZE)
		return from_damaged(r->scan, 0, "not an FFRecord file");
	wanted = (uint32_t)get(data, 4);
	r->count = get(data + 4, 8);
	crc = crc32_gzip_refl(0, data + 4, 8);
	if (r->count > FROM_RECORD_SIZE_MAX / ENTRY_SIZE)
		return from_damaged(r->scan, 0, "not an FFRecord file, or one of %" PRIu64
				    " samples, which are more than %zu", r->count,
				    FROM_RECORD_SIZE_MAX / ENTRY_SIZE);
	input_skip(input, HEAD_SIZE);
	ret = read_tables(r, &crc);
	if (ret <= 0)
		return ret;
	if (crc != wanted)
		return from_damaged(r->scan, 0, "the header has a wrong checksum");
	for (uint64_t i = 0, at = HEAD_SIZE + r->count * ENTRY_SIZE; i < r->count; i++) {
		if (offset_of(r, i) < at || (!i && offset_of(r, i) != at))
			return from_damaged(r->scan, 0, "offsets that do not follow each other");
		at = offset_of(r, i);
	}
	return 1;
}

/* ---- samples ------------------------------------------------------------------- */

/* Up to its end, or that of the file. Return: 1; 0: cut short; negative errno (said). */
static int read_bytes(struct reader *r, bool last, uint64_t *size, uint32_t *crc, bool keep)
{
	struct input *input = &r->scan->input;
	uint64_t done = 0;
	int ret;

	while (last || done < *size) {
		const size_t want = last || *size - done > PIECE_SIZE ? PIECE_SIZE :
									(size_t)(*size - done);
		const uint8_t *data;
		int64_t got = input_look(input, want, &data);
		const size_t take = got < (int64_t)want ? (size_t)(got < 0 ? 0 : got) : want;

		if (got < 0)
			return from_input_failed(r->scan, (int)got);
		*crc = crc32_gzip_refl(*crc, data, take);
		ret = keep ? from_append(r->scan, data, take) : 0;
		if (ret)
			return ret;
		input_skip(input, take);
		done += take;
		if (take == want)
			continue;
		if (!last)
			return from_damaged(r->scan, offset_of(r, r->number),
					    "sample %" PRIu64 " is cut short", r->number);
		break;
	}
	*size = done;
	return 1;
}

/* Return: as read_bytes(). */
static int read_sample(struct reader *r)
{
	struct from_scan *scan = r->scan;
	struct store *store = &scan->from->store;
	const bool plain = from_is_plain(scan), last = r->number + 1 == r->count;
	const uint64_t offset = offset_of(r, r->number), stored = store->size;
	uint64_t size = last ? 0 : offset_of(r, r->number + 1) - offset;
	uint64_t place = from_place(scan, offset);
	char key[FROM_NUMBER_KEY_MAX];
	uint32_t crc = 0;
	int ret = plain ? 0 : from_store(scan, offset, &place);

	if (!ret)
		ret = read_bytes(r, last, &size, &crc, !plain);
	if (ret > 0 && crc == checksum_of(r, r->number)) {
		ret = from_number_key(scan, r->number, key);
		ret = from_sample(scan, key, (size_t)ret, size, place);
		return ret ? ret : 1;
	}
	if (!plain)
		store_truncate(store, stored);
	if (ret <= 0)
		return ret;
	ret = from_damaged(scan, offset, "sample %" PRIu64 " has a wrong checksum", r->number);
	return ret ? ret : 1;
}

static int ffrecord_scan(struct from_scan *scan)
{
	struct reader reader = {.scan = scan};
	int ret = read_header(&reader);

	while (ret > 0 && reader.number < reader.count) {
		ret = read_sample(&reader);
		reader.number++;
	}
	free(reader.tables);
	return ret < 0 ? ret : 0;
}

const struct from_format from_ffrecord = {
	.name = "ffrecord",
	.scan = ffrecord_scan,
	.kind = FROM_BLOBS,
	.verifies = true,
};
