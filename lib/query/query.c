/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - one statement of SQLite, over a database that has but the samples
 *
 * The database is in memory and empty. An authorizer lets nothing through but reading and
 * computing, so no statement reaches a file or changes how SQLite works.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/query/relation.h"

#define STEPS_PER_BEAT 10000 /* of SQLite's machine */
#define SELECT_CHUNK   4096u /* ids that are handed out at once */

struct stele_query {
	struct stele_relation relation;
	struct stele_log log;
	sqlite3 *db;
	sqlite3_stmt *statement;
	int state; /* what next returned last */
	bool ended;
};

/* ---- open ------------------------------------------------------------------------- */

static int authorize(void *user, int action, const char *a, const char *b, const char *c,
		     const char *d)
{
	(void)user;
	(void)a;
	(void)c;
	(void)d;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return b && strcmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
	default:
		return SQLITE_DENY;
	}
}

static int beat(void *user)
{
	struct stele_relation *relation = user;
	int ret = relation->error ? 0 : stele_scan_beat(&relation->pulse);

	if (ret < 0)
		relation->error = ret;
	return ret < 0;
}

/* What else the message should say: which names there are. */
static void log_wrong(const struct stele_query *query, const char *why)
{
	const struct stele_relation *relation = &query->relation;
	char names[768] = "";
	size_t used = 0;

	if (strncmp(why, "no such table", 13) == 0) {
		stele_log_error(&query->log, "%s (the table is 'samples')", why);
		return;
	}
	if (strcmp(why, "not authorized") == 0) {
		stele_log_error(&query->log, "a query is a SELECT, and nothing else");
		return;
	}
	for (uint32_t i = 0; i < relation->count && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
					 i ? ", " : "", relation->columns[i].name);
	if (strncmp(why, "no such column", 14) == 0)
		stele_log_error(&query->log, "%s (there are %s)", why, names);
	else
		stele_log_error(&query->log, "%s", why);
}

static int wrong(const struct stele_query *query, int code)
{
	if (code == SQLITE_NOMEM)
		return -ENOMEM;
	log_wrong(query, stele_sqlite.errmsg(query->db));
	return -EINVAL;
}

static bool is_blank(const char *text)
{
	return !text[strspn(text, " \t\r\n\f;")];
}

/* The whole of the text has to be one SELECT. */
static int prepare(struct stele_query *query, const char *sql)
{
	const char *rest = "";
	int code = stele_sqlite.prepare_v2(query->db, sql, -1, &query->statement, &rest);

	if (code != SQLITE_OK)
		return wrong(query, code);
	if (query->statement && is_blank(rest) &&
	    stele_sqlite.column_count(query->statement) > 0 &&
	    !stele_sqlite.stmt_isexplain(query->statement)) {
		if (!stele_sqlite.bind_parameter_count(query->statement))
			return 0;
		stele_log_error(&query->log, "a query has no parameters, such as ? or :name; text "
				"is put in single quotes, as in 'cat'");
		return -EINVAL;
	}
	stele_log_error(&query->log, "a query is one SELECT, and nothing else");
	return -EINVAL;
}

static int open_database(struct stele_query *query)
{
	/* Sort up to 64 MiB in memory; declare the table, while that is not refused. */
	static const char begin[] = "PRAGMA cache_size = -65536;"
				    "SELECT 1 FROM samples LIMIT 0";
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
	int code = stele_sqlite.open_v2(":memory:", &query->db, flags, NULL);

	if (code == SQLITE_OK)
		code = stele_relation_add(&query->relation, query->db);
	if (code == SQLITE_OK)
		code = stele_sqlite.exec(query->db, begin, NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = stele_sqlite.set_authorizer(query->db, authorize, NULL);
	if (code != SQLITE_OK)
		return query->db ? wrong(query, code) : -ENOMEM;
	stele_sqlite.progress_handler(query->db, STEPS_PER_BEAT, beat, &query->relation);
	return 0;
}

static int query_open(struct stele_dataset *ds, const char *sql,
		      const struct stele_query_opts *opts, struct stele_query **out)
{
	struct stele_query_opts known;
	struct stele_log log;
	struct stele_query *query;
	int ret = stele_options_get(opts, &known, sizeof(known), &log);

	if (ret == 0 && (!ds || !sql))
		ret = -EINVAL;
	if (ret == 0)
		ret = stele_sqlite_load(&log);
	if (ret < 0)
		return ret;
	query = calloc(1, sizeof(*query));
	if (!query)
		return -ENOMEM;
	query->log = log;
	query->relation.ds = ds;
	query->relation.pulse = (struct stele_scan_pulse){
		.fn = known.progress,
		.user = known.progress_user,
		.total = ds->snapshot.sample_count,
	};
	stele_dataset_enter(ds);
	stele_relation_init(&query->relation);
	ret = open_database(query);
	if (ret == 0)
		ret = prepare(query, sql);
	if (ret < 0)
		stele_query_close(query);
	else
		*out = query;
	return ret;
}

int stele_query_open(struct stele_dataset *ds, const char *sql,
		     const struct stele_query_opts *opts, struct stele_query **out)
{
	return STELE_CALL(query_open(ds, sql, opts, out), "cannot query the samples");
}

void stele_query_close(struct stele_query *query)
{
	if (!query)
		return;
	stele_sqlite.finalize(query->statement);
	stele_sqlite.close(query->db);
	stele_dataset_leave(query->relation.ds);
	free(query);
}

/* ---- rows ------------------------------------------------------------------------- */

/* Of temporary files SQLite says so much. */
static int error_of(const struct stele_query *query, int code)
{
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		stele_log_error(&query->log, "no space for a temporary file");
		return -ENOSPC;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		stele_log_error(&query->log, "temporary file: %s",
				stele_sqlite.errmsg(query->db));
		return -EIO;
	default:
		return wrong(query, code);
	}
}

