/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - a scan from a plan, and values of its rows
 */
#include "lib/query/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/query/row_keys.h"
#include "lib/query/row_texts.h"

/* Of batches that need keys or sizes: the first is for a LIMIT, the last for a walk of all. */
#define ROOM_FIRST 16u
#define ROOM_GROWS 4096u /* times: what is more than a few takes a walk in any case */
#define ROOM_MAX   (3u << 20) /* 120 MiB of numbers, ids and sizes */

struct rows {
	sqlite3_vtab_cursor base;
	struct stele_relation *relation;
	struct stele_scan scan;
	struct stele_row_keys keys;
	struct stele_row_texts texts;
	size_t row; /* in the batch */
	size_t room, room_max; /* that the next batch may have, and any */
	int flags;
	bool known; /* keys has the one row already */
	bool ended;
};

/* What a scan is narrowed to. */
struct narrowing {
	struct stele_bounds *bounds;
	size_t count;
	struct stele_bounds ids;
	uint64_t first, end;
	bool none; /* no row at all */
};

/* Keep why, and have SQLite stop. */
static int failed(struct rows *rows, int error)
{
	if (!error)
		return SQLITE_OK;
	rows->relation->error = error;
	return error == -ENOMEM ? SQLITE_NOMEM : SQLITE_ERROR;
}

/* Does it need class names that are damaged? 0; -EBADMSG: stele_errmsg() says of which field. */
static int check_names(const struct rows *rows, const struct stele_relation_column *column)
{
	const char *name;

	return column->kind == STELE_RELATION_CLASS && column->field.names_damaged ?
		       stele_dataset_class_name(rows->relation->ds, column->index, 0, &name) :
		       0;
}

int stele_rows_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
	struct stele_relation *relation = ((struct stele_rows_vtab *)vtab)->relation;
	struct rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return SQLITE_NOMEM;
	rows->relation = relation;
	rows->scan.ds = relation->ds;
	rows->scan.pulse = &relation->pulse;
	*out = &rows->base;
	return SQLITE_OK;
}

int stele_rows_close(sqlite3_vtab_cursor *cursor)
{
	struct rows *rows = (struct rows *)cursor;

	stele_row_texts_release(&rows->texts);
	stele_row_keys_release(&rows->keys);
	stele_scan_release(&rows->scan);
	free(rows);
	return SQLITE_OK;
}

/* ---- from a plan to a scan ------------------------------------------------------------ */

static void bound(struct stele_bounds *bounds, char op, sqlite3_value *value)
{
	static const enum stele_bounds_op ops[128] = {
		[STELE_ROWS_EQ] = STELE_BOUNDS_EQ, [STELE_ROWS_GE] = STELE_BOUNDS_GE,
		[STELE_ROWS_GT] = STELE_BOUNDS_GT, [STELE_ROWS_LE] = STELE_BOUNDS_LE,
		[STELE_ROWS_LT] = STELE_BOUNDS_LT,
	};

	switch (stele_sqlite.value_type(value)) {
	case SQLITE_INTEGER:
		stele_bounds_add_i64(bounds, ops[(unsigned char)op],
				     stele_sqlite.value_int64(value));
		break;
	case SQLITE_FLOAT:
		stele_bounds_add_f64(bounds, ops[(unsigned char)op],
				     stele_sqlite.value_double(value));
		break;
	}
}

/* A growing list of values. */
struct list {
	int64_t *values;
	size_t count, capacity;
	bool is_vague; /* it has what SQLite alone can compare */
};

static int list_add(struct list *list, int64_t value)
{
	if (list->count == list->capacity) {
		const size_t capacity = list->capacity ? 2 * list->capacity : 16;
		int64_t *values = reallocarray(list->values, capacity, sizeof(*values));

		if (!values)
			return -ENOMEM;
		list->values = values;
		list->capacity = capacity;
	}
	list->values[list->count++] = value;
	return 0;
}

/* The numbers of all classes of that name. */
static int add_classes(struct list *list, const struct stele_field *field, sqlite3_value *value)
{
	const int type = stele_sqlite.value_type(value); /* before it is converted */
	const char *name = (const char *)stele_sqlite.value_text(value);
	int ret = 0;

	if (type == SQLITE_NULL || type == SQLITE_BLOB)
		return 0;
	if (!name)
		return -ENOMEM;
	for (uint32_t i = 0; i < field->name_count && !ret; i++)
		if (strcmp(field->names[i], name) == 0)
			ret = list_add(list, i);
	return ret;
}

