/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append.c - stele_append(): a source on top of a snapshot of a target
 *
 * The transaction is open for as long as it takes: what the source is compared
 * with must still be there when the new snapshot refers to it.
 */
#include "lib/ops/append.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/image/section.h"
#include "lib/ops/change.h"
#include "lib/ops/put.h"
#include "lib/posix/shown.h"
#include "lib/segment/content_id.h"
#include "lib/segment/sort.h"

int stele_origin_open(const struct stele_origin *origin, const char *target,
		      const struct stele_build_opts *opts,
		      const struct stele_log *log,
		      struct stele_source *out)
{
	const char *what = NULL;
	bool paths;
	int ret;

	if (origin->path)
		return stele_source_open_beside(origin->path, target, opts,
						log, out);
	ret = stele_source_from(origin->ops, origin->user, log, out);
	if (ret)
		return ret;
	paths = out->ops.flags & STELE_SOURCE_PATHS;
	if (opts->label_from && !paths)
		what = "labels go with directories and archives of files";
	if (opts->flags & STELE_BUILD_FOLLOW)
		what = "symbolic links go with a directory";
	if (opts->exclude)
		what = "exclude patterns go with a directory";
	if (what) {
		stele_log_error(log, "%s only", what);
		return -EINVAL;
	}
	return paths ? stele_source_label_paths(out, opts->label_from, log) : 0;
}

/* ---- prepare ------------------------------------------------------------------ */

/* A file that changed before this time is what the base has. */
static int64_t settled_since(const struct stele_append *append,
			     const struct stele_addition *onto)
{
	if (!(append->builder->opts.flags & STELE_APPEND_QUICK))
		return INT64_MIN;
	if (onto->source_time && onto->source_time <= time(NULL))
		return onto->source_time;
	stele_log_warning(&append->builder->log,
			  "it is not known when the source was as in '%s': "
			  "reading every file",
			  onto->snapshot.info.name);
	return INT64_MIN;
}

static void fill_report(struct stele_append *append)
{
	const struct stele_comparison *c = &append->comparison;
	const uint64_t count = append->base.snapshot->sample_count;
	struct stele_build_report *report = append->builder->report;

	memcpy(report->base, append->base.snapshot->info.name,
	       sizeof(report->base) - 1);
	report->added = c->added;
	report->updated = c->updated;
	report->deleted = c->deleted;
	report->unchanged = count - c->updated - c->deleted;
	if (!(append->builder->opts.flags & STELE_APPEND_UPDATE))
		report->kept = c->unchanged;
	report->sample_count = count - c->deleted + c->added;
}

static int compare_with_base(struct stele_append *append,
			     const struct stele_addition *onto)
{
	int ret;

	append->base = (struct stele_base){onto->txn->image, &onto->snapshot};
	append->plan.table.since = settled_since(append, onto);
	ret = stele_plan_scan(&append->plan, append->builder, append->source,
			      &append->base);
	append->source_count = append->plan.table.count;
	if (!ret)
		ret = stele_compare(&append->comparison, append->builder,
				    &append->plan, append->source,
				    &append->base);
	if (ret < 0)
		return ret;
	fill_report(append);
	stele_table_filter(&append->plan.table);
	return 0;
}

int stele_append_prepare(struct stele_append *append,
			 struct stele_builder *builder,
			 const struct stele_source *source,
			 const struct stele_addition *onto)
{
	int ret;

	*append = (struct stele_append){
		.builder = builder,
		.source = source,
	};
	stele_plan_init(&append->plan, builder);
	ret = onto ? compare_with_base(append, onto) :
		     stele_plan_scan(&append->plan, builder, source, NULL);
	if (!onto)
		append->source_count = append->plan.table.count;
	if (ret < 0 || (onto && !append->plan.table.count))
		return ret;
	ret = stele_plan_layout(&append->plan, builder);
	if (!onto)
		builder->report->sample_count = builder->report->written_count;
	return ret;
}

int stele_append_check_any(const struct stele_append *append, uint64_t count)
{
	const struct stele_builder *builder = append->builder;
	const bool unreadable = append->source_count ||
				builder->report->skipped[STELE_SKIP_UNREADABLE];

	if (count || builder->opts.flags & STELE_BUILD_ALLOW_EMPTY)
		return 0;
	stele_log_error(&builder->log, "the source has no samples%s",
			unreadable ? " that can be read" : "");
	builder->report->sample_count = 0; /* of what was planned */
	return -ENOENT;
}

