/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.h - how commands print datasets
 */
#ifndef STELE_CMD_SHOW_H
#define STELE_CMD_SHOW_H

#include <jansson.h>

#include "stele.h"

void show_fields(const struct stele_dataset *ds, uint32_t count);
json_t *show_dataset_json(const struct stele_dataset *ds);

#endif
