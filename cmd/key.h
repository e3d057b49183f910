/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key.h - KEY and #ID, as users name samples
 */
#ifndef STELE_CMD_KEY_H
#define STELE_CMD_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "stele.h"

/* Is it "#" and digits? Else it is a key. */
bool key_is_id(const char *text, uint64_t *id);

/*
 * The sample that `text` names: by its id only unless `keys_only`.
 * Return: 0; -ENOENT, -ERANGE, and what stele_dataset_lookup() returns.
 */
int key_resolve(struct stele_dataset *ds, const char *text, bool keys_only,
		uint64_t *id);

/*
 * The key of a sample, found by walking the keys section: malloc'ed and
 * terminated. Return: 0; -ENOMEM; -EUCLEAN (it has none); errors of the walk.
 */
int key_of(struct stele_dataset *ds, uint64_t id, char **key, size_t *size);

/*
 * `sample #17 'a/b'` of a sample whose record could not be read: its key comes
 * from the keys section, by a walk.
 * Return: malloc'ed text, escaped; NULL (no memory).
 */
char *key_name(struct stele_dataset *ds, uint64_t id);

#endif
