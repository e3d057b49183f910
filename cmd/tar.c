/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.c - what libarchive needs to be told for the same bytes each time
 *
 * It takes names to be in the charset of the locale, and that charset, or that
 * they are binary, holds for all that one writer writes. So the locale is set
 * to UTF-8 while an archive is open, and there are several writers: for names that
 * are UTF-8, for the others, and for files that need no pax header whatever, of
 * which its writer of ustar makes the same bytes in a fifth of the time. None
 * holds anything back when a file has ended, so that they take turns as files come.
 * Their many small pieces are put together here.
 */
#include "tar.h"

#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libarchive.h"
#include "text.h"

#define USTAR_NAME_MAX 100u
#define USTAR_SIZE_MAX ((UINT64_C(1) << 33) - 1)
#define USTAR_TIME_MAX INT64_C(0x7ffffffe) /* of pax, which adds larger ones */

enum writer { USTAR, PAX, PAX_BINARY, WRITERS };

struct tar {
	tar_write_fn write;
	void *user;
	int error; /* of write */
	bool silent; /* what comes now is not wanted */
	char *buffer;
	size_t held; /* bytes in it */
	uint64_t size; /* of the archive, with these */
	struct archive *writers[WRITERS];
	struct archive *now; /* whose file is being written */
	struct archive_entry *entry;
	locale_t utf8, before;
};

static int flush(struct tar *tar)
{
	const size_t size = tar->held;

	tar->held = 0;
	return size ? tar->write(tar->user, tar->buffer, size) : 0;
}

/* Whole buffers go out as they are. */
static int hold(struct tar *tar, const char *data, size_t size)
{
	int error = 0;

	tar->size += size;
	while (size && !error) {
		size_t n = TAR_WRITE_SIZE - tar->held;

		if (!tar->held && size >= TAR_WRITE_SIZE) {
			n = size - size % TAR_WRITE_SIZE;
			error = tar->write(tar->user, data, n);
		} else {
			n = n < size ? n : size;
			memcpy(tar->buffer + tar->held, data, n);
			tar->held += n;
			if (tar->held == TAR_WRITE_SIZE)
				error = flush(tar);
		}
		data += n;
		size -= n;
	}
	return error;
}

/* An error is for result_of(): a writer that saw it would not free its buffers. */
static la_ssize_t pass_on(struct archive *archive, void *user,
			  const void *data, size_t size)
{
	struct tar *tar = user;

	(void)archive;
	if (!tar->error && !tar->silent)
		tar->error = hold(tar, data, size);
	return (la_ssize_t)size;
}

static int result_of(const struct tar *tar, struct archive *archive, bool good)
{
	if (good || tar->error)
		return tar->error;
	return libarchive.archive_errno(archive) == ENOMEM ? -ENOMEM : -EIO;
}

static int open_writer(struct tar *tar, enum writer kind)
{
	struct archive *archive = libarchive.archive_write_new();

	tar->writers[kind] = archive;
	if (!archive)
		return -ENOMEM;
	if ((kind == USTAR ?
		     libarchive.archive_write_set_format_ustar(archive) :
		     libarchive.archive_write_set_format_pax_restricted(archive)) ||
	    libarchive.archive_write_add_filter_none(archive) ||
	    libarchive.archive_write_set_bytes_per_block(archive, 0) ||
	    (kind == PAX_BINARY &&
	     libarchive.archive_write_set_format_option(
		     archive, "pax", "hdrcharset", "BINARY")) ||
	    libarchive.archive_write_open2(archive, tar, NULL, pass_on, NULL,
					   NULL))
		return result_of(tar, archive, false);
	return 0;
}

