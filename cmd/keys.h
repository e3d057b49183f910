/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h - the keys that a user names, one by one or in a file
 */
#ifndef STELE_CMD_KEYS_H
#define STELE_CMD_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "stele.h"

/* Zeroed at first. */
struct keys {
	struct stele_key_ref *refs; /* owned; the bytes may be */
	size_t count, capacity;
	char **texts; /* owned: of files */
	size_t text_count;
	uint64_t *ids; /* owned: of samples named by #ID */
	size_t id_count;
};

/* `key` must live as long. Return: 0; -ENOMEM. */
int keys_add(struct keys *keys, const char *key, size_t size);
int keys_add_id(struct keys *keys, uint64_t id);
/*
 * One key per line, or with `null` before each NUL byte; empty ones are ignored.
 * "-" is stdin. Return: 0; errno of the file.
 */
int keys_read(struct keys *keys, const char *path, bool null);
void keys_release(struct keys *keys);

#endif
