/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - the bytes of one shard, decompressed where they have to be
 *
 * By libarchive, except for gzip, whose checksums it does not check. They are read as they
 * come, or through a window, one way or the other. Bytes of a regular file that are skipped
 * are not read.
 */
#ifndef STELE_CMD_FROM_INPUT_H
#define STELE_CMD_FROM_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUT_SMALL_SIZE ((size_t)8 << 10)
#define FRAME_HEAD 8 /* of a skippable frame */

struct archive;
struct gunzip;

/* Called while it is read. Nonzero: it fails with that. */
typedef int (*input_tick_fn)(void *user, uint64_t bytes);

enum input_compression {
	INPUT_PLAIN,
	INPUT_GZIP,
	INPUT_FILTER, /* one of libarchive's */
};

/* How a pipe begins: bytes that were read to find out what it is. */
struct input_first {
	uint8_t *data; /* owned */
	size_t size;
};

struct input {
	/* Set before it is opened. */
	int fd; /* owned */
	bool regular;
	enum input_compression compression;
	bool small; /* most of it will be skipped: read a little at a time */
	struct input_first *first; /* of a pipe, or NULL */
	bool rewinds; /* what is read will be read again: it is kept in `first` */
	input_tick_fn tick;
	void *user;

	struct gunzip *gunzip;
	struct archive *filter;
	uint8_t *buffer; /* of the filter */
	size_t given;	 /* of it */
	uint8_t head[FRAME_HEAD]; /* the filter is given these first */
	size_t head_size;
	uint64_t skipped;   /* bytes of the file that it is not given */
	bool empty;	    /* what it makes of its first streams */
	bool whole, trails; /* behind the filter's end: it is all, or something else follows */
	uint64_t at;	 /* the next byte of the file */
	int error;	 /* of a read, of the tick, -EBADMSG */

	uint8_t *window;
	size_t begin, end, room; /* of the window */
	uint64_t offset;	 /* of its begin, decompressed */
	bool ended;
};

/* By how a file begins. */
enum input_compression input_compression(const uint8_t *data, size_t size);
/* Return: 0; negative errno: of reading, -ENOMEM, -EBADMSG. Close in any case. */
int input_open(struct input *input);
/*
 * Until a pipe has something, or its end: read(2), and open(2) of a FIFO, would go on waiting
 * after a signal. Return: 0; -ECANCELED; negative errno.
 */
int input_wait(int fd);
void input_close(struct input *input);

/* Return: up to `size` bytes; 0: the end; negative errno, -EBADMSG: see input_why(). */
int64_t input_read(struct input *input, void *data, size_t size);
/* Can bytes be passed over without reading them? Even past the end: who does it checks. */
bool input_seeks(const struct input *input);
int input_seek(struct input *input, uint64_t size);

/*
 * Have at least `size` bytes in the window, or all that are left. *data: those, until the
 * next call. Return: how many; negative errno: of reading, -EBADMSG (bad compression, see
 * input_why()), -ENOMEM.
 */
int64_t input_look(struct input *input, size_t size, const uint8_t **data);
/* Go on, by no more than are left (a regular file: no more than it has). */
int input_skip(struct input *input, uint64_t size);
bool input_is_zero(const uint8_t *data, size_t size);
/* What is wrong, after -EBADMSG. */
const char *input_why(const struct input *input);

#endif
