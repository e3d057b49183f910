/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_fields.h - how the fields of two snapshots differ, and what they call classes
 */
#ifndef STELE_OPS_DIFF_FIELDS_H
#define STELE_OPS_DIFF_FIELDS_H

#include "lib/read/dataset.h"

/* Two snapshots, and the targets that they are called by. */
struct stele_diff_sides {
	const struct stele_dataset *side[2];
	const char *target[2];
};

/*
 * How many fields differ: in name, type, or class names, which the digests of samples do not
 * cover. Each is logged: as a warning, or as INFO if one side has only more classes than the
 * other. A snapshot without samples has no fields to compare, nor have damaged names.
 */
uint64_t stele_diff_fields(const struct stele_diff_sides *sides);

#endif
