/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compressed.c - fuzz target: any bytes as a compressed file, read and looked at
 *
 * Whether they are read as they come, or through the window, from a file or from a pipe: it is
 * the same bytes and the same verdict.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd/from/input.h"
#include "cmd/libarchive.h"
#include "tests/fuzz/input.h"

#define OUTPUT_MAX ((size_t)1 << 20)

static int tick(void *user, uint64_t bytes)
{
	*(uint64_t *)user += bytes;
	return 0;
}

/* As it comes. Return: 0: to its end, or to OUTPUT_MAX; negative errno. */
static int64_t read_all(struct input *input, size_t most, uint8_t *output, size_t *size)
{
	int64_t got = input_open(input);

	*size = 0;
	if (got)
		return got;
	do {
		const size_t room = OUTPUT_MAX - *size < most ? OUTPUT_MAX - *size : most;

		got = input_read(input, output + *size, room);
		input_assert(got <= (int64_t)room);
		*size += got > 0 ? (size_t)got : 0;
	} while (got > 0 && *size < OUTPUT_MAX);
	return got < 0 ? got : 0;
}

/* Through the window, as read_all(). */
static int64_t look_all(struct input *input, size_t most, uint8_t *output, size_t *size)
{
	const uint8_t *data;
	int64_t got = input_open(input);

	*size = 0;
	if (got)
		return got;
	while ((got = input_look(input, most, &data)) > 0 && *size < OUTPUT_MAX) {
		size_t take = (size_t)got < most ? (size_t)got : most;

		take = OUTPUT_MAX - *size < take ? OUTPUT_MAX - *size : take;
		input_assert(take || !got);
		memcpy(output + *size, data, take);
		*size += take;
		got = input_skip(input, take);
		if (got)
			return got;
		input_assert(input->offset == *size);
	}
	return got < 0 ? got : 0;
}

/* Read in one way, and closed. */
static int64_t run(int file, const struct input *how, bool look, size_t most, uint8_t *output,
		   size_t *size)
{
	struct input input = *how;
	uint64_t ticked = 0;
	int64_t ret;

	input.fd = dup(file);
	input_assert(input.fd >= 0 && lseek(input.fd, 0, SEEK_SET) == 0);
	input.tick = tick;
	input.user = &ticked;
	ret = (look ? look_all : read_all)(&input, most, output, size);
	input_assert(ret <= 0);
	input_assert(ret != -EBADMSG || strlen(input_why(&input)));
	input_assert(ticked == input.at);
	input_close(&input);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t output[OUTPUT_MAX], again[OUTPUT_MAX];
	struct input how = {.regular = true};
	size_t got, count;
	int64_t ret;
	int fd;

	if (size < 3 || !libarchive_load())
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	input_assert(fd >= 0 && write(fd, data + 2, size - 2) == (ssize_t)size - 2);
	how.compression = input_compression(data + 2, size - 2);
	ret = run(fd, &how, false, OUTPUT_MAX, output, &got);
	input_assert(run(fd, &how, false, 1 + (size_t)data[0] * 37, again, &count) == ret);
	input_assert(ret || (count == got && !memcmp(output, again, got)));
	how.small = data[1] & 1;
	how.regular = data[1] & 2;
	input_assert(run(fd, &how, true, 1 + (size_t)data[1] * 37, again, &count) == ret);
	input_assert(ret || (count == got && !memcmp(output, again, got)));
	close(fd);
	return 0;
}
