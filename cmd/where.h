/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where.h - the samples of a snapshot that are left out, as ids: by an expression, by #ID
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

	/* Found: */
	uint64_t *ids; /* owned: ascending; NULL: there was nothing to look for */
	size_t id_count;
	uint8_t digest[STELE_DIGEST_SIZE]; /* of the snapshot in which they are ids */
};

/*
 * Find all samples for which the expression is false or NULL, and those that `keys` has by
 * id, but none that it has by key. Return: 0; negative errno (said); -ENOENT also if the
 * expression is true for none; -EINVAL if an #ID is a key, too. Release in any case.
 */
int where_find(struct where *where, const struct keys *keys);
void where_release(struct where *where);

/* Of an expression that no sample meets: "label = 'cat'" compares a class's number with a name. */
void where_hint_names(const struct stele_dataset *ds, const char *expression);

#endif