int tar_open(tar_write_fn write, void *user, struct tar **out)
{
	struct tar *tar = calloc(1, sizeof(*tar));
	int error;

	*out = NULL;
	if (!tar)
		return -ENOMEM;
	tar->write = write;
	tar->user = user;
	tar->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!tar->utf8) {
		free(tar);
		return errno == ENOMEM ? -ENOMEM : -EOPNOTSUPP;
	}
	tar->before = uselocale(tar->utf8);
	tar->buffer = malloc(TAR_WRITE_SIZE);
	tar->entry = libarchive.archive_entry_new();
	error = tar->buffer && tar->entry ? 0 : -ENOMEM;
	for (enum writer kind = USTAR; kind < WRITERS && !error; kind++)
		error = open_writer(tar, kind);
	if (error)
		tar_close(tar);
	else
		*out = tar;
	return error;
}

static bool is_text(const char *path, size_t size)
{
	size_t n = 0;

	for (; size; path += n, size -= n) {
		n = text_utf8(path, size);
		if (!n)
			return false;
	}
	return true;
}

static bool is_ascii(const char *path, size_t size)
{
	while (size && !(path[size - 1] & 0x80))
		size--;
	return !size;
}

/* Names that ustar could divide are pax's: where it does is up to libarchive. */
static enum writer writer_for(const char *path, uint64_t size, int64_t time)
{
	const size_t length = strlen(path);

	if (length <= USTAR_NAME_MAX && size <= USTAR_SIZE_MAX && time >= 0 &&
	    time <= USTAR_TIME_MAX && is_ascii(path, length))
		return USTAR;
	return is_text(path, length) ? PAX : PAX_BINARY;
}

int tar_file(struct tar *tar, const char *path, uint64_t size, int64_t time)
{
	struct archive_entry *entry =
		libarchive.archive_entry_clear(tar->entry);

	tar->now = tar->writers[writer_for(path, size, time)];
	libarchive.archive_entry_copy_pathname(entry, path);
	libarchive.archive_entry_set_filetype(entry, AE_IFREG);
	libarchive.archive_entry_set_perm(entry, 0644);
	libarchive.archive_entry_set_size(entry, (la_int64_t)size);
	libarchive.archive_entry_set_mtime(entry, (time_t)time, 0);
	/* A warning means that something has been left out or changed. */
	return result_of(tar, tar->now,
			 libarchive.archive_write_header(tar->now, entry) ==
				 ARCHIVE_OK);
}

int tar_data(struct tar *tar, const void *data, size_t size)
{
	const char *at = data;
	la_ssize_t taken = 0;

	/* It takes no more than INT_MAX bytes at a time. */
	for (; size && taken >= 0; at += taken, size -= (size_t)taken) {
		taken = libarchive.archive_write_data(tar->now, at, size);
		if (taken <= 0)
			break;
	}
	return result_of(tar, tar->now, !size);
}

int tar_file_end(struct tar *tar)
{
	return result_of(tar, tar->now,
			 libarchive.archive_write_finish_entry(tar->now) ==
				 ARCHIVE_OK);
}

int tar_whole(struct tar *tar, const char *path, const void *data, size_t size, int64_t time)
{
	int error = tar_file(tar, path, size, time);

	if (!error && size)
		error = tar_data(tar, data, size);
	return error ? error : tar_file_end(tar);
}

uint64_t tar_size(const struct tar *tar)
{
	return tar->size;
}

/* What failed does not fill up its last file, however large that should be. */
static void free_writer(struct archive *archive)
{
	if (!archive)
		return;
	libarchive.archive_write_fail(archive);
	libarchive.archive_write_close(archive); /* what only that frees */
	libarchive.archive_write_free(archive);
}

int tar_end(struct tar *tar)
{
	struct archive *last = tar->writers[USTAR];
	int error = result_of(tar, last,
			      libarchive.archive_write_close(last) == ARCHIVE_OK);

	libarchive.archive_write_free(last);
	tar->writers[USTAR] = NULL;
	return error ? error : flush(tar);
}

void tar_close(struct tar *tar)
{
	if (!tar)
		return;
	tar->silent = true;
	for (enum writer kind = USTAR; kind < WRITERS; kind++)
		free_writer(tar->writers[kind]);
	libarchive.archive_entry_free(tar->entry);
	uselocale(tar->before);
	freelocale(tar->utf8);
	free(tar->buffer);
	free(tar);
}
