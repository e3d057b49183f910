/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.h - what a tar archive has in front of a file, and at its end
 *
 * ustar; a pax header stands before it where a path, a size or a time does not
 * fit. Nothing of the machine, the user or a library goes in: same samples,
 * same bytes. Paths are raw bytes.
 */
#ifndef STELE_CMD_TAR_H
#define STELE_CMD_TAR_H

#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK_SIZE	512u
#define TAR_RECORD_SIZE 10240u /* an archive is a multiple of it */
#define TAR_PATH_MAX	8192u
#define TAR_HEADER_MAX	(TAR_PATH_MAX + 2048u)

/*
 * The blocks before a file's bytes: mode 0644, owned by 0. `path_size`: 1 to
 * TAR_PATH_MAX. Return: their size.
 */
size_t tar_header(char out[TAR_HEADER_MAX], const char *path, size_t path_size,
		  uint64_t size, int64_t time);
/* Zeros that follow a file of `size` bytes. */
size_t tar_padding(uint64_t size);
/* Zeros that end an archive of `size` bytes. */
size_t tar_ending(uint64_t size);

#endif
