/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label_check.c - labels of samples that a base and directories have
 */
#include "lib/ops/label_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/device.h"
#include "lib/image/section.h"

#define SAMPLES_MAX 64u

int stele_label_check_init(struct stele_label_check *check)
{
	const struct stele_fields *fields = check->fields;

	if (!check->source->label)
		return 0;
	for (check->field = 0; check->field < fields->count; check->field++)
		if (!strcmp(fields->list[check->field].name, "label"))
			break;
	if (check->field == fields->count)
		return 0;
	check->block = stele_device_alloc(check->base->image->dev, STELE_BLOCK_SIZE);
	check->left = SAMPLES_MAX;
	return check->block ? 0 : -ENOMEM;
}

/* What the segment says. Return: 0; -EUCLEAN (no such column); errors of stele_section_read(). */
static int load(const struct stele_label_check *check, const struct stele_segment *segment,
		uint64_t number, int64_t *label)
{
	const struct stele_disk_column *column = (const void *)check->block->payload;
	struct stele_section section;
	int ret;

	if (stele_descriptor_find_section(&segment->descriptor, STELE_BLOCK_COLUMN, check->field,
					  &section) < 0)
		return -EUCLEAN;
	ret = stele_section_read(check->base->image, segment, &section,
				 number / STELE_COLUMN_PER_BLOCK, 1, check->block);
	if (!ret)
		*label = (int64_t)le64_get(column->values[number % STELE_COLUMN_PER_BLOCK]);
	return ret;
}

static const char *name_of(const struct stele_label_check *check, int64_t label,
			   char text[STELE_QUOTE_SIZE])
{
	const struct stele_class_names *names = &check->fields->names[check->field];

	if (label == STELE_NO_CLASS)
		return "none";
	if (label >= 0 && (uint64_t)label < names->count)
		return stele_source_quote(names->list[label], strlen(names->list[label]), text);
	snprintf(text, STELE_QUOTE_SIZE, "%" PRIi64, label);
	return text;
}

int stele_label_check(struct stele_label_check *check, const struct stele_segment *segment,
		      uint64_t number, const struct stele_source_entry *entry)
{
	char key[STELE_QUOTE_SIZE], there[STELE_QUOTE_SIZE], here[STELE_QUOTE_SIZE];
	int64_t was = STELE_NO_CLASS, is;

	if (!check->left)
		return 0;
	check->left--;
	if (load(check, segment, number, &was) < 0)
		return 0;
	is = stele_fields_value(check->fields, check->field,
				check->source->label(check->source->user, entry));
	if (was == is)
		return 0;
	stele_log_error(check->log,
			"labels would mean something else than in the snapshot that is appended "
			"to: that of '%s' is '%s' there, and '%s' here; %s",
			stele_source_quote(entry->key, entry->key_size, key),
			name_of(check, was, there), name_of(check, is, here),
			check->source->label_told ? "it has to be forced" :
						    "say where they are to come from");
	return check->source->label_told ? -EPERM : -EOPNOTSUPP;
}

void stele_label_check_release(struct stele_label_check *check)
{
	free(check->block);
	check->block = NULL;
	check->left = 0;
}
