/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_query.h - samples found by what their fields say, in SQL; part of stele.h
 *
 * A snapshot is one table, `samples`: id, key, size (bytes of all that is no scalar), and its
 * i64, f64 and utf8 fields by their names. An i64 field with class names is its number, and a
 * second column, named FIELD_name, has the name, or NULL where the number has none; `split` is
 * its name alone. A NaN is NULL, as always in SQLite. A field whose name is taken (SQLite
 * ignores case) is called field_NAME.
 *
 *	ret = stele_query_open(ds, "SELECT id, width FROM samples WHERE label = 7", NULL, &query);
 *	while (!ret && (ret = stele_query_next(query)) > 0)
 *		stele_query_value(query, 0, &value);
 *	stele_query_close(query);
 *
 * The SQL is that of SQLite (3.38 or later), which is loaded by the first query. Comparisons
 * of scalars with constants, and IN with a list, that all rows have to fulfil are evaluated on
 * columns, before SQLite sees a row; key, size and classes come from sections, too. For a utf8
 * field samples are read. Sorting and grouping spill to temporary files ($SQLITE_TMPDIR,
 * $TMPDIR, /var/tmp).
 *
 * Threads. A query belongs to one thread at a time; any number may be open.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_QUERY_H
#define STELE_QUERY_H

#ifdef __cplusplus
extern "C" {
#endif

struct stele_query;

struct stele_query_opts {
	size_t size;
	stele_log_fn log; /* what is wrong with the SQL */
	void *log_user;
	/* STELE_PHASE_SCAN: samples that were looked at, of all. Also called while SQLite works. */
	stele_progress_fn progress;
	void *progress_user;
};

/**
 * stele_query_open() - prepare one SELECT
 * @sql: UTF-8; what may follow it is a semicolon
 *
 * Nothing is read yet. Return: 0; -EINVAL (not a SELECT, or wrong: logged, with the reason);
 * -EOPNOTSUPP (SQLite cannot be loaded; logged); -E2BIG; -ENOMEM.
 */
STELE_API int stele_query_open(struct stele_dataset *ds, const char *sql,
			       const struct stele_query_opts *opts,
			       struct stele_query **out);
/**
 * stele_query_next() - the next row
 *
 * An error is final. Return: 1; 0 (there are no more); -EINVAL (the SQL cannot be computed;
 * logged); -ECANCELED; -ENOSPC, -EIO (a temporary file); -EBADMSG, -EUCLEAN; -ENOMEM; device
 * errno.
 */
STELE_API int stele_query_next(struct stele_query *query);
/** Columns of the result, at least 1. */
STELE_API uint32_t stele_query_column_count(const struct stele_query *query);
/** The name of one, valid as long as the query; NULL: out of range. */
STELE_API const char *stele_query_column_name(const struct stele_query *query, uint32_t column);

enum stele_query_kind {
	STELE_QUERY_NULL = 0,
	STELE_QUERY_I64,
	STELE_QUERY_F64,
	STELE_QUERY_TEXT,  /* UTF-8, unless it comes from a key or class name that is not */
	STELE_QUERY_BYTES, /* made by an expression: no column has such values */
};

/* It never grows. */
struct stele_query_value {
	uint32_t type; /* enum stele_query_kind; what it does not ask for is zero */
	uint32_t reserved;
	int64_t i64;
	double f64;
	const void *data; /* of text and bytes, not terminated; valid until the next row */
	uint64_t size;
};

/** One value of the row. Return: 0; -ERANGE (the column); -EINVAL (there is no row). */
STELE_API int stele_query_value(struct stele_query *query, uint32_t column,
				struct stele_query_value *value);
/** NULL is fine. */
STELE_API void stele_query_close(struct stele_query *query);

/* Ascending ids, @count of them, valid for the call. Nonzero ends it, and is what it returns. */
typedef int (*stele_select_fn)(void *user, const uint64_t *ids, size_t count);
/**
 * stele_dataset_select() - the samples for which an expression is true
 * @where: one expression, as after WHERE: "label = 7 AND width > 256"
 *
 * Return: 0; what @fn returned; errors of stele_query_open() and stele_query_next().
 */
STELE_API int stele_dataset_select(struct stele_dataset *ds, const char *where,
				   const struct stele_query_opts *opts, stele_select_fn fn,
				   void *user);

#ifdef __cplusplus
}
#endif

#endif
