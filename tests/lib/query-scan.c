/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query-scan.c - queries over segments of many blocks, less deleted samples
 *
 * What they find is worked out from the samples themselves; and what they read is counted.
 */
#include "lib/query/scan.h"
#include "tests/fixture/dataset.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct test_dataset t;

/* Open, or bail. */
static struct stele_query *ask(const char *sql)
{
	struct stele_query *query;

	if (stele_query_open(t.ds, sql, NULL, &query) < 0)
		bail("%s: %s", sql, stele_errmsg());
	return query;
}

static int64_t number(struct stele_query *query, uint32_t column)
{
	struct stele_query_value value = {0};

	if (stele_query_value(query, column, &value) || value.type != STELE_QUERY_I64)
		bail("no number in column %" PRIu32, column);
	return value.i64;
}

static bool is_key(struct stele_query *query, uint32_t column, const char *key)
{
	struct stele_query_value value = {0};

	return !stele_query_value(query, column, &value) && value.type == STELE_QUERY_TEXT &&
	       value.size == strlen(key) && memcmp(value.data, key, value.size) == 0;
}

/* Ids from `first` to before `end` with labels from `low` to `high`, and all of their row. */
static void test_rows(uint64_t first, uint64_t end, int64_t low, int64_t high, const char *more)
{
	struct stele_query *query;
	uint64_t wrong = 0, id = first, found = 0;
	char sql[256];
	int ret;

	snprintf(sql, sizeof(sql), "SELECT id, label%s FROM samples WHERE label BETWEEN %" PRIi64
		 " AND %" PRIi64 " AND id >= %" PRIu64 " AND id < %" PRIu64, more, low, high,
		 first, end);
	query = ask(sql);
	end = end < t.count ? end : t.count;
	while ((ret = stele_query_next(query)) > 0) {
		const struct test_sample *sample;

		while (id < end && (t.live[id].sample->label < low ||
				    t.live[id].sample->label > high))
			id++;
		if (id == end)
			break;
		sample = t.live[id].sample;
		wrong += number(query, 0) != (int64_t)id || number(query, 1) != sample->label;
		if (*more)
			wrong += !is_key(query, 2, sample->key) ||
				 number(query, 3) != (int64_t)sample->size;
		id++;
		found++;
	}
	while (id < end && (t.live[id].sample->label < low || t.live[id].sample->label > high))
		id++;
	ok(!ret && !wrong && id == end, "%" PRIu64 " rows: %s", found, sql);
	stele_query_close(query);
}

static size_t reads_of(const char *sql)
{
	struct stele_query *query = ask(sql);
	size_t issued, before;

	stele_fault_log(t.dev, &before);
	while (stele_query_next(query) > 0)
		;
	stele_fault_log(t.dev, &issued);
	stele_query_close(query);
	return issued - before;
}

static int64_t largest(void)
{
	int64_t max = INT64_MIN;

	for (uint64_t i = 0; i < t.count; i++)
		max = t.live[i].sample->label > max ? t.live[i].sample->label : max;
	return max;
}

static void test_reads(void)
{
	/* Windows of 8, 16, 32 and 64 blocks in each of two segments, of 80. */
	ok(reads_of("SELECT count(*) FROM samples WHERE label >= 0") <= 2 * 4,
	   "a scan takes a few reads");
	is_uint(0, reads_of("SELECT count(*) FROM samples"), "without a column it takes none");
	is_uint(0, reads_of("SELECT id FROM samples WHERE id = 70000"), "nor for an id");
	is_uint(1, reads_of("SELECT label FROM samples WHERE id = 30000"), "of an id, one");
	ok(reads_of("SELECT label FROM samples LIMIT 3") <= 1, "nor more for the first rows");
}

/* Blocks whose summaries say that nothing is in them are not looked at. */
static void test_skips(int64_t low, bool all)
{
	struct stele_bounds *bounds = calloc(1, sizeof(*bounds));
	struct stele_scan_pulse pulse = {.total = t.count};
	struct stele_scan scan = {.ds = t.ds, .pulse = &pulse};
	uint64_t rows = 0;
	int ret;

	if (!bounds)
		bail("no memory");
	stele_bounds_init(bounds, 1, false);
	stele_bounds_add_i64(bounds, STELE_BOUNDS_GE, low);
	stele_scan_begin(&scan, bounds, 1, 0, t.count);
	while ((ret = stele_scan_next(&scan, SIZE_MAX, false)) > 0)
		rows += scan.count;
	is_int(0, ret, "scan: of labels from %" PRIi64 " on", low);
	is_uint(2 * 80, scan.blocks_read, "scan: each block is read once");
	is_uint(all ? scan.blocks_read : 0, scan.blocks_skipped, "scan: all are skipped, or none");
	ok(all == !rows, "scan: which makes no difference");
	stele_scan_release(&scan);
}

static int stop(void *user, const uint64_t *ids, size_t count)
{
	uint64_t *seen = user;

	(void)ids;
	*seen += count;
	return *seen > 5000 ? -7 : 0;
}