void stele_append_release(struct stele_append *append)
{
	stele_written_release(&append->written);
	stele_comparison_release(&append->comparison);
	stele_plan_release(&append->plan);
	memset(append, 0, sizeof(*append));
}

/* ---- what went away meanwhile ---------------------------------------------------- */

static int compare_numbers(const void *a, const void *b, void *user)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	(void)user;
	return (x > y) - (x < y);
}

static int sort_drops(struct stele_append *append)
{
	int ret = 0;

	for (uint32_t i = 0; i < append->comparison.segment_count && !ret;
	     i++) {
		struct stele_drops *drops = &append->comparison.drops[i];

		ret = stele_sort(&drops->numbers, drops->count,
				 sizeof(uint64_t), compare_numbers, NULL, NULL);
	}
	return ret;
}

static int by_number(const void *a, const void *b)
{
	return compare_numbers(a, b, NULL);
}

/* Take a sample off a sorted list. False: it is not there. */
static bool take_back(struct stele_drops *drops, uint64_t number, uint64_t size)
{
	uint64_t *list = drops->numbers.data;
	uint64_t *at = drops->count ? bsearch(&number, list, drops->count,
					      sizeof(*list), by_number) :
				      NULL;

	if (!at)
		return false;
	drops->count--;
	drops->payload_size -= size;
	memmove(at, at + 1, (size_t)(list + drops->count - at) * sizeof(*list));
	return true;
}

/* The sample of a key that was to be replaced stays, for want of a newer one. */
static int revive(struct stele_append *append,
		  const struct stele_source_entry *entry)
{
	const struct stele_snapshot *base = append->base.snapshot;

	for (uint32_t i = 0; i < base->segment_count; i++) {
		uint64_t number, size;
		int ret = stele_segment_find_key(append->base.image,
						 &base->segments[i], entry->key,
						 entry->key_size, &number,
						 &size);

		if (ret < 0 && ret != -ENOENT)
			return ret;
		if (!ret && take_back(&append->comparison.drops[i], number, size))
			break;
	}
	return 0;
}

static int settle_voids(struct stele_append *append)
{
	const struct stele_void *voids = append->written.voids.data;
	struct stele_build_report *report = append->builder->report;
	int ret = 0;

	for (uint64_t i = 0; i < append->written.void_count && !ret; i++) {
		struct stele_plan_sample sample;

		stele_plan_sample(&append->plan, voids[i].number, &sample);
		if (stele_table_marked(&append->plan.table, sample.ordinal,
				       STELE_MARK_REPLACES)) {
			ret = revive(append, &sample.entry);
			report->updated--;
			report->unchanged++;
		} else {
			report->added--;
			report->sample_count--;
		}
	}
	return ret;
}

/* ---- write ------------------------------------------------------------------------ */

/*
 * Does the new snapshot have all of the source as it is now? Not if changes were
 * not asked for, or if samples of the base were not in this source: they may
 * be in another one, and have changed there.
 */
static bool is_synced(const struct stele_append *append)
{
	const struct stele_comparison *c = &append->comparison;
	const uint64_t *skipped = append->builder->report->skipped;

	if (append->source->puts)
		return false;
	if (!append->base.snapshot)
		return true;
	return append->builder->opts.flags & STELE_APPEND_UPDATE &&
	       !skipped[STELE_SKIP_UNREADABLE] &&
	       !skipped[STELE_SKIP_VANISHED] && !skipped[STELE_SKIP_CHANGED] &&
	       c->unchanged + c->updated + c->deleted ==
		       append->base.snapshot->sample_count;
}

static int write_segment(struct stele_append *append,
			 struct stele_addition *addition)
{
	int ret = stele_written_init(&append->written, &append->plan);

	if (!ret)
		ret = stele_plan_write(append->builder, &append->plan,
				       append->source, addition->txn,
				       &append->written);
	if (ret || !append->written.void_count)
		return ret;
	return stele_append_check_any(append, append->source_count - append->written.void_count);
}

