/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping.c - how a mapping looks, for map and maps
 */
#include "mapping.h"

#include "json.h"

json_t *mapping_json(const struct stele_mapping_info *info)
{
	json_t *object = json_make();

	json_set_text(object, "name", info->name);
	if (info->target)
		json_set_text(object, "target", info->target);
	json_set_text(object, "snapshot", info->snapshot);
	json_set_text(object, "via", info->via);
	json_set_uuid(object, "uuid", info->uuid);
	json_set_hex(object, "digest", info->digest, sizeof(info->digest));
	json_set_number(object, "samples", info->sample_count);
	json_set_time(object, "time", info->time);
	json_set(object, "read_only", json_boolean(info->read_only));
	json_set(object, "pinned", json_boolean(info->pinned));
	json_set(object, "stale", json_boolean(info->stale));
	return object;
}
