/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - patterns of file names with braces: shard-{000..099}.tar, {train,val}.tar
 *
 * As in a shell: the leftmost braces vary slowest, numbers keep the width of the first
 * one when that begins with a 0. Braces that are neither a range nor a list stay.
 */
#ifndef STELE_CMD_FROM_NAMES_H
#define STELE_CMD_FROM_NAMES_H

#include <stddef.h>

#define NAMES_MAX 1000000u

struct names {
	char **list; /* owned, and so are the names */
	size_t count;
};

/* Return: 0; -ENOMEM; -E2BIG (more than NAMES_MAX). Released in any case. */
int names_add(struct names *names, const char *name);
int names_expand(struct names *names, const char *pattern);
/* Idempotent on a zeroed struct. */
void names_release(struct names *names);

#endif
