/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h - the snapshot that a new one is made from
 *
 * A source writes the fields `data` and, where samples have labels, `label`: a
 * base with any other fields cannot be continued. Its labels keep their names.
 */
#ifndef STELE_SEGMENT_BASE_H
#define STELE_SEGMENT_BASE_H

#include "lib/image/snapshot.h"

/* The label of a sample that lies right at the top of its source. */
#define STELE_NO_CLASS INT64_C(-1)

struct stele_base {
	struct stele_image *image; /* the caller's */
	struct stele_snapshot snapshot;
	bool has_labels;
	const struct stele_names *names; /* of the labels; NULL: no labels */
	uint32_t *sorted; /* owned: their values, in the order of the names */
};

/*
 * Load the snapshot with this index in the catalog. Release also on errors.
 * Return: 0; -EOPNOTSUPP (other fields, logged); errors of
 * stele_snapshot_load().
 */
int stele_base_load(struct stele_base *base, struct stele_image *image,
		    uint32_t index);
/* Idempotent on a zeroed struct. */
void stele_base_release(struct stele_base *base);

/* The value that has this name; STELE_NO_CLASS: none. */
int64_t stele_base_label(const struct stele_base *base, const char *name,
			 size_t size);

#endif
