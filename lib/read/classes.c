/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.c - a class is stored as a number, which is another class where the names are others
 */
#include "lib/read/classes.h"

#include <string.h>

bool stele_field_find(const struct stele_dataset *ds, const char *name, struct stele_field *out)
{
	struct stele_dataset_info info = {.size = sizeof(info)};

	if (stele_dataset_info(ds, &info))
		return false;
	for (uint32_t i = 0; i < info.field_count; i++) {
		out->size = sizeof(*out);
		if (!stele_dataset_field(ds, i, out) && !strcmp(out->name, name))
			return true;
	}
	return false;
}

int64_t stele_classes_differ(const struct stele_field *a, const struct stele_field *b)
{
	for (uint32_t i = 0; i < a->name_count && i < b->name_count; i++)
		if (strcmp(a->names[i], b->names[i]) != 0)
			return i;
	return -1;
}
