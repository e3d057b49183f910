/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.h - write a tar archive, file by file, with libarchive, loaded beforehand
 *
 * ustar; with a pax header before a file whose name, size or time does not
 * fit. Nothing about machine or user is included: same files, same bytes.
 * Names are raw bytes: UTF-8 is left unmarked, the rest is marked as
 * binary (hdrcharset).
 */
#ifndef STELE_CMD_TAR_H
#define STELE_CMD_TAR_H

#include <stddef.h>
#include <stdint.h>

#define TAR_PATH_MAX 8192u
#define TAR_WRITE_SIZE (1u << 20)

struct tar;

/*
 * Bytes of the archive go here, a multiple of TAR_WRITE_SIZE each time but the last.
 * Return: 0; negative errno, which ends it.
 */
typedef int (*tar_write_fn)(void *user, const void *data, size_t size);

/* Return: 0; -ENOMEM; -EOPNOTSUPP (no locale C.UTF-8). */
int tar_open(tar_write_fn write, void *user, struct tar **out);
/*
 * A file of mode 0644, owned by 0. `path`: 1 to TAR_PATH_MAX bytes, terminated.
 * Its bytes, `size` in all, and tar_file_end() follow. Return of all three: 0;
 * what the callback returned, now or before; -ENOMEM; -EIO (libarchive refuses it).
 */
int tar_file(struct tar *tar, const char *path, uint64_t size, int64_t time);
int tar_data(struct tar *tar, const void *data, size_t size);
int tar_file_end(struct tar *tar);
/* All three, of a file that is in memory. */
int tar_whole(struct tar *tar, const char *path, const void *data, size_t size, int64_t time);
/* Bytes of the archive so far. */
uint64_t tar_size(const struct tar *tar);
/* Finish the archive. Return: as tar_file(). */
int tar_end(struct tar *tar);
/* NULL is fine. Writes nothing. */
void tar_close(struct tar *tar);

#endif
