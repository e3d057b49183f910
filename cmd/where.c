/* SPDX-License-Identifier: Apache-2.0 */
/*
 * where.c - see where.h
 */
#include "where.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "progress.h"
#include "snapshots.h"
#include "text.h"

/* PATH@NAME, with another name or none; malloced. */
static char *with_name(const char *target, const char *name)
{
	const char *at = cmd_snapshot_of(target) - 1, *rest = NULL;
	char *text;

	if (cmd_is_rbd(target))
		rest = strchr(at, '?');
	if (asprintf(&text, "%.*s%s%s%s", (int)(at - target), target, *name ? "@" : "", name,
		     rest ? rest : "") < 0)
		return NULL;
	return text;
}

static int find_newest(struct where *where)
{
	struct snapshots snapshots = {0};
	struct stele_image *image;
	struct cmd_log log = {0};
	char *whole = with_name(where->target, "");
	int error = whole ? 0 : -ENOMEM;

	log.target = whole;
	if (!error)
		error = cmd_open_image(&log, &image);
	if (!error) {
		error = snapshots_load(&snapshots, image);
		if (!error && snapshots.count)
			snprintf(where->base, sizeof(where->base), "%s",
				 snapshots.infos[snapshots.count - 1].name);
		snapshots_release(&snapshots);
		stele_image_close(image);
	}
	free(whole);
	return error;
}

static int take_keys(struct stele_query *query, struct keys *keys)
{
	struct stele_query_value value;
	int ret;

	while ((ret = stele_query_next(query)) > 0) {
		ret = stele_query_value(query, 0, &value);
		if (!ret)
			ret = keys_copy(keys, value.data, value.size);
		if (ret)
			break;
	}
	return ret;
}

/* An expression by itself: "a) OR (b" must not become part of what is around it. */
static int check(const struct where *where, struct stele_dataset *ds,
		 const struct stele_query_opts *opts)
{
	struct stele_query *query;
	char *sql;
	int error;

	if (asprintf(&sql, "SELECT 1 FROM samples WHERE %s", where->expression) < 0)
		return -ENOMEM;
	error = stele_query_open(ds, sql, opts, &query);
	free(sql);
	if (!error)
		stele_query_close(query);
	return error;
}

static int open_query(const struct where *where, struct stele_dataset *ds,
		      const struct stele_query_opts *opts, struct stele_query **query)
{
	int error = check(where, ds, opts);
	char *sql;

	if (error)
		return error;
	if (asprintf(&sql, "SELECT key FROM samples WHERE (%s\n) IS NOT TRUE",
		     where->expression) < 0)
		return -ENOMEM;
	error = stele_query_open(ds, sql, opts, query);
	free(sql);
	return error;
}

static int ask(const struct where *where, struct stele_dataset *ds, struct cmd_log *log,
	       struct keys *keys)
{
	const struct stele_query_opts opts = {
		.size = sizeof(opts),
		.log = cmd_log_line,
		.log_user = log,
		.progress = progress_show,
	};
	const size_t before = keys->count;
	struct stele_query *query;
	int error = open_query(where, ds, &opts, &query);

	if (!error) {
		error = take_keys(query, keys);
		stele_query_close(query);
	}
	if (error) {
		cmd_log_error(error, log->target);
	} else if (keys->count - before == stele_dataset_count(ds)) {
		cmd_message("no sample of '%s' matches '%s'", log->target, where->expression);
		error = -ENOENT;
	}
	return error;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Each `#ID` names one sample that there is, and nothing else. Return: 0; errno (said). */
static int check_ids(const struct keys *keys, struct stele_dataset *ds, const char *target)
{
	char text[32], count[TEXT_SIZE];
	uint64_t other;

	for (size_t i = 0; i < keys->id_count; i++) {
		const uint64_t id = keys->ids[i];

		snprintf(text, sizeof(text), "#%" PRIu64, id);
		if (id >= stele_dataset_count(ds)) {
			cmd_message("'%s' is not in '%s': it has %s", text, target,
				    text_counted(count, stele_dataset_count(ds), "sample"));
			return -ENOENT;
		}
		if (!stele_dataset_lookup(ds, text, strlen(text), &other) && other != id) {
			cmd_message("'%s' is also the key of another sample", text);
			cmd_hint("name them by their keys: --keys-from takes nothing else");
			return -EINVAL;
		}
	}
	return 0;
}

/* One walk over the keys, however many ids there are. */
static int find_ids(struct keys *keys, struct stele_dataset *ds, struct cmd_log *log)
{
	struct stele_cursor_entry entry;
	struct stele_cursor *cursor = NULL;
	int ret = check_ids(keys, ds, log->target);

	if (ret)
		return ret;
	qsort(keys->ids, keys->id_count, sizeof(*keys->ids), by_number);
	ret = stele_cursor_open(ds, NULL, 0, &cursor);
	while (!ret && (ret = stele_cursor_next(cursor, &entry)) > 0)
		ret = bsearch(&entry.id, keys->ids, keys->id_count, sizeof(*keys->ids),
			      by_number) ?
			      keys_copy(keys, entry.key, entry.key_size) :
			      0;
	stele_cursor_close(cursor);
	if (ret)
		cmd_log_error(ret, log->target);
	return ret;
}

int where_add(struct where *where, struct keys *keys)
{
	struct cmd_log log = {0};
	struct stele_dataset *ds;
	char *target;
	int error = 0;

	/* Without a name of its own there will be no snapshot, and the library says so. */
	if ((!where->expression && !keys->id_count) || !cmd_snapshot_of(where->target))
		return 0;
	if (!*where->base)
		error = find_newest(where);
	if (error)
		return error;
	target = with_name(where->target, where->base);
	if (!target)
		return -ENOMEM;
	log.target = target;
	error = cmd_open_dataset(&log, STELE_VERIFY_DEFAULT, &ds);
	if (!error) {
		error = keys->id_count ? find_ids(keys, ds, &log) : 0;
		if (!error && where->expression)
			error = ask(where, ds, &log, keys);
		stele_dataset_close(ds);
	}
	free(target);
	return error;
}