static int cancel(void *user, const struct stele_progress *progress)
{
	(void)user;
	return progress->phase == STELE_PHASE_SCAN;
}

static int count(void *user, const uint64_t *ids, size_t n)
{
	(void)ids;
	*(size_t *)user += n;
	return 0;
}

static void keep_line(void *user, enum stele_log_level level, const char *line)
{
	(void)level;
	snprintf(user, 256, "%s", line);
}

/* What follows WHERE is one expression, or refused. */
static void test_expressions(void)
{
	static const char *const wrong[] = {
		"label=0) or (id=0", "id<0) or (label=0", "1) --", "1) /*", "1 /*", "(1", "1)", "",
		"--", "1;", ";", "1; SELECT 1", "1 ORDER BY id", "1 LIMIT 3", "1 GROUP BY label",
		"1 UNION SELECT 1", "1) UNION SELECT (1", "count(*) > 1", "label, 1", "'a", "\"a",
	};
	static const char *const harmless[] = {"1 -- all", "1 /* all */", "/* all */ (1)", "1\n"};
	char line[256];
	const struct stele_query_opts opts = {
		.size = sizeof(opts), .log = keep_line, .log_user = line};
	size_t selected;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		selected = 0;
		is_int(-EINVAL, stele_dataset_select(t.ds, wrong[i], NULL, count, &selected),
		       "select: no expression: %s", wrong[i]);
		is_uint(0, selected, "select: none of them");
	}
	for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++) {
		selected = 0;
		is_int(0, stele_dataset_select(t.ds, harmless[i], NULL, count, &selected),
		       "select: an expression: %s", harmless[i]);
		is_uint(t.count, selected, "select: all of them");
	}
	is_int(-EINVAL, stele_dataset_select(t.ds, "label = 'a", &opts, count, &selected),
	       "select: a quote that does not end");
	ok(strstr(line, "\"'a\"") && !strchr(line, ')'), "select: named without our text: %s",
	   line);
}

static void test_ends(void)
{
	const struct stele_query_opts opts = {.size = sizeof(opts), .progress = cancel};
	struct stele_query_value value;
	struct stele_query *query;
	uint64_t seen = 0;

	is_int(-7, stele_dataset_select(t.ds, "1", NULL, stop, &seen), "select: stopped");
	ok(seen < 20000, "select: soon");
	is_int(-ECANCELED, stele_dataset_select(t.ds, "label = 1", &opts, stop, &seen),
	       "select: cancelled");
	is_int(-EINVAL, stele_dataset_select(t.ds, "labl = 1", NULL, stop, &seen),
	       "select: no such column");
	query = ask("SELECT id, NULL, 1.5, x'00' FROM samples WHERE id < 2");
	is_int(-EINVAL, stele_query_value(query, 0, &value), "no row yet");
	is_int(-EBUSY, stele_dataset_close(t.ds), "a query keeps its dataset open");
	is_uint(4, stele_query_column_count(query), "columns");
	is_string("id", stele_query_column_name(query, 0), "with names");
	ok(!stele_query_column_name(query, 4), "and no more");
	is_int(1, stele_query_next(query), "a row");
	is_int(0, stele_query_value(query, 1, &value), "its value");
	is_uint(STELE_QUERY_NULL, value.type, "NULL");
	is_int(0, stele_query_value(query, 2, &value), "the next one");
	ok(value.type == STELE_QUERY_F64 && value.f64 == 1.5, "a real");
	is_int(0, stele_query_value(query, 3, &value), "the last one");
	ok(value.type == STELE_QUERY_BYTES && value.size == 1, "bytes");
	is_int(-ERANGE, stele_query_value(query, 4, &value), "and no more");
	is_int(1, stele_query_next(query), "another row");
	is_int(0, stele_query_next(query), "the end");
	is_int(0, stele_query_next(query), "which stays");
	is_int(-EINVAL, stele_query_value(query, 0, &value), "and has no row");
	stele_query_close(query);
	stele_query_close(NULL);
}

int main(void)
{
	struct test_plan plan = {.segments = 2,
				 .samples = 40000,
				 .size_max = 20,
				 .delete_every = 7};
	int64_t max;

	plan_lazy();
	test_dataset_open(&t, &plan);
	max = largest();
	test_rows(0, UINT32_MAX, 0, max, "");
	test_rows(0, UINT32_MAX, max / 2, max / 2, "");
	test_rows(0, UINT32_MAX, max, INT64_MAX, ", key, size");
	test_rows(0, UINT32_MAX, 0, max, ", key, size");
	test_rows(33000, 36000, 1, max, ", key, size");
	test_rows(100, 101, INT64_MIN + 1, INT64_MAX, ", key, size");
	test_rows(34285, 34287, 0, max, "");
	test_rows(t.count - 1, UINT32_MAX, 0, max, "");
	test_rows(0, UINT32_MAX, max + 1, INT64_MAX, "");
	test_reads();
	test_skips(0, false);
	test_skips(max + 1, true);
	test_expressions();
	test_ends();
	test_dataset_close(&t);
	return done();
}
