/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h - the handle behind stele_dataset_*: one snapshot, open for reading
 *
 * Immutable after create, but for the count of who uses it. Opening by name or target is
 * lib/node/open.c.
 */
#ifndef STELE_READ_DATASET_H
#define STELE_READ_DATASET_H

#include <stdatomic.h>

#include "lib/device/target.h"
#include "lib/image/snapshot.h"

struct stele_dataset {
	struct stele_image image;
	struct stele_snapshot snapshot;
	enum stele_verify verify; /* not DEFAULT */
	uint64_t slot_size_max; /* over all runs */
	_Atomic uint32_t users; /* readers, cursors, views: it stays open under them */
};

/* From when a handle points to it until it does not any more. */
void stele_dataset_enter(struct stele_dataset *ds);
void stele_dataset_leave(struct stele_dataset *ds);

/*
 * Load the snapshot that `target` names. Takes `dev`, also when it fails.
 * Return: as stele_dataset_open().
 */
int stele_dataset_create(struct stele_device *dev,
			 const struct stele_target *target,
			 const struct stele_open_opts *opts,
			 struct stele_dataset **out);

/* Of options that opened it. Return: 0; -EINVAL (logged). */
int stele_dataset_check(const struct stele_open_opts *opts,
			const struct stele_log *log);

/*
 * How much has to be checked where so much is wanted; never DEFAULT. Checksums, where
 * only they tell whether what was read is of the snapshot.
 */
enum stele_verify stele_dataset_verify(const struct stele_dataset *ds,
				       enum stele_verify wanted);

#endif
