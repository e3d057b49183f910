/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.c - stele_compact(): one snapshot, laid out anew as one segment
 *
 * The snapshot is the source, its own image the target: old slots are read while the
 * new segment is written, where nothing leads to yet. What is planned is what is read:
 * the transaction is open before the plan is made.
 */
#include "lib/ops/compact.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/base/workers.h"
#include "lib/ops/append.h"

/* Of the memory, for reading; what is left is for the plan and for writing. */
#define READING_SHARE 2u
/*
 * What a thread reads with. Of small samples it is the more at once, and so the fewer times
 * all, where they go into another order; of larger ones many threads are more.
 */
#define READING_SMALL (UINT64_C(16) << 20) /* at least */
#define READING_LARGE (UINT64_C(4) << 20)  /* at most, too */
#define SMALL_SIZE    (UINT64_C(16) << 10)

/*
 * Takes it from the builder's, and no more threads than have some; for small samples one per
 * processor, unless the caller chose. Bytes for each.
 */
static uint64_t share_memory(struct stele_builder *builder,
			     const struct stele_snapshot *snapshot)
{
	struct stele_build_opts *opts = &builder->opts;
	const uint64_t share = opts->memory_size / READING_SHARE;
	const bool small = snapshot->info.payload_size / SMALL_SIZE <
			   snapshot->sample_count;
	const uint64_t wanted = small ? READING_SMALL : READING_LARGE;
	uint64_t jobs = share < wanted ? 1 : share / wanted, each;

	if (small && !builder->jobs_chosen && jobs > stele_processors())
		jobs = stele_processors();
	opts->memory_size -= share;
	if (opts->jobs > jobs)
		opts->jobs = (uint32_t)jobs;
	each = share / opts->jobs;
	return small || each < wanted ? each : wanted;
}

static int lay_out(struct stele_txn *txn, struct stele_builder *builder,
		   const struct stele_snapshot *old, const struct stele_source *source)
{
	struct stele_append append;
	int ret;

	stele_append_fit(builder, txn);
	ret = stele_append_prepare(&append, builder, source, NULL);
	if (!ret)
		ret = stele_addition_begin(txn, NULL);
	if (!ret) {
		txn->work->parent = old->info.id;
		ret = stele_append_write(&append, txn->work);
	}
	if (!ret)
		txn->work->source_time = old->info.source_time;
	stele_append_release(&append);
	return ret;
}

int stele_compact_on(struct stele_txn *txn, struct stele_builder *builder,
		     const char *name)
{
	struct stele_addition *old;
	struct stele_source source = {0};
	int ret = stele_txn_base(txn, name);

	if (ret < 0)
		return ret;
	old = stele_addition_take(txn);
	ret = stele_source_open_snapshot(txn->image, &old->snapshot,
					 share_memory(builder, &old->snapshot),
					 &builder->log, &source);
	if (!ret)
		ret = lay_out(txn, builder, &old->snapshot, &source);
	stele_source_close(&source);
	stele_addition_discard(old);
	return ret;
}

/* ---- stele_compact() --------------------------------------------------------------- */

static int init(struct stele_builder *builder,
		const struct stele_compact_opts *opts,
		struct stele_build_report *report)
{
	struct stele_compact_opts known;
	struct stele_build_opts all;
	struct stele_log log;
	int ret = stele_options_get(opts, &known, sizeof(known), &log);

	if (ret == 0)
		ret = stele_options_check(&(struct stele_option){
			"reserved", known.reserved, 0}, 1, &log);
	if (ret < 0)
		return ret;
	all = stele_builder_opts(&known, STELE_WRITE_OPTS_SIZE);
	all.backend = known.backend;
	all.note = known.note;
	all.time = known.time;
	return stele_builder_init(builder, &all, STELE_DRY_RUN, report);
}

/* The one that is named; else the only one. */
static int choose(const struct stele_txn *txn, const char **name)
{
	*name = txn->target.snapshot;
	if (!*name && !txn->snapshot_count)
		return stele_snapshot_log_choice(txn->image, -ENOENT);
	if (*name || txn->snapshot_count == 1)
		return 0;
	stele_log_error(&txn->log,
			"'%s' has several snapshots: name the one to compact, "
			"as TARGET@NAME", txn->target.path);
	return -EINVAL;
}

static void begin_report(const struct stele_txn *txn, const char *name,
			 struct stele_build_report *report)
{
	memcpy(report->uuid, txn->image->sb.uuid, STELE_UUID_SIZE);
	snprintf(report->snapshot, sizeof(report->snapshot), "%s", name);
	snprintf(report->backend, sizeof(report->backend), "%s",
		 stele_device_backend(txn->image->dev));
}

static int run(struct stele_txn *txn, struct stele_builder *builder,
	       const char *name)
{
	const struct stele_build_opts *opts = &builder->opts;
	struct stele_build_report *report = builder->report;
	const char *old;
	int ret = stele_txn_check_new_name(txn, name);

	begin_report(txn, name, report);
	txn->time = opts->time;
	if (!ret)
		ret = choose(txn, &old);
	if (!ret)
		ret = stele_compact_on(txn, builder, old);
	if (!ret)
		ret = stele_txn_snapshot(txn, name, opts->note, NULL);
	if (!ret && !txn->dry)
		memcpy(report->digest, stele_txn_find(txn, name)->info.digest,
		       sizeof(report->digest));
	if (!ret)
		ret = stele_txn_publish(txn, opts->time);
	if (ret < 0)
		return ret;
	report->image_end = txn->image->sb.high_water;
	report->written_size = txn->written_size;
	return stele_device_size(txn->image->dev, &report->target_size);
}

static int do_compact(const char *target, const char *name,
		      const struct stele_compact_opts *opts,
		      struct stele_build_report *report)
{
	struct stele_build_report made = {0};
	struct stele_builder builder = {0};
	struct stele_txn txn = {0};
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	ret = init(&builder, opts, &made);
	if (!ret)
		ret = stele_output_check(report, backend, &builder.log);
	if (!ret)
		ret = stele_txn_check_name(name ? name : "", &builder.log);
	if (!ret)
		ret = stele_txn_begin(&txn, target,
				      builder.opts.flags & STELE_DRY_RUN,
				      builder.opts.backend, &builder.log);
	if (!ret)
		ret = run(&txn, &builder, name);
	made.total_seconds = stele_seconds_since(&begin);
	stele_output_fill(report, &made, sizeof(made));
	stele_txn_release(&txn);
	stele_builder_release(&builder);
	return ret;
}

int stele_compact(const char *target, const char *name,
		  const struct stele_compact_opts *opts,
		  struct stele_build_report *report)
{
	return STELE_CALL(do_compact(target, name, opts, report),
			  "cannot compact '%s'", target);
}
