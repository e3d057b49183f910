/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - SQLite's cursor over the rows of a scan
 *
 * A plan is a string, made by relation.c for SQLite to keep: for each argument of a scan its
 * column, plus 1, and the operator, a byte each. Flags say which columns are read at all.
 */
#ifndef STELE_QUERY_ROWS_H
#define STELE_QUERY_ROWS_H

#include "lib/query/relation.h"

enum stele_rows_op {
	STELE_ROWS_EQ = '=',
	STELE_ROWS_GE = 'g',
	STELE_ROWS_GT = '>',
	STELE_ROWS_LE = 'l',
	STELE_ROWS_LT = '<',
	STELE_ROWS_IN = 'i', /* all values at once */
};

enum stele_rows_flags {
	STELE_ROWS_KEYS = 1 << 0,
	STELE_ROWS_SIZES = 1 << 1,
};

struct stele_rows_vtab {
	sqlite3_vtab base;
	struct stele_relation *relation;
};

/* As struct sqlite3_module has them. */
int stele_rows_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out);
int stele_rows_close(sqlite3_vtab_cursor *cursor);
int stele_rows_filter(sqlite3_vtab_cursor *cursor, int flags, const char *plan, int argc,
		      sqlite3_value **argv);
int stele_rows_next(sqlite3_vtab_cursor *cursor);
int stele_rows_eof(sqlite3_vtab_cursor *cursor);
int stele_rows_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column);
int stele_rows_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid);

#endif
