/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - a temporary file: bytes that cannot be read again from where they came
 *
 * One thread appends, through a buffer; once that is flushed, any number read. The file
 * lies in $TMPDIR, or /var/tmp, without a name.
 */
#ifndef STELE_CMD_STORE_H
#define STELE_CMD_STORE_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed, but `fd` is -1. */
struct store {
	int fd; /* -1: nothing was ever appended */
	uint64_t size;
	uint8_t *buffer;
	size_t used;
};

/* Behind what is there. Return: 0; negative errno. */
int store_append(struct store *store, const void *data, size_t size);
int store_flush(struct store *store);
/* What was flushed. Return: up to `size` bytes; 0: the end; negative errno. */
int64_t store_read(const struct store *store, uint64_t offset, void *data, size_t size);
/* To a size that it had. */
void store_truncate(struct store *store, uint64_t size);
/* Where its file lies, for messages. */
const char *store_directory(void);
void store_release(struct store *store);

#endif
