/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - drawings of what lies where on a target
 */
#ifndef STELE_CMD_VIEW_MAP_H
#define STELE_CMD_VIEW_MAP_H

#include "view/view.h"

/* A strip of view->span bytes with the segments that a snapshot has: alone, and with others. */
void map_snapshot(struct view *view, uint32_t index);
/* Below it, or another: places on the target. */
void map_ticks(FILE *to, uint64_t span);

#endif
