/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gunzip.c - fuzz target: any bytes as gzip, and what isa-l compressed, with a byte changed
 *
 * However it is cut into reads, it is the same bytes and the same verdict. What was compressed is
 * right, or refused: members have a checksum and a size.
 */
#include <errno.h>
#include <isa-l/igzip_lib.h>

#include "cmd/from/gunzip.h"
#include "tests/fuzz/input.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define READ_ERROR (-EIO)

struct feed {
	const uint8_t *data;
	size_t size, at;
	size_t most; /* of one read */
	size_t fails; /* from which byte on; SIZE_MAX: never */
};

static int64_t feed_read(void *user, void *data, size_t size)
{
	struct feed *feed = user;
	const size_t left = feed->size - feed->at;
	size_t take = size < feed->most ? size : feed->most;

	if (feed->at >= feed->fails)
		return READ_ERROR;
	take = take < left ? take : left;
	if (take)
		memcpy(data, feed->data + feed->at, take);
	feed->at += take;
	return (int64_t)take;
}

/* Return: 0: to its end, or to OUTPUT_MAX; negative errno. */
static int64_t inflate_all(struct feed *feed, size_t most, uint8_t *output, size_t *size)
{
	struct gunzip *gunzip = gunzip_new(feed_read, feed);
	int64_t got = 1;

	input_assert(gunzip != NULL);
	*size = 0;
	while (got > 0 && *size < OUTPUT_MAX) {
		const size_t room = OUTPUT_MAX - *size < most ? OUTPUT_MAX - *size : most;

		got = gunzip_read(gunzip, output + *size, room);
		input_assert(got <= (int64_t)room);
		*size += got > 0 ? (size_t)got : 0;
	}
	input_assert(got >= 0 || got == -EBADMSG || got == READ_ERROR);
	input_assert(got >= 0 || strlen(gunzip_why(gunzip)));
	gunzip_free(gunzip);
	return got < 0 ? got : 0;
}

/* At once, and in pieces. */
static int64_t inflate_twice(const uint8_t *data, size_t size, uint8_t pieces, uint8_t *output,
			     size_t *got)
{
	static uint8_t again[OUTPUT_MAX];
	struct feed whole = {data, size, 0, SIZE_MAX, SIZE_MAX};
	struct feed parts = {data, size, 0, 1 + (pieces & 15) * 7, SIZE_MAX};
	struct feed fails = {data, size, 0, 1 + (pieces & 15) * 7, size / 2};
	const int64_t ret = inflate_all(&whole, OUTPUT_MAX, output, got);
	size_t count;

	input_assert(inflate_all(&parts, 1 + (size_t)(pieces >> 4) * 1000, again, &count) == ret);
	input_assert(ret || (count == *got && !memcmp(output, again, count)));
	inflate_all(&fails, OUTPUT_MAX, again, &count);
	return ret;
}

/* Return: bytes of one member. */
static size_t deflate_member(const uint8_t *data, size_t size, uint8_t *member, size_t room)
{
	struct isal_zstream stream;

	isal_deflate_stateless_init(&stream);
	stream.gzip_flag = IGZIP_GZIP;
	stream.end_of_stream = 1;
	stream.next_in = (uint8_t *)(uintptr_t)data;
	stream.avail_in = (uint32_t)size;
	stream.next_out = member;
	stream.avail_out = (uint32_t)room;
	input_assert(isal_deflate_stateless(&stream) == COMP_OK);
	return room - stream.avail_out;
}

/* Two members; of one byte, some bits are other ones. */
static void fuzz_changed(const uint8_t *data, size_t size, const uint8_t choice[4])
{
	static uint8_t output[OUTPUT_MAX];
	const size_t first = size * choice[0] / 255, room = 2 * size + 1024;
	uint8_t *file = malloc(room);
	size_t whole, got, at;
	int64_t ret;

	input_assert(file != NULL);
	whole = deflate_member(data, first, file, room);
	whole += deflate_member(data + first, size - first, file + whole, room - whole);
	at = (choice[1] | (size_t)choice[2] << 8) % whole;
	file[at] ^= choice[3];
	ret = inflate_twice(file, whole, choice[1], output, &got);
	input_assert(ret || (got == size && !memcmp(output, data, size)));
	input_assert(!ret || choice[3]);
	file[at] ^= choice[3];
	/* Cut short: an error, unless it is between the members. */
	at = (choice[1] | (size_t)choice[2] << 8) % whole;
	ret = inflate_twice(file, at, choice[2], output, &got);
	input_assert(ret || !at || (got == first && !memcmp(output, data, first)));
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t output[OUTPUT_MAX];
	size_t got;

	if (size < 6 || size > OUTPUT_MAX / 4)
		return 0;
	if (data[0] & 1)
		fuzz_changed(data + 5, size - 5, data + 1);
	else
		inflate_twice(data + 2, size - 2, data[1], output, &got);
	return 0;
}
