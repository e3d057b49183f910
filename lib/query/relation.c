/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relation.c - names of columns, and which constraints narrow a scan
 */
#include "lib/query/relation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/query/rows.h"

/* What SQLite plans with: of all rows, the part that a comparison leaves; costs by row. */
#define LEFT_BY_EQ    0.05
#define LEFT_BY_RANGE 0.4
#define COST_SCAN     0.05
#define COST_KEY      5.0
#define COST_TEXT     50.0
#define COST_LOOKUP   100.0

/* ---- columns ---------------------------------------------------------------------- */

/* SQLite ignores the case of names. */
static bool is_taken(const struct stele_relation *relation, const char *name)
{
	for (uint32_t i = 0; i < relation->count; i++)
		if (strcasecmp(relation->columns[i].name, name) == 0)
			return true;
	return false;
}

static struct stele_relation_column *add(struct stele_relation *relation,
					 enum stele_relation_kind kind, const char *name,
					 const char *end)
{
	struct stele_relation_column *column = &relation->columns[relation->count];
	char text[STELE_RELATION_NAME_SIZE];

	snprintf(text, sizeof(text), "%s%s", name, end);
	if (is_taken(relation, text))
		snprintf(text, sizeof(text), "field_%s%s", name, end);
	for (int i = 2; is_taken(relation, text); i++)
		snprintf(text, sizeof(text), "field_%s%s_%d", name, end, i);
	column->kind = kind;
	memcpy(column->name, text, sizeof(text));
	relation->count++;
	return column;
}

static void add_field(struct stele_relation *relation, const struct stele_field *field,
		      uint32_t index, enum stele_relation_kind kind, const char *end)
{
	struct stele_relation_column *column = add(relation, kind, field->name, end);

	column->field = *field;
	column->index = index;
}

/* Those that are damaged are an error for who asks for them, not a column that is not there. */
static bool has_names(const struct stele_field *field)
{
	return field->name_count || field->names_damaged;
}

/* A split is what it is called: nobody knows its number. */
static bool is_split(const struct stele_field *field)
{
	return has_names(field) && strcmp(field->name, "split") == 0;
}

void stele_relation_init(struct stele_relation *relation)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_field field = {.size = sizeof(field)};

	stele_dataset_info(relation->ds, &info);
	add(relation, STELE_RELATION_ID, "id", "");
	add(relation, STELE_RELATION_KEY, "key", "");
	add(relation, STELE_RELATION_SIZE, "size", "");
	for (uint32_t i = 0; i < info.field_count; i++) {
		stele_dataset_field(relation->ds, i, &field);
		if (field.type == STELE_TYPE_I64)
			add_field(relation, &field, i,
				  is_split(&field) ? STELE_RELATION_CLASS : STELE_RELATION_I64, "");
		else if (field.type == STELE_TYPE_F64)
			add_field(relation, &field, i, STELE_RELATION_F64, "");
		else if (field.type == STELE_TYPE_UTF8)
			add_field(relation, &field, i, STELE_RELATION_TEXT, "");
	}
	/* Behind all fields, which keep their names. */
	for (uint32_t i = 0; i < info.field_count; i++) {
		stele_dataset_field(relation->ds, i, &field);
		if (has_names(&field) && !is_split(&field))
			add_field(relation, &field, i, STELE_RELATION_CLASS, "_name");
	}
}

static const char *type_of(const struct stele_relation_column *column)
{
	static const char *const types[] = {
		[STELE_RELATION_ID] = "INTEGER",  [STELE_RELATION_KEY] = "TEXT",
		[STELE_RELATION_SIZE] = "INTEGER", [STELE_RELATION_I64] = "INTEGER",
		[STELE_RELATION_F64] = "REAL",    [STELE_RELATION_CLASS] = "TEXT",
		[STELE_RELATION_TEXT] = "TEXT",
	};

	return types[column->kind];
}

/* ---- plans ------------------------------------------------------------------------ */

/* 0: it does not narrow. */
static char op_of(const struct stele_relation_column *column, unsigned char op)
{
	const bool is_number = column->kind == STELE_RELATION_ID ||
			       column->kind == STELE_RELATION_I64 ||
			       column->kind == STELE_RELATION_F64;

	if (column->kind == STELE_RELATION_SIZE || column->kind == STELE_RELATION_TEXT)
		return 0;
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return STELE_ROWS_EQ;
	case SQLITE_INDEX_CONSTRAINT_GE:
		return is_number ? STELE_ROWS_GE : 0;
	case SQLITE_INDEX_CONSTRAINT_GT:
		return is_number ? STELE_ROWS_GT : 0;
	case SQLITE_INDEX_CONSTRAINT_LE:
		return is_number ? STELE_ROWS_LE : 0;
	case SQLITE_INDEX_CONSTRAINT_LT:
		return is_number ? STELE_ROWS_LT : 0;
	default:
		return 0;
	}
}

struct planning {
	const struct stele_relation *relation;
	sqlite3_index_info *info;
	unsigned char *plan;
	int argc;
	double left; /* of all rows */
	bool is_one; /* row at most */
};

