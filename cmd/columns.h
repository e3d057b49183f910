/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - the scalar fields of samples, without reading them
 */
#ifndef STELE_CMD_COLUMNS_H
#define STELE_CMD_COLUMNS_H

#include <jansson.h>

#include "stele.h"

struct column {
	uint32_t index;
	struct stele_field field;
	int width; /* of its values in a list */
	struct column_chunk **chunks; /* owned */
};

struct columns {
	struct stele_dataset *ds;
	struct column list[STELE_FIELDS_MAX];
	uint32_t count;
};

/* Return: 0; -ENOMEM. Release in any case. */
int columns_open(struct columns *columns, struct stele_dataset *ds);
void columns_release(struct columns *columns);

/* The bits of one sample's values, one for each column. Return: 0; negative errno. */
int columns_get(struct columns *columns, uint64_t id, uint64_t *values);
/* Each in a column, with two spaces after it. */
void columns_print(const struct columns *columns, const uint64_t *values);
/* `fields`, the values by name, and `classes`, their names; without columns neither. */
void columns_json(const struct columns *columns, const uint64_t *values,
		  json_t *object);

/*
 * How many samples have each value that has a name, and how many another: counts[] has
 * field->name_count + 1 entries. Return: 0; negative errno.
 */
int columns_count(struct stele_dataset *ds, uint32_t index,
		  const struct stele_field *field, uint64_t *counts);

#endif
