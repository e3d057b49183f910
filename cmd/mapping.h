/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.h - how a mapping looks, for map and maps
 */
#ifndef STELE_CMD_MAPPING_H
#define STELE_CMD_MAPPING_H

#include <jansson.h>

#include "stele.h"

json_t *mapping_json(const struct stele_mapping_info *info);

#endif
