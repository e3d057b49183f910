/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h - the handle behind stele_dataset_*: one snapshot, open for reading
 *
 * Immutable after create. Opening by name or target is lib/open.c.
 */
#ifndef STELE_READ_DATASET_H
#define STELE_READ_DATASET_H

#include "lib/device/target.h"
#include "lib/image/snapshot.h"

struct stele_dataset {
	struct stele_image image;
	struct stele_snapshot snapshot;
	enum stele_verify verify;
	uint64_t slot_size_max;
};

/* Takes `dev`, also when it fails. */
int stele_dataset_create(struct stele_device *dev,
			 const struct stele_target *target,
			 const struct stele_open_opts *opts,
			 struct stele_dataset **out);

/*
 * Make a sample of a slot in memory: find its parts, and check as `verify` says. `hash` is needed for
 * DIGEST only. sets sample->status, and id, data, ... ; returns it.
 */
struct stele_hash;
int stele_dataset_decode(const struct stele_dataset *ds, uint64_t id,
			 const struct stele_segment *segment, uint64_t number,
			 const void *slot, uint64_t slot_size,
			 enum stele_verify verify, struct stele_hash *hash,
			 struct stele_sample *sample);

#endif
