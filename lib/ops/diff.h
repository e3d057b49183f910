/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h - what two open snapshots have different, by key
 *
 * A segment that both have (same tree root: same samples, wherever they lie)
 * is not read, but for the keys of what only one of the two deleted. Of other
 * segments the keys are walked; digests are read only of keys that both have
 * with the same size.
 */
#ifndef STELE_OPS_DIFF_H
#define STELE_OPS_DIFF_H

#include "lib/read/dataset.h"

/* As stele_diff(). */
int stele_dataset_diff(const struct stele_dataset *a,
		       const struct stele_dataset *b, stele_diff_fn fn,
		       void *user, struct stele_diff_report *report);

#endif
