/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where.h - the samples of a snapshot that are left out, as keys: by an expression, by #ID
 *
 * For a new snapshot of those for which an expression is true: the others are deleted.
 */
#ifndef STELE_CMD_WHERE_H
#define STELE_CMD_WHERE_H

#include "keys.h"

struct where {
	const char *expression; /* NULL: nothing is left out */
	const char *target;	/* whose snapshot is asked for, PATH@NEW */
	char base[STELE_NAME_SIZE_MAX + 1]; /* it starts from; "": the newest, which is set */
};

/*
 * Add the keys of all samples for which it is false or NULL, and of those that `keys` has by
 * id. Return: 0; negative errno (said); -ENOENT also if the expression is true for none;
 * -EINVAL if an #ID is a key, too.
 */
int where_add(struct where *where, struct keys *keys);

#endif
