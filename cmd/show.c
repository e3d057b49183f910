/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.c - how datasets look, wherever a command prints them
 */
#include "show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "columns.h"
#include "fields.h"
#include "json.h"
#include "text.h"

#define CLASSES_MAX 20u /* of a field that people are shown */

/* By value, then of others; owned by the caller. NULL: not counted. */
static uint64_t *count_classes(struct stele_dataset *ds, uint32_t index,
			       const struct stele_field *field, int *error)
{
	uint64_t *counts;
	int failed;

	if (!field->name_count || stele_dataset_count(ds) > SHOW_COUNTED_MAX)
		return NULL;
	counts = malloc(((size_t)field->name_count + 1) * sizeof(*counts));
	if (!counts)
		return NULL;
	failed = columns_count(ds, index, field, counts);
	if (!failed)
		return counts;
	cmd_log_error(failed, NULL);
	*error = failed;
	free(counts);
	return NULL;
}

static void print_class(const char *name, const uint64_t *count)
{
	char *text = text_escape(name, strlen(name)), number[TEXT_SIZE];

	printf(ROW "  %-*s %10s\n", "", text_pad(text, 24), text ? text : "?",
	       count ? text_count(number, *count) : "");
	free(text);
}

static void print_classes(struct stele_dataset *ds, uint32_t index,
			  const struct stele_field *field, int *error)
{
	uint64_t *counts = count_classes(ds, index, field, error);
	char number[TEXT_SIZE];

	for (uint32_t i = 0; i < field->name_count && i < CLASSES_MAX; i++)
		print_class(field->names[i], counts ? &counts[i] : NULL);
	if (field->name_count > CLASSES_MAX)
		printf(ROW "  and %s more\n", "",
		       text_count(number, field->name_count - CLASSES_MAX));
	if (counts && counts[field->name_count])
		print_class("(none)", &counts[field->name_count]);
	free(counts);
}

void show_fields(struct stele_dataset *ds, uint32_t count, int *error)
{
	struct stele_field field = {.size = sizeof(field)};
	char *name, type[STELE_FIELD_TYPE_SIZE];

	for (uint32_t i = 0; i < count; i++) {
		if (stele_dataset_field(ds, i, &field) < 0)
			break;
		name = text_escape(field.name, strlen(field.name));
		printf(ROW "%s %s", i ? "" : "fields", name ? name : "?",
		       stele_field_type(&field, type));
		free(name);
		if (field.name_count)
			printf(" (%" PRIu32 " class%s)", field.name_count,
			       field.name_count == 1 ? "" : "es");
		else if (field.names_damaged)
			printf(" (class names damaged)");
		putchar('\n');
		print_classes(ds, i, &field, error);
	}
}

static json_t *json_classes(const struct stele_field *field,
			    const uint64_t *counts)
{
	json_t *list = json_make_list();

	for (uint32_t i = 0; i < field->name_count; i++) {
		json_t *class = json_make();

		json_set_key(class, "name", field->names[i],
			     strlen(field->names[i]));
		if (counts)
			json_set_number(class, "samples", counts[i]);
		json_add(list, class);
	}
	return list;
}

static json_t *json_fields(struct stele_dataset *ds, uint32_t count, int *error)
{
	json_t *list = json_make_list();
	struct stele_field field = {.size = sizeof(field)};

	for (uint32_t i = 0; i < count; i++) {
		uint64_t *counts;
		json_t *object;

		if (stele_dataset_field(ds, i, &field))
			continue;
		object = field_json(&field);
		counts = count_classes(ds, i, &field, error);
		if (field.name_count)
			json_set(object, "names", json_classes(&field, counts));
		if (counts)
			json_set_number(object, "without_class",
					counts[field.name_count]);
		free(counts);
		json_add(list, object);
	}
	return list;
}

json_t *show_dataset_json(struct stele_dataset *ds, int *error)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
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
	json_set(object, "fields",
			    json_fields(ds, info.field_count, error));
	return object;
}
