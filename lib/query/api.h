/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - the parts of SQLite that we use, loaded on demand
 *
 * Programs that query nothing load nothing, and need not have it. Version 3.38 is the first
 * with all of them.
 */
#ifndef STELE_QUERY_API_H
#define STELE_QUERY_API_H

#include <sqlite3.h>

#include "lib/base/log.h"

#define STELE_SQLITE_CALLS(X) \
	X(bind_parameter_count) \
	X(close) \
	X(column_blob) \
	X(column_bytes) \
	X(column_count) \
	X(column_double) \
	X(column_int64) \
	X(column_name) \
	X(column_text) \
	X(column_type) \
	X(create_module_v2) \
	X(declare_vtab) \
	X(errmsg) \
	X(exec) \
	X(finalize) \
	X(free) \
	X(malloc64) \
	X(mprintf) \
	X(open_v2) \
	X(prepare_v2) \
	X(progress_handler) \
	X(result_double) \
	X(result_int64) \
	X(result_null) \
	X(result_text64) \
	X(set_authorizer) \
	X(step) \
	X(stmt_isexplain) \
	X(value_bytes) \
	X(value_double) \
	X(value_int64) \
	X(value_text) \
	X(value_type) \
	X(vtab_collation) \
	X(vtab_in) \
	X(vtab_in_first) \
	X(vtab_in_next)

struct stele_sqlite {
#define STELE_SQLITE_CALL(name) __typeof__(sqlite3_##name) *name;
	STELE_SQLITE_CALLS(STELE_SQLITE_CALL)
#undef STELE_SQLITE_CALL
};

/* Filled by stele_sqlite_load(), and constant from then on. */
extern struct stele_sqlite stele_sqlite;

/* Before any call; any thread. Return: 0; -EOPNOTSUPP (logged). */
int stele_sqlite_load(const struct stele_log *log);

#endif