static int delete_old(struct stele_append *append,
		      struct stele_addition *addition)
{
	const struct stele_comparison *c = &append->comparison;
	int ret = 0;

	for (uint32_t i = 0; i < c->segment_count && !ret; i++)
		ret = stele_addition_delete(addition, i,
					    c->drops[i].numbers.data,
					    c->drops[i].count,
					    c->drops[i].payload_size);
	return ret;
}

static int append_new(struct stele_append *append,
		      struct stele_addition *addition)
{
	const uint64_t count = append->written.void_count;
	uint64_t *numbers;
	int ret;

	/* All of them could not be read: what else changes needs no segment. */
	if (append->base.snapshot && count == append->plan.table.count)
		return stele_txn_drop_segment(addition->txn,
					      append->plan.descriptor.id);
	ret = stele_addition_append(addition, &append->plan.descriptor);
	if (ret || !count)
		return ret;
	numbers = malloc(count * sizeof(*numbers));
	if (!numbers)
		return -ENOMEM;
	stele_written_voids(&append->written, numbers);
	ret = stele_addition_delete(addition,
				    addition->snapshot.segment_count - 1,
				    numbers, count, 0);
	free(numbers);
	return ret;
}

int stele_append_write(struct stele_append *append,
		       struct stele_addition *addition)
{
	struct stele_build_report *report = append->builder->report;
	const bool any = !append->base.snapshot || append->plan.table.count;
	int ret = any ? write_segment(append, addition) : 0;

	if (!ret)
		ret = stele_builder_phase(append->builder, STELE_PHASE_COMMIT,
					  0, 0);
	if (!ret)
		ret = sort_drops(append);
	if (!ret && append->base.snapshot)
		ret = settle_voids(append);
	else
		report->sample_count = report->written_count;
	if (!ret && is_synced(append))
		addition->source_time =
			stele_builder_source_time(append->builder);
	if (!ret)
		ret = delete_old(append, addition);
	if (!ret && any)
		ret = append_new(append, addition);
	return ret;
}

/* ---- on a transaction ------------------------------------------------------------ */

/* What a dry run would write, without the catalog, whose place is not known. */
static uint64_t size_to_write(const struct stele_append *append)
{
	uint64_t size = append->plan.descriptor.size;

	for (uint32_t i = 0; i < append->comparison.segment_count; i++) {
		const uint64_t drops = append->comparison.drops[i].count;
		uint64_t words = drops;

		if (drops)
			words += append->base.snapshot->segments[i].deleted.word_count;
		size += stele_image_deleted_size(words);
	}
	return size;
}

/* Another directory than the one that was meant, or one that is not mounted? */
static int check_deletions(const struct stele_append *append)
{
	const uint64_t deleted = append->comparison.deleted;
	const uint64_t count = append->base.snapshot ?
				       append->base.snapshot->sample_count :
				       0;

	if (deleted <= count / 2 ||
	    append->builder->opts.flags & STELE_FORCE)
		return 0;
	stele_log_error(&append->builder->log,
			"the source lacks %" PRIu64 " of the %" PRIu64
			" samples of '%s': deleting more than half has to be "
			"forced",
			deleted, count, append->base.snapshot->info.name);
	return -EPERM;
}

/* On what has no segments yet, as a build does. */
static int prepare_on(struct stele_txn *txn, struct stele_append *append,
		      struct stele_builder *builder,
		      const struct stele_source *source)
{
	const bool any = txn->work->snapshot.segment_count;
	int ret = stele_append_prepare(append, builder, source,
				       any ? txn->work : NULL);

	if (!ret && !any)
		builder->report->added = append->plan.table.count;
	if (ret || !txn->reproducible || (any && !append->plan.table.count))
		return ret;
	memcpy(builder->uuid, txn->image->sb.uuid, STELE_UUID_SIZE);
	return stele_content_id(builder, &append->plan, source,
				&append->plan.descriptor.id);
}

/* Not for samples that there is no room for. */
static int overwrite(struct stele_txn *txn, const struct stele_append *append)
{
	const struct stele_descriptor *d = &append->plan.descriptor;
	uint64_t unused;
	int ret = txn->trial && d->size ?
			  stele_txn_allocate(txn, d->size, d->boundary, &unused) :
			  0;

	return ret ? ret : stele_txn_overwrite(txn);
}

