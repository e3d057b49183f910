/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.c - superblock copies and catalogs that are not what they should be, and branches
 *
 * All that is written is a commit, or what every writer does when it begins. So a
 * repair that is cut short is begun again, and nothing is lost that was there.
 */
#include <errno.h>
#include <string.h>

#include "lib/base/error.h"

#include "lib/base/options.h"
#include "lib/image/fork.h"
#include "lib/image/snapshot.h"
#include "lib/node/open.h"
#include "lib/txn/posix.h"

/* Descriptors, deleted lists and digest: as far as opening it goes. */
static int look_into(struct stele_image *view, uint32_t index)
{
	struct stele_snapshot snapshot;
	int ret = stele_snapshot_load(view, index, &snapshot);

	if (ret == 0)
		stele_snapshot_release(&snapshot);
	return ret;
}

/* Of those that can be chosen. */
static bool is_common(const struct stele_fork *fork, const struct stele_branch *branch,
		      uint32_t index)
{
	unsigned int sound = 0;

	for (unsigned int i = 0; i < fork->count; i++)
		sound += !fork->branches[i].error;
	return sound > 1 && stele_fork_common(fork, branch, index);
}

static void show_branch(struct stele_image *image, uint32_t number,
		      const struct stele_repair_opts *opts)
{
	const struct stele_branch *from = &image->fork->branches[number];
	/* As if it had won; it owns nothing. */
	struct stele_image view = {
		.dev = image->dev, .sb = from->sb, .catalog = from->catalog,
	};
	struct stele_fork_branch branch = {
		.size = sizeof(branch),
		.number = number + 1,
		.error = from->error,
		.generation = from->sb.generation,
		.create_time = from->sb.create_time,
		.commit_time = from->sb.commit_time,
		.snapshot_count = from->catalog.counts.snapshots,
	};

	memcpy(branch.uuid, from->sb.uuid, sizeof(branch.uuid));
	if (opts->branch)
		opts->branch(opts->user, &branch);
	for (uint32_t i = 0; i < branch.snapshot_count && opts->snapshot; i++) {
		struct stele_catalog_snapshot snapshot;
		struct stele_snapshot_info info;
		struct stele_fork_snapshot shown = {
			.size = sizeof(shown),
			.info = &info,
			.common = is_common(image->fork, from, i),
			.error = look_into(&view, i),
		};

		stele_catalog_snapshot(&from->catalog, i, &snapshot);
		stele_snapshot_describe(&snapshot, &info);
		opts->snapshot(opts->user, &branch, &shown);
	}
}

/* Between branches; or to go on with the only one, where there may have been another. */
static bool needs_choice(const struct stele_image *image)
{
	const struct stele_fork *fork = image->fork;

	return fork && (fork->count > 1 || fork->doubt);
}

static bool is_put_right(const struct stele_repair_report *report,
			 const struct stele_repair_opts *opts)
{
	if (report->branches)
		return opts->choose || !report->needs_choice;
	return report->wrong_copies || report->wrong_catalogs || report->wrong_front;
}

/* What is there, read only. */
static int look(const char *target, const struct stele_repair_opts *opts,
		const struct stele_log *log, struct stele_repair_report *report)
{
	struct stele_target parsed = {0};
	struct stele_log_held held;
	struct stele_image image;
	struct stele_device *dev;
	int ret = stele_target_open(target, true, opts->backend, log, &parsed,
				    &dev);

	if (ret < 0) {
		stele_target_release(&parsed);
		return ret;
	}
	/* A transaction that follows says it again. */
	stele_log_hold(&held, log);
	ret = stele_image_load(dev, &held.log, &image);
	if (ret < 0) {
		stele_log_end(&held, true);
		stele_device_close(dev);
		stele_target_release(&parsed);
		return ret;
	}
	report->branches = image.fork ? image.fork->count : 0;
	report->needs_choice = needs_choice(&image);
	report->wrong_copies = stele_image_wrong_copies(&image);
	if (!image.fork) {
		report->wrong_catalogs = stele_image_wrong_catalogs(&image);
		report->wrong_front = !stele_txn_is_shown(&image);
	}
	report->generation = image.sb.generation;
	stele_log_end(&held, !is_put_right(report, opts));
	for (uint32_t i = 0; i < report->branches; i++)
		show_branch(&image, i, opts);
	/* Also where nothing is to be done: who was told to run this is told why he was. */
	ret = stele_txn_check_overlaid(&image, parsed.path, log);
	stele_image_release(&image);
	stele_target_release(&parsed);
	return ret;
}