static int query_next(struct stele_query *query)
{
	int code;

	if (query->ended)
		return query->state;
	code = stele_sqlite.step(query->statement);
	if (code == SQLITE_ROW)
		query->state = 1;
	else if (code == SQLITE_DONE)
		query->state = 0;
	else if (query->relation.error)
		query->state = query->relation.error;
	else
		query->state = error_of(query, code);
	query->ended = query->state <= 0;
	return query->state;
}

int stele_query_next(struct stele_query *query)
{
	return STELE_CALL(query_next(query), "cannot query the samples");
}

uint32_t stele_query_column_count(const struct stele_query *query)
{
	return (uint32_t)stele_sqlite.column_count(query->statement);
}

const char *stele_query_column_name(const struct stele_query *query, uint32_t column)
{
	if (column >= stele_query_column_count(query))
		return NULL;
	return stele_sqlite.column_name(query->statement, (int)column);
}

static int get_value(struct stele_query *query, int column, struct stele_query_value *value)
{
	sqlite3_stmt *statement = query->statement;

	*value = (struct stele_query_value){.type = STELE_QUERY_NULL};
	switch (stele_sqlite.column_type(statement, column)) {
	case SQLITE_INTEGER:
		value->type = STELE_QUERY_I64;
		value->i64 = stele_sqlite.column_int64(statement, column);
		break;
	case SQLITE_FLOAT:
		value->type = STELE_QUERY_F64;
		value->f64 = stele_sqlite.column_double(statement, column);
		break;
	case SQLITE_TEXT:
		value->type = STELE_QUERY_TEXT;
		value->data = stele_sqlite.column_text(statement, column);
		value->size = (uint64_t)stele_sqlite.column_bytes(statement, column);
		return value->data ? 0 : -ENOMEM;
	case SQLITE_BLOB:
		value->type = STELE_QUERY_BYTES;
		value->data = stele_sqlite.column_blob(statement, column);
		value->size = (uint64_t)stele_sqlite.column_bytes(statement, column);
		return value->data || !value->size ? 0 : -ENOMEM;
	}
	return 0;
}

static int query_value(struct stele_query *query, uint32_t column,
		       struct stele_query_value *value)
{
	if (!value || query->state <= 0)
		return -EINVAL;
	if (column >= stele_query_column_count(query))
		return -ERANGE;
	return get_value(query, (int)column, value);
}

int stele_query_value(struct stele_query *query, uint32_t column,
		      struct stele_query_value *value)
{
	return STELE_CALL(query_value(query, column, value), "cannot get a value");
}

/* ---- ids alone ----------------------------------------------------------------------- */

static int hand_out(struct stele_query *query, stele_select_fn fn, void *user)
{
	uint64_t ids[SELECT_CHUNK];
	size_t count = 0;
	int ret = 0, stop = 0;

	while (!stop && (ret = query_next(query)) > 0) {
		ids[count++] = (uint64_t)stele_sqlite.column_int64(query->statement, 0);
		if (count < SELECT_CHUNK)
			continue;
		stop = fn(user, ids, count);
		count = 0;
	}
	if (ret == 0 && count)
		stop = fn(user, ids, count);
	return stop ? stop : ret;
}

/*
 * The query of an expression. It has to be one without our parentheses, too: "a) OR (b" would
 * otherwise become part of what is around it.
 */
static int open_expression(struct stele_dataset *ds, const char *where,
			   const struct stele_query_opts *opts, struct stele_query **out)
{
	char *bare = NULL, *whole = NULL;
	int ret = -ENOMEM;

	*out = NULL;
	if (asprintf(&bare, "SELECT 1 FROM samples WHERE %s", where) < 0)
		return -ENOMEM;
	if (asprintf(&whole, "SELECT id FROM samples WHERE (%s\n) ORDER BY id", where) >= 0)
		ret = query_open(ds, bare, opts, out);
	if (ret == 0) {
		stele_sqlite.finalize((*out)->statement);
		(*out)->statement = NULL;
		ret = prepare(*out, whole);
		if (ret < 0)
			stele_query_close(*out);
	}
	free(bare);
	free(whole);
	return ret;
}

static int dataset_select(struct stele_dataset *ds, const char *where,
			  const struct stele_query_opts *opts, stele_select_fn fn, void *user)
{
	struct stele_query *query;
	int ret;

	if (!where || !fn)
		return -EINVAL;
	ret = open_expression(ds, where, opts, &query);
	if (ret < 0)
		return ret;
	ret = hand_out(query, fn, user);
	stele_query_close(query);
	return ret;
}

int stele_dataset_select(struct stele_dataset *ds, const char *where,
			 const struct stele_query_opts *opts, stele_select_fn fn, void *user)
{
	return STELE_CALL(dataset_select(ds, where, opts, fn, user), "cannot select samples");
}
