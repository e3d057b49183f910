/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.h - how snapshots and datasets look, wherever a command prints them
 */
#ifndef STELE_CMD_SHOW_H
#define STELE_CMD_SHOW_H

#include <jansson.h>

#include "stele.h"

/* A table, each row behind `indent`. */
void show_snapshot_head(const char *indent);
void show_snapshot(const char *indent, const struct stele_snapshot_info *info);
json_t *show_snapshot_json(const struct stele_snapshot_info *info);

void show_fields(const struct stele_dataset *ds, uint32_t count);
json_t *show_dataset_json(const struct stele_dataset *ds);

#endif