void stele_append_fit(struct stele_builder *builder, const struct stele_txn *txn)
{
	stele_builder_fit(builder, txn->image->dev);
	builder->posix = txn->posix;
	builder->block_kept = txn->posix ? stele_posix_shown_block(txn->image) : 0;
}

int stele_append_on(struct stele_txn *txn, struct stele_builder *builder,
		    const struct stele_source *source)
{
	struct stele_append append = {0};
	int ret = stele_txn_start(txn);

	stele_append_fit(builder, txn);
	memcpy(builder->report->uuid, txn->image->sb.uuid, STELE_UUID_SIZE);
	if (!ret)
		ret = stele_addition_load(txn->work);
	if (!ret)
		ret = prepare_on(txn, &append, builder, source);
	if (!ret)
		ret = stele_append_check_any(&append, append.source_count);
	if (!ret)
		ret = check_deletions(&append);
	if (!ret)
		builder->report->written_size = size_to_write(&append);
	if (!ret)
		ret = overwrite(txn, &append);
	if (!ret)
		ret = stele_append_write(&append, txn->work);
	stele_append_release(&append);
	return ret;
}

static int txn_add(struct stele_txn *txn, const struct stele_origin *origin,
		   const struct stele_add_opts *opts,
		   struct stele_build_report *report)
{
	struct stele_build_report made;
	struct stele_source source = {0};
	struct stele_add_opts known;
	struct stele_build_opts all;
	struct stele_builder builder;
	struct stele_log log;
	int ret = stele_options_get(opts, &known, sizeof(known), &log);

	if (!ret)
		ret = stele_output_check(report, backend, &log);
	if (!ret && !origin->path && !origin->ops)
		ret = -EINVAL;
	if (ret < 0)
		return ret;
	all = stele_builder_opts(&known, STELE_ADD_OPTS_SIZE);
	if (!all.log) {
		all.log = txn->log.fn;
		all.log_user = txn->log.user;
	}
	if (!all.progress) {
		all.progress = txn->progress;
		all.progress_user = txn->progress_user;
	}
	ret = stele_builder_init(&builder, &all, STELE_ADD_FLAGS, &made);
	if (!ret)
		ret = stele_put_flush(txn);
	if (!ret)
		ret = stele_origin_open(origin, txn->target.path,
					&builder.opts, &builder.log,
					&source);
	if (!ret)
		ret = stele_append_on(txn, &builder, &source);
	stele_output_fill(report, &made, sizeof(made));
	stele_source_close(&source);
	stele_builder_release(&builder);
	return ret;
}

int stele_txn_add(struct stele_txn *txn, const char *path,
		  const struct stele_add_opts *opts,
		  struct stele_build_report *report)
{
	const struct stele_origin origin = {.path = path};

	return STELE_TXN_CALL(txn, stele_txn_changed(txn, txn_add(txn, &origin, opts, report)),
			  "cannot add '%s'", path);
}

/* ---- stele_append() ---------------------------------------------------------------- */

struct appending {
	struct stele_builder builder;
	const char *base;
	struct stele_source source;
	struct stele_txn txn;
};

static int open_all(struct appending *a, const struct stele_origin *origin,
		    const char *target)
{
	const struct stele_build_opts *opts = &a->builder.opts;
	int ret = stele_txn_begin(&a->txn, target,
				  opts->flags & STELE_DRY_RUN,
				  opts->backend, &a->builder.log);

	if (!ret && !a->txn.target.snapshot) {
		stele_log_error(&a->builder.log,
				"'%s' names no snapshot (write TARGET@NAME)",
				target);
		ret = -EINVAL;
	}
	if (!ret)
		ret = stele_txn_check_new_name(&a->txn, a->txn.target.snapshot);
	if (!ret && opts->file_size)
		ret = stele_txn_resize(&a->txn, opts->file_size, NULL);
	if (!ret)
		ret = stele_origin_open(origin, a->txn.target.path,
					opts, &a->builder.log,
					&a->source);
	return ret;
}