static int put_right(const char *target, const struct stele_repair_opts *opts,
		     const struct stele_log *log,
		     struct stele_repair_report *report)
{
	const bool dry = opts->flags & STELE_DRY_RUN;
	struct stele_txn txn = {0};
	/* Which writes block 0, too. */
	int ret = stele_txn_begin_branch(&txn, target, opts->choose, dry,
				       opts->backend, log);

	if (ret == 0 && report->branches) { /* now that one of them is the image */
		report->wrong_copies = stele_image_wrong_copies(txn.image);
		report->wrong_catalogs = stele_image_wrong_catalogs(txn.image);
	}
	if (ret == 0 && (report->branches || stele_image_wrong_copies(txn.image) ||
			 stele_image_wrong_catalogs(txn.image)))
		ret = stele_txn_publish(&txn, opts->time);
	/* Now what is damaged is of the generation before. */
	if (ret == 0 && !dry && (stele_image_wrong_copies(txn.image) ||
				 stele_image_wrong_catalogs(txn.image)))
		ret = stele_txn_publish(&txn, opts->time);
	if (ret == 0 && !dry) {
		report->changed = true;
		report->generation = txn.image->sb.generation;
	}
	stele_txn_release(&txn);
	return ret;
}

static int check_choice(const struct stele_repair_opts *opts,
			const struct stele_log *log,
			const struct stele_repair_report *report)
{
	if (report->needs_choice && !opts->choose) {
		stele_log_error(log, report->branches == 1 ?
					"there may have been newer snapshots than this branch has, "
					"of which nothing is left: choose it to go on" :
					"choose the branch that shall stay; what only the other "
					"one has is given up");
		return -ENOTUNIQ;
	}
	if (!report->branches && opts->choose && !is_put_right(report, opts)) {
		stele_log_error(log, "there is nothing to choose: the image has one version");
		return -ENOENT;
	}
	if (report->branches && opts->choose > report->branches) {
		stele_log_error(log, "there is no branch %u", opts->choose);
		return -ENOENT;
	}
	return 0;
}

static int repair(const char *target, const struct stele_repair_opts *opts,
		  struct stele_repair_report *report)
{
	struct stele_repair_report made = {0};
	struct stele_repair_opts known;
	struct stele_log log;
	int ret = stele_options_get(opts, &known, sizeof(known), &log);

	if (!ret)
		ret = stele_output_check(report, changed, &log);
	if (!ret)
		ret = stele_options_flags(known.flags, STELE_DRY_RUN,
					  &log);
	if (!ret)
		ret = stele_options_time(known.time, &log, &known.time);
	if (!ret)
		ret = look(target, &known, &log, &made);
	if (!ret)
		ret = check_choice(&known, &log, &made);
	if (!ret && made.branches && !known.choose)
		known.choose = !made.needs_choice;
	if (!ret && is_put_right(&made, &known))
		ret = put_right(target, &known, &log, &made);
	stele_output_fill(report, &made, sizeof(made));
	return ret;
}

int stele_repair(const char *target, const struct stele_repair_opts *opts,
		 struct stele_repair_report *report)
{
	return STELE_CALL(repair(target, opts, report),
			  "cannot repair '%s'", target);
}
