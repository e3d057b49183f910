/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.c - what libarchive needs to be told for the same bytes each time
 *
 * It takes names to be in the charset of the locale, and that charset, or that
 * they are binary, holds for all that one writer writes. So the locale is set
 * to UTF-8 while an archive is open, and there are two writers, for names that
 * are UTF-8 and for the others. Neither holds anything back when a file has
 * ended, so that they take turns as files come.
 */
#include "tar.h"

#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libarchive.h"
#include "text.h"

struct tar {
	tar_write_fn write;
	void *user;
	int error; /* of write */
	bool silent; /* what comes now is not wanted */
	struct archive *text, *binary;
	struct archive *now; /* whose file is being written */
	struct archive_entry *entry;
	locale_t utf8, before;
};

/* An error is for result_of(): a writer that saw it would not free its buffers. */
static la_ssize_t pass_on(struct archive *archive, void *user,
			  const void *data, size_t size)
{
	struct tar *tar = user;

	(void)archive;
	if (!tar->error && !tar->silent)
		tar->error = tar->write(tar->user, data, size);
	return (la_ssize_t)size;
}

static int result_of(const struct tar *tar, struct archive *archive, bool good)
{
	if (good || tar->error)
		return tar->error;
	return libarchive.archive_errno(archive) == ENOMEM ? -ENOMEM : -EIO;
}

static int open_writer(struct tar *tar, bool binary, struct archive **out)
{
	struct archive *archive = libarchive.archive_write_new();

	*out = archive;
	if (!archive)
		return -ENOMEM;
	if (libarchive.archive_write_set_format_pax_restricted(archive) ||
	    libarchive.archive_write_add_filter_none(archive) ||
	    libarchive.archive_write_set_bytes_per_block(archive, 0) ||
	    (binary && libarchive.archive_write_set_format_option(
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
	tar->entry = libarchive.archive_entry_new();
	error = tar->entry ? 0 : -ENOMEM;
	if (!error)
		error = open_writer(tar, false, &tar->text);
	if (!error)
		error = open_writer(tar, true, &tar->binary);
	if (error)
		tar_close(tar);
	else
		*out = tar;
	return error;
}

static bool is_text(const char *path)
{
	size_t n = 0;

	for (size_t size = strlen(path); size; path += n, size -= n) {
		n = text_utf8(path, size);
		if (!n)
			return false;
	}
	return true;
}

int tar_file(struct tar *tar, const char *path, uint64_t size, int64_t time)
{
	struct archive_entry *entry =
		libarchive.archive_entry_clear(tar->entry);

	tar->now = is_text(path) ? tar->text : tar->binary;
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
	return result_of(tar, tar->now,
			 libarchive.archive_write_data(tar->now, data, size) ==
				 (la_ssize_t)size);
}

int tar_file_end(struct tar *tar)
{
	return result_of(tar, tar->now,
			 libarchive.archive_write_finish_entry(tar->now) ==
				 ARCHIVE_OK);
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
	int error = result_of(tar, tar->text,
			      libarchive.archive_write_close(tar->text) ==
				      ARCHIVE_OK);

	libarchive.archive_write_free(tar->text);
	tar->text = NULL;
	return error;
}

void tar_close(struct tar *tar)
{
	if (!tar)
		return;
	tar->silent = true;
	free_writer(tar->text);
	free_writer(tar->binary);
	libarchive.archive_entry_free(tar->entry);
	uselocale(tar->before);
	freelocale(tar->utf8);
	free(tar);
}
