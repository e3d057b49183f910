/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change.c - snapshots come, get other names, and go
 *
 * Of a snapshot that goes, the shot goes first: cut short, the catalog still
 * has the snapshot, and the next writer makes its shot anew. The other way round
 * a shot would stay that no catalog knows.
 */
#include "lib/txn/change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/catalog.h"
#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/device/target.h"
#include "lib/image/snapshot.h"
#include "lib/node/mapping.h"
#include "lib/txn/withdrawn.h"

static int check_options(const struct stele_change_opts *opts,
			 const struct stele_log *log)
{
	const struct stele_option limits[] = {
		{"reserved", opts->reserved, 0},
		{"grace", opts->grace, INT64_MAX / 2},
		{"time", opts->time < 0 ? 0 : (uint64_t)opts->time,
		 INT64_MAX / 4},
	};

	return stele_options_check(limits, sizeof(limits) / sizeof(*limits),
				   log);
}

int stele_change_init(struct stele_change *change,
		      const struct stele_change_opts *opts, uint32_t flags)
{
	int ret;

	memset(change, 0, sizeof(*change));
	ret = stele_options_get(opts, &change->opts, sizeof(change->opts),
				&change->log);
	if (!ret)
		ret = stele_options_flags(change->opts.flags, flags,
					  &change->log);
	if (!ret)
		ret = check_options(&change->opts, &change->log);
	if (ret < 0)
		return ret;
	/*
	 * What a grace period may count from goes by the clock: by
	 * $SOURCE_DATE_EPOCH all would have been unused for ages.
	 */
	if (!change->opts.time && (flags & STELE_CHANGE_FORCE))
		change->opts.time = time(NULL);
	return stele_options_time(change->opts.time, &change->log,
				  &change->opts.time);
}

/* ---- what stands against it ------------------------------------------------ */

struct mapped {
	const struct stele_writer *writer;
	struct stele_identity target;
	const char *snapshot;
	char name[STELE_NAME_SIZE_MAX + 1]; /* found */
};

/* Not by path: a file may have several, and one that is another one's elsewhere. */
static int find_mapped(void *user, const struct stele_mapping *mapping)
{
	struct mapped *mapped = user;
	const struct stele_mapping_info *info = &mapping->info;

	if (strcmp(info->snapshot, mapped->snapshot) != 0 ||
	    memcmp(info->uuid, mapped->writer->image.sb.uuid,
		   sizeof(info->uuid)) != 0 ||
	    !stele_mapping_is_on(mapping, &mapped->target))
		return 0;
	snprintf(mapped->name, sizeof(mapped->name), "%s", info->name);
	return 1;
}

/* Refuse what is mapped on this machine: its name would be dead. */
static int check_mapped(const struct stele_writer *writer, const char *snapshot)
{
	const char *path = writer->target.path;
	struct mapped mapped = {.writer = writer, .snapshot = snapshot};
	int ret;

	/* A writer without a name works on what nobody can have mapped. */
	if (!path)
		return 0;
	ret = stele_identity_of_device(writer->image.dev, &mapped.target);
	if (ret == 0)
		ret = stele_mapping_each(find_mapped, &mapped);
	if (ret <= 0)
		return ret;
	stele_log_error(&writer->log,
			"snapshot '%s' of '%s' is mapped as '%s' on this "
			"machine (unmap it first)",
			snapshot, path, mapped.name);
	return -EBUSY;
}

/* Where the storage keeps shots, they have readers that cannot be seen. */
static int check_readers(const struct stele_writer *writer,
			 const struct stele_change *change,
			 const char *snapshot)
{
	if (!stele_device_shots(writer->image.dev) || change->opts.grace ||
	    (change->opts.flags & STELE_CHANGE_FORCE))
		return 0;
	stele_log_error(&writer->log,
			"who reads snapshot '%s' of '%s' cannot be seen: give "
			"them time with a grace period, or use force",
			snapshot, writer->target.path ? writer->target.path :
							"");
	return -EBUSY;
}

static int is_name(void *user, const struct stele_shot *shot)
{
	return !strcmp(shot->name, user);
}

/* A shot of somebody else's may have the name that is wanted. */
static int check_shot(const struct stele_writer *writer, const char *name)
{
	struct stele_device *dev = writer->image.dev;
	const struct stele_shot_ops *shots = stele_device_shots(dev);
	int ret;

	if (!shots)
		return 0;
	ret = shots->each(dev, is_name, (void *)(uintptr_t)name);
	if (ret <= 0)
		return ret;
	stele_log_error(&writer->log,
			"there is an RBD snapshot '%s' that is none of ours: "
			"take another name, or remove it",
			name);
	return -EEXIST;
}

