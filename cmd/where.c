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

/* A bit for each sample of the snapshot: is it left out? */
struct marks {
	uint64_t *words;
	uint64_t count; /* of samples */
};

static bool mark_is_set(const struct marks *marks, uint64_t id)
{
	return marks->words[id / 64] >> id % 64 & 1;
}

static void mark_set(struct marks *marks, uint64_t id, bool set)
{
	const uint64_t bit = UINT64_C(1) << id % 64;

	if (set)
		marks->words[id / 64] |= bit;
	else
		marks->words[id / 64] &= ~bit;
}

static int keep(void *user, const uint64_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mark_set(user, ids[i], false);
	return 0;
}

static uint64_t count_set(const struct marks *marks)
{
	uint64_t count = 0;

	for (uint64_t id = 0; id < marks->count; id++)
		count += mark_is_set(marks, id);
	return count;
}

void where_hint_names(const struct stele_dataset *ds, const char *expression)
{
	struct stele_field field = {.size = sizeof(field)};
	char names[STELE_NAME_SIZE_MAX + sizeof("_name")];

	for (uint32_t i = 0; !stele_dataset_field(ds, i, &field); i++) {
		if (!field.name_count || !strcmp(field.name, "split"))
			continue; /* which is compared with names */
		snprintf(names, sizeof(names), "%s_name", field.name);
		if (strstr(expression, field.name) && !strstr(expression, names))
			cmd_hint("'%s' is the number of a class: its name is in %s", field.name,
				 names);
	}
}

/* Those that match are asked for, which may take no look at many of the others. */
static int ask(const struct where *where, struct stele_dataset *ds, struct cmd_log *log,
	       struct marks *marks)
{
	const struct stele_query_opts opts = {
		.size = sizeof(opts),
		.log = cmd_log_line,
		.log_user = log,
		.progress = progress_show,
	};
	int error;

	for (uint64_t id = 0; id < marks->count; id++)
		mark_set(marks, id, true);
	error = stele_dataset_select(ds, where->expression, &opts, keep, marks);
	if (error) {
		cmd_log_error(error, log->target);
	} else if (count_set(marks) == marks->count) {
		cmd_message("no sample of '%s' matches '%s'", log->target, where->expression);
		where_hint_names(ds, where->expression);
		error = -ENOENT;
	}
	return error;
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

static int collect(struct where *where, const struct marks *marks)
{
	where->ids = calloc(count_set(marks) + 1, sizeof(*where->ids));
	if (!where->ids)
		return -ENOMEM;
	for (uint64_t id = 0; id < marks->count; id++)
		if (mark_is_set(marks, id))
			where->ids[where->id_count++] = id;
	return 0;
}

static int look(struct where *where, const struct keys *keys, struct stele_dataset *ds,
		struct cmd_log *log)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct marks marks = {.count = stele_dataset_count(ds)};
	int error = check_ids(keys, ds, log->target);

	if (error)
		return error;
	marks.words = calloc(marks.count / 64 + 1, sizeof(*marks.words));
	error = marks.words ? stele_dataset_info(ds, &info) : -ENOMEM;
	if (!error && where->expression)
		error = ask(where, ds, log, &marks);
	for (size_t i = 0; i < keys->id_count && !error; i++)
		mark_set(&marks, keys->ids[i], true);
	if (!error)
		error = collect(where, &marks);
	memcpy(where->digest, info.digest, sizeof(where->digest));
	free(marks.words);
	return error;
}

int where_find(struct where *where, const struct keys *keys)
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
		error = look(where, keys, ds, &log);
		stele_dataset_close(ds);
	}
	free(target);
	return error;
}

void where_release(struct where *where)
{
	free(where->ids);
	memset(where, 0, sizeof(*where));
}
