/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.c - a file, its decompressed stream, and a window on that
 */
#include "from/input.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "from/gunzip.h"
#include "libarchive.h"
#include "stop.h"

#define BUFFER_SIZE ((size_t)256 << 10)
#define STOP_MS	    500 /* of waiting, until the next look at stop_requested() */

/* ---- the file ------------------------------------------------------------ */

/* As much as it takes to see the first block that a compression has. */
#define REWIND_MAX ((size_t)16 << 20)

static int keep_first(struct input *input, const void *data, size_t size)
{
	struct input_first *first = input->first;
	uint8_t *all = first->size + size > REWIND_MAX ?
			       NULL : realloc(first->data, first->size + size);

	if (!all)
		return -ENOMEM;
	memcpy(all + first->size, data, size);
	first->data = all;
	first->size += size;
	return 0;
}

int input_wait(int fd)
{
	struct pollfd there = {.fd = fd, .events = POLLIN};
	int ready;

	while ((ready = poll(&there, 1, STOP_MS)) <= 0) {
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (stop_requested())
			return -ECANCELED;
	}
	return 0;
}

static ssize_t read_file(struct input *input, void *data, size_t size)
{
	ssize_t got = input->regular ? 0 : input_wait(input->fd);

	if (got < 0)
		return got;
	do
		got = input->regular ? pread(input->fd, data, size, (off_t)input->at) :
				       read(input->fd, data, size);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static int64_t read_some(struct input *input, void *data, size_t size)
{
	const size_t first = input->first ? input->first->size : 0;
	ssize_t got;

	if (input->at < first) {
		got = (ssize_t)(size < first - input->at ? size : first - input->at);
		memcpy(data, input->first->data + input->at, (size_t)got);
	} else {
		got = read_file(input, data, size);
		if (got > 0 && input->rewinds && !input->regular)
			input->error = keep_first(input, data, (size_t)got);
	}
	if (got < 0)
		return input->error = (int)got;
	input->at += (uint64_t)got;
	if (input->tick && !input->error)
		input->error = input->tick(input->user, (uint64_t)got);
	return input->error ? input->error : got;
}

/* ---- compression --------------------------------------------------------- */

/* RFC 8878, 3.1.2, which lz4 shares. */
static bool is_skippable(const uint8_t *data)
{
	return (data[0] & 0xf0) == 0x50 && !memcmp(data + 1, "\x2a\x4d\x18", 3);
}

enum input_compression input_compression(const uint8_t *data, size_t size)
{
	static const struct {
		const char *magic;
		size_t size;
	} known[] = {
		{"BZh", 3},
		{"\xfd\x37zXZ\0", 6},
		{"\x28\xb5\x2f\xfd", 4}, /* zstd */
		{"\x04\x22\x4d\x18", 4}, /* lz4 */
		{"\x02\x21\x4c\x18", 4}, /* lz4 -l */
	};

	if (size >= 4 && is_skippable(data))
		return INPUT_FILTER;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (size >= known[i].size &&
		    !memcmp(data, known[i].magic, known[i].size))
			return INPUT_FILTER;
	return gunzip_detect(data, size) ? INPUT_GZIP : INPUT_PLAIN;
}

static int add_filters(struct archive *archive)
{
	/* Without its library, libarchive warns that it uses a program. */
	return libarchive.archive_read_support_filter_bzip2(archive) <
			       ARCHIVE_WARN ||
	       libarchive.archive_read_support_filter_xz(archive) <
			       ARCHIVE_WARN ||
	       libarchive.archive_read_support_filter_zstd(archive) <
			       ARCHIVE_WARN ||
	       libarchive.archive_read_support_filter_lz4(archive) <
			       ARCHIVE_WARN;
}

static int64_t read_raw(void *user, void *data, size_t size)
{
	return read_some(user, data, size);
}

static la_ssize_t read_filtered(struct archive *archive, void *user,
				const void **data)
{
	struct input *input = user;
	const size_t had = input->head_size;
	int64_t got = read_some(input, input->buffer + had, BUFFER_SIZE - had);

	*data = input->buffer;
	memcpy(input->buffer, input->head, had);
	input->head_size = 0;
	if (got >= 0)
		got += (int64_t)had;
	if (got > 0)
		input->given = (size_t)got;
	if (got < 0)
		libarchive.archive_set_error(archive, (int)-got, "%s",
					     strerror((int)-got));
	return got;
}

/* Return: how many, fewer at the end; negative errno. */
static int64_t read_raw_full(struct input *input, uint8_t *data, size_t size)
{
	size_t done = 0;
	int64_t got = 1;

	while (done < size && (got = read_some(input, data + done, size - done)) > 0)
		done += (size_t)got;
	return got < 0 ? got : (int64_t)done;
}

/* What pzstd begins with: libarchive knows such frames behind others only. */
static int skip_frames(struct input *input)
{
	int64_t got;

	while ((got = read_raw_full(input, input->head, FRAME_HEAD)) == FRAME_HEAD &&
	       is_skippable(input->head)) {
		const uint8_t *size = input->head + 4;
		uint64_t left = size[0] | size[1] << 8 | size[2] << 16 | (uint64_t)size[3] << 24;

		while (left && got > 0) {
			got = read_some(input, input->buffer,
					left < BUFFER_SIZE ? (size_t)left : BUFFER_SIZE);
			left -= got > 0 ? (uint64_t)got : 0;
		}
		if (got <= 0)
			return got < 0 ? (int)got : -EBADMSG;
		input->skipped = input->at;
	}
	input->head_size = got > 0 ? (size_t)got : 0;
	return got < 0 ? (int)got : 0;
}

/*
 * Begins it as one of them, by more than the bytes of input_compression()? Or libarchive would
 * give what is compressed as it is.
 */
static bool is_filtered(const struct input *input)
{
	return libarchive.archive_filter_code(input->filter, 0) != ARCHIVE_FILTER_NONE;
}

static int begin_filter(struct input *input)
{
	struct archive_entry *entry;
	int got = libarchive.archive_read_open2(input->filter, input, NULL, read_filtered, NULL,
						NULL);

	if (got < ARCHIVE_WARN || !is_filtered(input))
		return -EBADMSG;
	got = libarchive.archive_read_next_header(input->filter, &entry);
	input->empty = got == ARCHIVE_EOF && !libarchive.archive_error_string(input->filter);
	return got == ARCHIVE_OK || input->empty ? 0 : -EBADMSG;
}

static int open_filter(struct input *input)
{
	int ret;

	input->filter = libarchive.archive_read_new();
	input->buffer = malloc(BUFFER_SIZE);
	if (!input->filter || !input->buffer || add_filters(input->filter) ||
	    libarchive.archive_read_support_format_raw(input->filter) ||
	    libarchive.archive_read_support_format_empty(input->filter))
		return -ENOMEM;
	ret = skip_frames(input);
	if (!ret)
		ret = begin_filter(input);
	if (ret && !input->error)
		input->error = ret;
	return ret ? input->error : 0;
}

int input_open(struct input *input)
{
	if (input->compression == INPUT_FILTER)
		return open_filter(input);
	if (input->compression != INPUT_GZIP)
		return 0;
	input->gunzip = gunzip_new(read_raw, input);
	return input->gunzip ? 0 : -ENOMEM;
}

void input_close(struct input *input)
{
	if (input->filter)
		libarchive.archive_read_free(input->filter);
	if (input->fd >= 0)
		close(input->fd);
	gunzip_free(input->gunzip);
	free(input->buffer);
	free(input->window);
	*input = (struct input){.fd = -1};
}

const char *input_why(const struct input *input)
{
	const char *why = NULL;

	if (input->trails)
		return "what follows is not compressed as what is before it";
	if (input->gunzip)
		return gunzip_why(input->gunzip);
	if (input->filter)
		why = libarchive.archive_error_string(input->filter);
	/* Of xz: what liblzma says where more should follow. */
	if (why && strstr(why, "No progress is possible"))
		why = "it ends within a compressed stream";
	return why ? why : "it cannot be decompressed";
}

/* ---- bytes --------------------------------------------------------------- */

bool input_is_zero(const uint8_t *data, size_t size)
{
	return !size || (!data[0] && !memcmp(data, data + 1, size - 1));
}

/*
 * Streams may follow each other, and then zeros, as tar fills up blocks. For libarchive, what
 * does not begin as a stream of bzip2 or lz4 is the end: so may be the next one, damaged.
 */
static int64_t check_end(struct input *input)
{
	const uint64_t taken = (uint64_t)libarchive.archive_filter_bytes(input->filter, -1);
	const uint64_t left = input->at - input->skipped - taken;
	int64_t got = (int64_t)left;

	if (input->whole)
		return 0;
	input->trails = left > input->given ||
			!input_is_zero(input->buffer + (input->given - left), (size_t)left);
	while (!input->trails && (got = read_some(input, input->buffer, BUFFER_SIZE)) > 0)
		input->trails = !input_is_zero(input->buffer, (size_t)got);
	input->whole = !got;
	return input->trails ? -EBADMSG : got;
}

static int64_t read_filter(struct input *input, void *data, size_t size)
{
	const int64_t got =
		input->empty ? 0 : libarchive.archive_read_data(input->filter, data, size);

	return got || !size ? got : check_end(input);
}

int64_t input_read(struct input *input, void *data, size_t size)
{
	int64_t got;

	if (input->gunzip)
		got = gunzip_read(input->gunzip, data, size);
	else if (input->filter)
		got = read_filter(input, data, size);
	else
		return read_some(input, data, size);
	if (got < 0 && !input->error)
		input->error = -EBADMSG;
	return got < 0 ? input->error : got;
}

bool input_seeks(const struct input *input)
{
	return input->regular && !input->compression;
}

int input_seek(struct input *input, uint64_t size)
{
	input->at += size;
	return input->tick ? input->tick(input->user, size) : 0;
}

/* Move what is left to the front, and have room for `size` bytes. */
static int make_room(struct input *input, size_t size)
{
	const size_t have = input->end - input->begin;

	if (input->begin)
		memmove(input->window, input->window + input->begin, have);
	input->begin = 0;
	input->end = have;
	if (size > input->room) {
		size_t room = size > BUFFER_SIZE ? size + size / 2 : BUFFER_SIZE;
		uint8_t *window = realloc(input->window, room);

		if (!window)
			return -ENOMEM;
		input->window = window;
		input->room = room;
	}
	return 0;
}

int64_t input_look(struct input *input, size_t size, const uint8_t **data)
{
	if (input->end - input->begin < size && !input->ended) {
		int ret = make_room(input, size);

		if (ret)
			return ret;
		while (input->end < size && !input->ended) {
			const size_t most = input->room - input->end;
			const size_t want = input->small && size < INPUT_SMALL_SIZE ?
						    INPUT_SMALL_SIZE :
						    most;
			int64_t got = input_read(input, input->window + input->end,
						want < most ? want : most);

			if (got < 0)
				return got;
			input->ended = !got;
			input->end += (size_t)got;
		}
	}
	*data = input->window ? input->window + input->begin :
				(const uint8_t *)"";
	return (int64_t)(input->end - input->begin);
}

int input_skip(struct input *input, uint64_t size)
{
	while (size) {
		const uint64_t have = input->end - input->begin;
		const uint64_t taken = size < have ? size : have;
		const uint8_t *data;
		int64_t got;

		input->begin += (size_t)taken;
		input->offset += taken;
		size -= taken;
		if (!size)
			break;
		if (input_seeks(input)) {
			input->offset += size;
			return input_seek(input, size);
		}
		got = input_look(input, 1, &data);
		if (got <= 0)
			return got < 0 ? (int)got : -EBADMSG;
	}
	return 0;
}
