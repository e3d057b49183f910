/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - samples with fields, as they are found one by one
 *
 * Which fields there are is known when all is scanned. Until then a field has a number, in
 * the order in which fields were first seen, and a sample is a list of numbers and values
 * in the store. Of a field that a sample lacks, bytes are empty, an i64 is -1, an f64 NaN.
 *
 * A class is a number, or all of a field's are names, which get theirs when sorted.
 */
#ifndef STELE_CMD_FROM_RECORD_H
#define STELE_CMD_FROM_RECORD_H

#include "stele.h"

#include <stdbool.h>

struct store;

/* One value. */
struct record_value {
	uint32_t field;
	uint32_t reserved;
	uint64_t place; /* of bytes */
	union stele_value value;
};

struct record {
	uint64_t count;
	struct record_value values[STELE_FIELDS_MAX];
};

/* Bytes of a sample that lie behind each other. */
struct record_piece {
	uint64_t place, size;
};

struct record_field {
	struct stele_field field;
	char **names; /* owned; of classes, in the order in which they came */
	uint32_t name_count;
	void *known;	   /* tree of them */
	uint64_t names_size;
	uint32_t *ranks;   /* owned, since the schema: by name */
	char **sorted;	   /* owned; of field.names */
	bool numbers;	   /* classes are numbers */
};

struct record_fields {
	struct record_field list[STELE_FIELDS_MAX];
	uint32_t count;
	struct stele_field schema[STELE_FIELDS_MAX];
	uint32_t schema_count;
	uint32_t index[STELE_FIELDS_MAX]; /* in the schema, by number */
};

/*
 * The field of that name, which is new or has the type. Return: its number; -EOVERFLOW
 * (too many, -EINVAL: not a valid name, -EPROTOTYPE: it has another type).
 */
int record_field(struct record_fields *fields, const char *name, size_t size,
		 uint32_t type);
/*
 * The class that a text names: a number, or a name. Return: 0; -ENOMEM; -EOVERFLOW (more
 * names than an image holds); -EPROTOTYPE (a name among numbers).
 */
int record_class(struct record_fields *fields, uint32_t field, const char *text,
		 size_t size, int64_t *out);
void record_fields_release(struct record_fields *fields);

/* Is there a value of the field yet? */
bool record_has(const struct record *record, uint32_t field);
/* As the source's schema(). Return: 0; -ENOMEM. */
int record_schema(struct record_fields *fields, const struct stele_schema *base,
		  struct stele_schema *out);

/* Append it. *data_size: of all its bytes. Return: 0; errors of the store. */
int record_keep(struct store *store, const struct record_fields *fields,
		const struct record *record, uint64_t *offset, uint64_t *data_size);
/*
 * For open() and read(): values by the schema, and where the bytes are, in its order.
 * Return: 0; errno of reading.
 */
int record_load(const struct store *store, const struct record_fields *fields,
		uint64_t offset, union stele_value *values,
		struct record_piece pieces[STELE_FIELDS_MAX]);

#endif
