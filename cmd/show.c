/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.c - how datasets look, wherever a command prints them
 */
#include "show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "json.h"
#include "text.h"
#include "tune/tune.h"

void show_fields(const struct stele_dataset *ds, uint32_t count)
{
	struct stele_field field = {.size = sizeof(field)};
	char *name, type[FIELD_TYPE_SIZE];

	for (uint32_t i = 0; i < count; i++) {
		if (stele_dataset_field(ds, i, &field) < 0)
			break;
		name = text_escape(field.name, strlen(field.name));
		printf("%-12s%s %s", i ? "" : "fields", name ? name : "?",
		       field_type(&field, type));
		free(name);
		if (field.name_count)
			printf(" (%" PRIu32 " class%s)", field.name_count,
			       field.name_count == 1 ? "" : "es");
		putchar('\n');
	}
}

static json_t *json_fields(const struct stele_dataset *ds, uint32_t count)
{
	json_t *list = json_make_list();
	struct stele_field field = {.size = sizeof(field)};

	for (uint32_t i = 0; i < count; i++)
		if (stele_dataset_field(ds, i, &field) == 0)
			json_add(list, field_json(&field));
	return list;
}

json_t *show_dataset_json(const struct stele_dataset *ds)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_profile profile = {.size = sizeof(profile)};
	json_t *object = json_make();

	stele_dataset_info(ds, &info);
	json_set_text(object, "name", info.snapshot);
	json_set_hex(object, "digest", info.digest, sizeof(info.digest));
	json_set_time(object, "time", info.time);
	json_set_number(object, "samples", info.sample_count);
	json_set_number(object, "deleted", info.deleted_count);
	json_set_number(object, "payload_size", info.payload_size);
	json_set_number(object, "slots_size", info.slots_size);
	json_set_number(object, "padding_size", info.padding_size);
	json_set_number(object, "slot_size_max", info.slot_size_max);
	json_set_number(object, "runs", info.run_count);
	json_set_number(object, "table_size", info.table_size);
	json_set_number(object, "segments", info.segment_count);
	json_set_number(object, "granule", info.granule);
	json_set_number(object, "logical_block", info.logical_block);
	json_set_number(object, "transfer_max", info.transfer_max);
	json_set_text(object, "backend", info.backend);
	if (!stele_dataset_profile(ds, &profile))
		json_set(object, "profile",
				    tune_profile_json(&profile));
	json_set(object, "fields",
			    json_fields(ds, info.field_count));
	return object;
}