/* A segment of nothing but files that could not be read is not kept. */
static int undo_additions(struct appending *a)
{
	const uint64_t size = a->builder.opts.file_size;
	int ret = 0;

	if (a->txn.state == STELE_TXN_DIRTY)
		ret = stele_txn_restart(&a->txn);
	else
		stele_addition_free(&a->txn);
	return ret || !size ? ret : stele_txn_resize(&a->txn, size, NULL);
}

/* Unless nothing has changed: then the base is the snapshot. */
static int name_snapshot(struct appending *a)
{
	const struct stele_build_opts *opts = &a->builder.opts;
	struct stele_build_report *report = a->builder.report;
	const char *name = report->base;
	int ret = 0;

	report->created = opts->flags & STELE_APPEND_ALWAYS || report->added ||
			  report->updated || report->deleted;
	if (report->created) {
		name = a->txn.target.snapshot;
		snprintf(report->snapshot, sizeof(report->snapshot),
			 "%s", name);
		ret = stele_txn_snapshot(&a->txn, name, opts->note, NULL);
	} else {
		ret = undo_additions(a);
	}
	if (!ret && !(a->txn.dry && report->created))
		memcpy(report->digest,
		       stele_txn_find(&a->txn, name)->info.digest,
		       sizeof(report->digest));
	return ret;
}

static int run(struct appending *a)
{
	const struct stele_build_opts *opts = &a->builder.opts;
	struct stele_build_report *report = a->builder.report;
	struct stele_device *dev = a->txn.image->dev;
	int ret;

	snprintf(report->backend, sizeof(report->backend), "%s",
		 stele_device_backend(dev));
	a->txn.time = opts->time;
	ret = stele_txn_base(&a->txn, a->base);
	if (!ret)
		ret = stele_append_on(&a->txn, &a->builder, &a->source);
	if (!ret)
		ret = name_snapshot(a);
	if (!ret && a->txn.state == STELE_TXN_DIRTY)
		ret = stele_txn_publish(&a->txn, opts->time);
	if (!a->txn.dry)
		report->written_size = a->txn.written_size;
	report->image_end = a->txn.image->sb.high_water;
	return ret ? ret : stele_device_size(dev, &report->target_size);
}

int stele_append_init(struct stele_builder *builder,
		      const struct stele_append_opts *opts, const char **base,
		      struct stele_build_report *report)
{
	struct stele_append_opts known;
	struct stele_build_opts all;
	struct stele_log log;
	int ret = stele_options_get(opts, &known, sizeof(known), &log);

	if (ret < 0)
		return ret;
	all = stele_builder_opts(&known, STELE_ADD_OPTS_SIZE);
	all.backend = known.backend;
	all.note = known.note;
	all.time = known.time;
	all.file_size = known.file_size;
	*base = known.base;
	return stele_builder_init(builder, &all, STELE_APPEND_FLAGS, report);
}

static int do_append(const struct stele_origin *origin, const char *target,
		     const struct stele_append_opts *opts,
		     struct stele_build_report *report)
{
	struct stele_build_report made;
	struct appending a = {0};
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	memset(&made, 0, sizeof(made));
	ret = stele_append_init(&a.builder, opts, &a.base, &made);
	if (!ret)
		ret = stele_output_check(report, backend, &a.builder.log);
	if (!ret && !origin->path && !origin->ops)
		ret = -EINVAL;
	if (!ret)
		ret = open_all(&a, origin, target);
	if (!ret)
		ret = run(&a);
	made.total_seconds = stele_seconds_since(&begin);
	stele_output_fill(report, &made, sizeof(made));
	stele_source_close(&a.source);
	stele_txn_release(&a.txn);
	stele_builder_release(&a.builder);
	return ret;
}

int stele_append(const char *source, const char *target,
		 const struct stele_append_opts *opts,
		 struct stele_build_report *report)
{
	const struct stele_origin origin = {.path = source};

	return STELE_CALL(do_append(&origin, target, opts, report),
			  "cannot append '%s' to '%s'", source, target);
}

int stele_append_from(const struct stele_source_ops *ops, void *user,
		      const char *target, const struct stele_append_opts *opts,
		      struct stele_build_report *report)
{
	const struct stele_origin origin = {.ops = ops, .user = user};

	return STELE_CALL(do_append(&origin, target, opts, report),
			  "cannot append to '%s'", target ? target : "");
}