static int add_value(struct list *list, const struct stele_relation_column *column,
		     sqlite3_value *value)
{
	if (column->kind == STELE_RELATION_CLASS)
		return add_classes(list, &column->field, value);
	switch (stele_sqlite.value_type(value)) {
	case SQLITE_INTEGER:
		return list_add(list, stele_sqlite.value_int64(value));
	case SQLITE_NULL:
		return 0;
	default:
		list->is_vague = true;
		return 0;
	}
}

/* One of several values, or of the classes of one name. */
static int bound_list(struct stele_bounds *bounds, const struct stele_relation_column *column,
		      char op, sqlite3_value *value)
{
	struct list list = {0};
	sqlite3_value *each = value;
	int next = op == STELE_ROWS_IN ? stele_sqlite.vtab_in_first(value, &each) : SQLITE_OK;
	int ret = 0;

	while (next == SQLITE_OK && !ret && each) {
		ret = add_value(&list, column, each);
		if (op != STELE_ROWS_IN)
			break;
		next = stele_sqlite.vtab_in_next(value, &each);
	}
	if (next != SQLITE_OK && next != SQLITE_DONE)
		ret = -ENOMEM;
	if (ret || list.is_vague)
		free(list.values);
	else
		stele_bounds_add_list(bounds, list.values, list.count);
	return ret;
}

/* Those of a field, made when it is first wanted. */
static struct stele_bounds *bounds_of(struct narrowing *n,
				      const struct stele_relation_column *column)
{
	for (size_t i = 0; i < n->count; i++)
		if (n->bounds[i].field == column->index)
			return &n->bounds[i];
	stele_bounds_init(&n->bounds[n->count], column->index, column->kind == STELE_RELATION_F64);
	return &n->bounds[n->count++];
}

/* The sample that has it is all that is scanned. */
static int find_key(struct rows *rows, struct narrowing *n, sqlite3_value *value)
{
	const int type = stele_sqlite.value_type(value); /* before it is converted */
	const char *key = (const char *)stele_sqlite.value_text(value);
	const size_t size = (size_t)stele_sqlite.value_bytes(value);
	struct stele_cursor_entry entry = {.key_size = 0};
	struct stele_cursor *cursor;
	int ret;

	n->none = true;
	if (type == SQLITE_NULL || type == SQLITE_BLOB || !size || size > STELE_KEY_SIZE_MAX)
		return 0;
	if (!key)
		return -ENOMEM;
	ret = stele_cursor_open(rows->relation->ds, key, size, &cursor);
	if (ret < 0)
		return ret;
	/* Of keys that begin with it, it is the first. */
	ret = stele_cursor_next(cursor, &entry);
	if (ret > 0 && entry.key_size == size) {
		n->none = entry.id < n->first || entry.id >= n->end;
		n->first = entry.id;
		n->end = entry.id + 1;
		ret = stele_row_keys_set(&rows->keys, key, size, entry.size);
		rows->known = true;
	}
	stele_cursor_close(cursor);
	return ret < 0 ? ret : 0;
}

static int narrow(struct rows *rows, struct narrowing *n, const char *plan, int argc,
		  sqlite3_value **argv)
{
	int ret = 0;

	for (int i = 0; i < argc && !ret; i++) {
		const struct stele_relation_column *column =
			&rows->relation->columns[(unsigned char)plan[2 * i] - 1];
		const char op = plan[2 * i + 1];

		ret = check_names(rows, column);
		if (ret < 0)
			break;
		if (column->kind == STELE_RELATION_ID)
			bound(&n->ids, op, argv[i]);
		else if (column->kind == STELE_RELATION_KEY)
			ret = find_key(rows, n, argv[i]);
		else if (column->kind == STELE_RELATION_CLASS ||
			 (op == STELE_ROWS_IN && column->kind == STELE_RELATION_I64))
			ret = bound_list(bounds_of(n, column), column, op, argv[i]);
		else if (op != STELE_ROWS_IN)
			bound(bounds_of(n, column), op, argv[i]);
	}
	return ret;
}

/* ---- batches --------------------------------------------------------------------------- */

static int load_keys(struct rows *rows)
{
	int ret;

	if (rows->known || !(rows->flags & (STELE_ROWS_KEYS | STELE_ROWS_SIZES)))
		return 0;
	do {
		ret = stele_row_keys_load(&rows->keys, &rows->scan,
					  rows->flags & STELE_ROWS_KEYS);
		if (ret == -EOVERFLOW) {
			rows->room_max = rows->scan.count / 2;
			stele_scan_keep(&rows->scan, rows->room_max);
		}
	} while (ret == -EOVERFLOW);
	return ret;
}

