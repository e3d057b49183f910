/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relation.h - the samples of a dataset as a table of SQLite's
 *
 * SQLite asks for rows within constraints; those on scalars, ids and a key narrow what is
 * scanned, and it checks all of them again. So a row too many costs time, and a row too few
 * would be a wrong answer: whatever is not understood does not narrow.
 */
#ifndef STELE_QUERY_RELATION_H
#define STELE_QUERY_RELATION_H

#include "lib/query/api.h"
#include "lib/query/scan.h"

enum stele_relation_kind {
	STELE_RELATION_ID,
	STELE_RELATION_KEY,
	STELE_RELATION_SIZE,
	STELE_RELATION_I64,
	STELE_RELATION_F64,
	STELE_RELATION_CLASS, /* the name of an i64 */
	STELE_RELATION_TEXT,
};

/* As long as a field's, with something before or after it. */
#define STELE_RELATION_NAME_SIZE (2 * STELE_NAME_SIZE_MAX + 2)

struct stele_relation_column {
	char name[STELE_RELATION_NAME_SIZE];
	enum stele_relation_kind kind;
	struct stele_field field; /* of the last four */
	uint32_t index;		  /* of it */
};

#define STELE_RELATION_COLUMNS_MAX (3 + 2 * STELE_FIELDS_MAX)

struct stele_relation {
	struct stele_dataset *ds;
	struct stele_scan_pulse pulse;
	int error; /* 0, or why a row could not be had */
	struct stele_relation_column columns[STELE_RELATION_COLUMNS_MAX];
	uint32_t count;
};

/* Its columns; `relation` is zeroed but for ds and pulse. */
void stele_relation_init(struct stele_relation *relation);
/*
 * As `samples`, in a database; the table outlives that. Return: a code of SQLite's.
 */
int stele_relation_add(struct stele_relation *relation, sqlite3 *db);

#endif