/* What becomes of the shot of a snapshot that goes. */
static int drop_shot(const struct stele_writer *writer,
		     const struct stele_change *change, const char *snapshot)
{
	struct stele_device *dev = writer->image.dev;
	int64_t time = change->opts.time > 0 ? change->opts.time : 0;

	if (time < writer->image.sb.commit_time)
		time = writer->image.sb.commit_time; /* as its segments */
	if (!stele_device_shots(dev))
		return 0;
	if (change->opts.flags & STELE_CHANGE_FORCE)
		return stele_withdrawn_remove(dev, &writer->log, snapshot);
	return stele_withdrawn_make(dev, &writer->log, snapshot,
				    time + (int64_t)change->opts.grace);
}

/* ---- delete, rename ------------------------------------------------------------ */

int stele_change_delete(struct stele_writer *writer,
			const struct stele_change *change, const char *name)
{
	int ret;

	if (!stele_edit_snapshot(&writer->edit, name))
		return stele_snapshot_log_choice(&writer->image, -ENOENT);
	ret = check_mapped(writer, name);
	if (ret == 0)
		ret = check_readers(writer, change, name);
	if (ret == 0)
		ret = stele_edit_remove_snapshot(&writer->edit, name);
	if (ret == 0)
		ret = drop_shot(writer, change, name);
	if (ret == 0)
		ret = stele_writer_commit(writer, change->opts.time);
	return ret;
}

int stele_change_rename(struct stele_writer *writer,
			const struct stele_change *change, const char *from,
			const char *to)
{
	int ret;

	if (!stele_edit_snapshot(&writer->edit, from))
		return stele_snapshot_log_choice(&writer->image, -ENOENT);
	if (!strcmp(from, to))
		return 0;
	if (stele_edit_check_name(to, &writer->log) < 0)
		return -EINVAL;
	if (stele_edit_snapshot(&writer->edit, to)) {
		stele_log_error(&writer->log,
				"there is a snapshot '%s' already", to);
		return -EEXIST;
	}
	ret = check_mapped(writer, from);
	if (ret == 0)
		ret = check_readers(writer, change, from);
	if (ret == 0)
		ret = check_shot(writer, to);
	if (ret == 0)
		ret = stele_edit_rename_snapshot(&writer->edit, from, to);
	if (ret == 0)
		ret = drop_shot(writer, change, from);
	if (ret == 0)
		ret = stele_writer_commit(writer, change->opts.time);
	return ret;
}

/*
 * Readers get their grace from when they could last begin, whatever a user says that
 * it is recorded as.
 */
static void not_before_now(struct stele_change *change)
{
	const int64_t now = time(NULL);

	if (change->opts.time < now)
		change->opts.time = now;
}

/* ---- from the outside ------------------------------------------------------------- */

int stele_change_open(struct stele_change *change, const char *target,
		      struct stele_writer *writer)
{
	int ret = stele_writer_open(writer, target, change->opts.backend,
				    &change->log);

	if (ret == 0 && !writer->target.snapshot) {
		stele_log_error(&change->log,
				"'%s' names no snapshot (write TARGET@NAME)",
				target);
		ret = -EINVAL;
	}
	return ret;
}

static int snapshot_rename(const char *target, const char *name,
			   const struct stele_change_opts *opts)
{
	struct stele_writer writer = {0};
	struct stele_change change;
	int ret = stele_change_init(&change, opts, STELE_CHANGE_FORCE);

	if (ret < 0)
		return ret;
	not_before_now(&change);
	ret = name ? stele_change_open(&change, target, &writer) : -EINVAL;
	if (ret == 0)
		ret = stele_change_rename(&writer, &change,
					  writer.target.snapshot, name);
	stele_writer_close(&writer);
	return ret;
}

int stele_snapshot_rename(const char *target, const char *name,
			  const struct stele_change_opts *opts)
{
	return STELE_CALL(snapshot_rename(target, name, opts),
			  "cannot rename snapshot '%s'", target);
}

static int snapshot_delete(const char *target,
			   const struct stele_change_opts *opts)
{
	struct stele_writer writer = {0};
	struct stele_change change;
	int ret = stele_change_init(&change, opts, STELE_CHANGE_FORCE);

	if (ret < 0)
		return ret;
	not_before_now(&change);
	ret = stele_change_open(&change, target, &writer);
	if (ret == 0)
		ret = stele_change_delete(&writer, &change,
					  writer.target.snapshot);
	stele_writer_close(&writer);
	return ret;
}

int stele_snapshot_delete(const char *target,
			  const struct stele_change_opts *opts)
{
	return STELE_CALL(snapshot_delete(target, opts),
			  "cannot delete snapshot '%s'", target);
}