static int next_batch(struct rows *rows)
{
	const bool by_key = rows->flags & (STELE_ROWS_KEYS | STELE_ROWS_SIZES);
	int ret;

	rows->row = 0;
	stele_row_texts_clear(&rows->texts);
	ret = stele_scan_next(&rows->scan, by_key ? rows->room : SIZE_MAX, by_key);
	rows->ended = ret <= 0;
	if (ret > 0)
		ret = load_keys(rows);
	rows->room *= ROOM_GROWS;
	if (rows->room > rows->room_max)
		rows->room = rows->room_max;
	return failed(rows, ret);
}

int stele_rows_filter(sqlite3_vtab_cursor *cursor, int flags, const char *plan, int argc,
		      sqlite3_value **argv)
{
	struct rows *rows = (struct rows *)cursor;
	struct narrowing n = {.end = rows->relation->ds->snapshot.sample_count};
	int ret;

	rows->flags = flags;
	rows->known = false;
	rows->room = ROOM_FIRST;
	rows->room_max = ROOM_MAX;
	stele_bounds_init(&n.ids, 0, false);
	n.bounds = calloc((size_t)argc + 1, sizeof(*n.bounds));
	ret = n.bounds ? narrow(rows, &n, plan, argc, argv) : -ENOMEM;
	if (n.ids.low > n.ids.high || n.ids.high < 0 || n.none)
		n.end = 0;
	if (n.ids.low > 0 && (uint64_t)n.ids.low > n.first)
		n.first = (uint64_t)n.ids.low;
	if (n.ids.high >= 0 && (uint64_t)n.ids.high < n.end)
		n.end = (uint64_t)n.ids.high + 1;
	stele_scan_begin(&rows->scan, n.bounds, n.count, n.first, n.end);
	return ret < 0 ? failed(rows, ret) : next_batch(rows);
}

int stele_rows_next(sqlite3_vtab_cursor *cursor)
{
	struct rows *rows = (struct rows *)cursor;

	return ++rows->row < rows->scan.count ? SQLITE_OK : next_batch(rows);
}

int stele_rows_eof(sqlite3_vtab_cursor *cursor)
{
	return ((struct rows *)cursor)->ended;
}

int stele_rows_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
	const struct rows *rows = (struct rows *)cursor;

	*rowid = (sqlite3_int64)rows->scan.ids[rows->row];
	return SQLITE_OK;
}

/* ---- values ------------------------------------------------------------------------------ */

static void give_text(sqlite3_context *context, const void *data, uint64_t size)
{
	stele_sqlite.result_text64(context, size ? data : "", size, SQLITE_TRANSIENT,
				   SQLITE_UTF8);
}

static int give_scalar(struct rows *rows, sqlite3_context *context,
		       const struct stele_relation_column *column)
{
	uint64_t bits = 0;
	double f64;
	int ret = check_names(rows, column);

	if (ret == 0)
		ret = stele_scan_value(&rows->scan, column->index, rows->row, &bits);
	if (ret < 0)
		return ret;
	memcpy(&f64, &bits, sizeof(f64));
	if (column->kind == STELE_RELATION_I64)
		stele_sqlite.result_int64(context, (sqlite3_int64)bits);
	else if (column->kind == STELE_RELATION_F64)
		stele_sqlite.result_double(context, f64);
	else if (bits < column->field.name_count)
		give_text(context, column->field.names[bits], strlen(column->field.names[bits]));
	else
		stele_sqlite.result_null(context);
	return 0;
}

static int give_field(struct rows *rows, sqlite3_context *context,
		      const struct stele_relation_column *column)
{
	const void *data = NULL;
	uint64_t size = 0;
	int ret = stele_row_texts_get(&rows->texts, &rows->scan, column->index, rows->row, &data,
				      &size);

	if (!ret)
		give_text(context, data, size);
	return ret;
}

int stele_rows_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int index)
{
	struct rows *rows = (struct rows *)cursor;
	const struct stele_relation_column *column = &rows->relation->columns[index];
	const struct stele_row_key *key = rows->keys.rows + (rows->keys.rows ? rows->row : 0);
	int ret = 0;

	switch (column->kind) {
	case STELE_RELATION_ID:
		stele_sqlite.result_int64(context, (sqlite3_int64)rows->scan.ids[rows->row]);
		break;
	case STELE_RELATION_KEY:
		give_text(context, rows->keys.text + key->offset, key->key_size);
		break;
	case STELE_RELATION_SIZE:
		stele_sqlite.result_int64(context, (sqlite3_int64)key->size);
		break;
	case STELE_RELATION_TEXT:
		ret = give_field(rows, context, column);
		break;
	default:
		ret = give_scalar(rows, context, column);
	}
	return failed(rows, ret);
}
