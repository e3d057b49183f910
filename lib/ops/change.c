/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change.c - see change.h
 */
#include "lib/ops/change.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/base/options.h"
#include "lib/device/name.h"

static int check_options(const struct stele_txn_opts *opts, uint32_t flags,
			 const struct stele_log *log)
{
	const struct stele_option limits[] = {
		{"reserved", opts->reserved, 0},
		{"grace", opts->grace, INT64_MAX / 2},
		{"time", opts->time < 0 ? 0 : (uint64_t)opts->time,
		 INT64_MAX / 4},
	};
	int ret = stele_options_flags(opts->flags, flags | STELE_DRY_RUN,
				      log);

	return ret ? ret :
		     stele_options_check(limits, sizeof(limits) / sizeof(*limits),
					 log);
}

/* By $SOURCE_DATE_EPOCH all would have been unused for ages. */
static int fill_time(struct stele_txn_opts *opts,
		     enum stele_change_kind kind, const struct stele_log *log)
{
	const int64_t now = time(NULL);

	if ((kind == STELE_CHANGE_FREES || kind == STELE_CHANGE_LISTS) && !opts->time)
		opts->time = now;
	if (kind == STELE_CHANGE_GOES && opts->time < now)
		opts->time = now;
	return stele_options_time(opts->time, log, &opts->time);
}

static int check_target(const struct stele_txn *txn, const char *target,
			enum stele_change_of of, const struct stele_log *log)
{
	const struct stele_target *found = &txn->target;

	if (of == STELE_CHANGE_OF_SNAPSHOT && !found->snapshot)
		stele_log_error(log, "'%s' names no snapshot (write TARGET@NAME)", target);
	else if (of == STELE_CHANGE_OF_IMAGE && !found->mapped &&
		 (found->snapshot || found->pinned))
		stele_log_error(log, "'%s' names a snapshot, and what is to be changed is the "
				"whole image '%s'", target, found->path);
	else
		return 0;
	return -EINVAL;
}

int stele_change_begin(struct stele_txn *txn, const char *target, enum stele_change_of of,
		       const struct stele_txn_opts *opts,
		       enum stele_change_kind kind, uint32_t flags)
{
	struct stele_txn_opts known;
	struct stele_log log;
	int ret = stele_options_get(opts, &known, sizeof(known), &log);

	memset(txn, 0, sizeof(*txn));
	if (ret == 0)
		ret = check_options(&known, flags, &log);
	if (ret == 0)
		ret = fill_time(&known, kind, &log);
	if (ret == 0 && kind == STELE_CHANGE_LISTS &&
	    known.flags == STELE_DRY_RUN && !known.grace)
		ret = stele_txn_look(txn, target, known.backend, &log);
	else if (ret == 0)
		ret = stele_txn_begin(txn, target,
				      known.flags & STELE_DRY_RUN,
				      known.backend, &log);
	if (ret == 0)
		ret = stele_file_check_sources(txn->image->dev, txn->target.path, known.sources,
					       &log);
	if (ret < 0)
		return ret;
	txn->time = known.time;
	txn->grace = known.grace;
	txn->force = known.flags & STELE_FORCE;
	txn->revoke = txn->force && !txn->grace;
	txn->discard = known.flags & STELE_TXN_DISCARD;
	txn->progress = known.progress;
	txn->progress_user = known.progress_user;
	return check_target(txn, target, of, &log);
}

int stele_change_check(const struct stele_txn *txn)
{
	const struct stele_catalog *catalog = &txn->image->catalog;
	struct stele_catalog_snapshot last;

	if (txn->force || txn->snapshot_count || !catalog->counts.snapshots)
		return 0;
	stele_catalog_snapshot(catalog, catalog->counts.snapshots - 1, &last);
	stele_log_error(&txn->log,
			"no snapshot would be left of '%s', and nothing could be "
			"read any more: '%s' is the last one",
			txn->target.path ? txn->target.path : "the image",
			last.name);
	return -EEXIST;
}

int stele_change_end(struct stele_txn *txn, int ret)
{
	if (ret == 0)
		ret = stele_change_check(txn);
	if (ret == 0 && txn->state == STELE_TXN_DIRTY)
		ret = stele_txn_publish(txn, txn->time);
	stele_txn_release(txn);
	return ret;
}
