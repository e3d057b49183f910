/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.h - how commands print datasets
 */
#ifndef STELE_CMD_SHOW_H
#define STELE_CMD_SHOW_H

#include <jansson.h>

#include "stele.h"

/*
 * The fields, and how many samples are of each class; of more samples than
 * SHOW_COUNTED_MAX, whose columns take a while to read, only the names.
 */
#define SHOW_COUNTED_MAX (UINT64_C(1) << 24)
/* Both: what failed is logged, and the last error of it in *error, which is else left alone. */
void show_fields(struct stele_dataset *ds, uint32_t count, int *error);
json_t *show_dataset_json(struct stele_dataset *ds, int *error);

#endif