static void plan_one(struct planning *p, int i)
{
	const struct sqlite3_index_constraint *constraint = &p->info->aConstraint[i];
	/* -1: the row's id, which is the sample's. */
	const uint32_t index = constraint->iColumn < 0 ? 0 : (uint32_t)constraint->iColumn;
	const struct stele_relation_column *column = &p->relation->columns[index];
	const enum stele_relation_kind kind = column->kind;
	const bool is_text = kind == STELE_RELATION_KEY || kind == STELE_RELATION_CLASS;
	const bool is_scalar = kind != STELE_RELATION_ID && kind != STELE_RELATION_KEY;
	char op = constraint->usable ? op_of(column, constraint->op) : 0;

	if (!op || (is_text && strcmp(stele_sqlite.vtab_collation(p->info, i), "BINARY") != 0))
		return;
	/* Of ids and keys each value of a list is a scan of its own, which looks one up. */
	p->info->aConstraintUsage[i].argvIndex = p->argc + 1;
	if (op == STELE_ROWS_EQ && is_scalar && stele_sqlite.vtab_in(p->info, i, -1)) {
		stele_sqlite.vtab_in(p->info, i, 1);
		op = STELE_ROWS_IN;
	}
	p->plan[2 * p->argc] = (unsigned char)(index + 1);
	p->plan[2 * p->argc + 1] = (unsigned char)op;
	p->argc++;
	p->is_one |= op == STELE_ROWS_EQ && !is_scalar;
	p->left *= op == STELE_ROWS_EQ || op == STELE_ROWS_IN ? LEFT_BY_EQ : LEFT_BY_RANGE;
}

static void set_cost(struct planning *p)
{
	sqlite3_index_info *info = p->info;
	const double all = (double)p->relation->ds->snapshot.sample_count + 1;
	double by_row = 1;

	if (info->colUsed & 6)
		by_row += COST_KEY;
	for (uint32_t i = 3; i < p->relation->count && i < 63; i++)
		if (p->relation->columns[i].kind == STELE_RELATION_TEXT && info->colUsed >> i & 1)
			by_row += COST_TEXT;
	info->estimatedRows = (sqlite3_int64)(all * p->left) + 1;
	info->estimatedCost = all * COST_SCAN + all * p->left * by_row;
	if (!p->is_one)
		return;
	info->estimatedRows = 1;
	info->estimatedCost = COST_LOOKUP;
	info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	struct planning p = {
		.relation = ((struct stele_rows_vtab *)vtab)->relation,
		.info = info,
		.left = 1,
	};

	p.plan = stele_sqlite.malloc64(2 * (sqlite3_uint64)info->nConstraint + 1);
	if (!p.plan)
		return SQLITE_NOMEM;
	for (int i = 0; i < info->nConstraint; i++)
		plan_one(&p, i);
	p.plan[2 * p.argc] = '\0';
	info->idxStr = (char *)p.plan;
	info->needToFreeIdxStr = 1;
	info->idxNum = (info->colUsed & 2 ? STELE_ROWS_KEYS : 0) |
		       (info->colUsed & 4 ? STELE_ROWS_SIZES : 0);
	/* Rows come by id: what else they are to be sorted by decides nothing. */
	info->orderByConsumed = info->nOrderBy > 0 && info->aOrderBy[0].iColumn <= 0 &&
				!info->aOrderBy[0].desc;
	set_cost(&p);
	return SQLITE_OK;
}

/* ---- the module --------------------------------------------------------------------- */

static int connect(sqlite3 *db, void *user, int argc, const char *const *argv,
		   sqlite3_vtab **out, char **message)
{
	struct stele_relation *relation = user;
	struct stele_rows_vtab *made;
	char *sql = stele_sqlite.mprintf("CREATE TABLE samples(");
	int ret;

	(void)argc;
	(void)argv;
	for (uint32_t i = 0; i < relation->count && sql; i++) {
		char *longer = stele_sqlite.mprintf("%z%s\"%w\" %s", sql, i ? ", " : "",
						    relation->columns[i].name,
						    type_of(&relation->columns[i]));

		sql = longer;
	}
	sql = sql ? stele_sqlite.mprintf("%z)", sql) : NULL;
	made = calloc(1, sizeof(*made));
	ret = sql && made ? stele_sqlite.declare_vtab(db, sql) : SQLITE_NOMEM;
	stele_sqlite.free(sql);
	if (ret != SQLITE_OK) {
		*message = stele_sqlite.mprintf("%s", stele_sqlite.errmsg(db));
		free(made);
		return ret;
	}
	made->relation = relation;
	*out = &made->base;
	return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *vtab)
{
	free(vtab);
	return SQLITE_OK;
}

int stele_relation_add(struct stele_relation *relation, sqlite3 *db)
{
	/* Without xCreate: it is there by its name, and nobody makes another one. */
	static const sqlite3_module module = {
		.xConnect = connect,
		.xBestIndex = best_index,
		.xDisconnect = disconnect,
		.xOpen = stele_rows_open,
		.xClose = stele_rows_close,
		.xFilter = stele_rows_filter,
		.xNext = stele_rows_next,
		.xEof = stele_rows_eof,
		.xColumn = stele_rows_column,
		.xRowid = stele_rows_rowid,
	};

	return stele_sqlite.create_module_v2(db, "samples", &module, relation, NULL);
}
