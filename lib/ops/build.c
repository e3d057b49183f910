/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - stele_build(): a source and the name of a target to an image; stele_txn_create()
 *
 * An append to nothing. The plan comes first, and costs the target nothing; then the
 * claim, which refuses what must not be overwritten; only then is anything written.
 * From the first write to the commit the target is an unfinished image.
 */
#include "lib/ops/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/device/backends.h"
#include "lib/device/rehearsal.h"
#include "lib/device/target.h"
#include "lib/image/proof.h"
#include "lib/ops/append.h"
#include "lib/segment/content_id.h"
#include "lib/segment/plan_probe.h"
#include "lib/txn/claim.h"
#include "lib/txn/posix.h"

/*
 * End of the image on its target when its snapshot has this note (NULL: none):
 * not one byte more will be written, unless samples go away meanwhile. The catalog of
 * a next generation has room before it. A boundary may leave a gap in front of the
 * segment: then the catalog lies there, else behind the segment.
 */
static uint64_t end_of(const struct stele_plan *plan, const char *note)
{
	const struct stele_descriptor *d = &plan->descriptor;
	struct stele_catalog_free lies = {d->offset, d->size};
	const struct stele_extents own = {.list = &lies, .count = 1};
	const struct stele_catalog_counts counts = {
		.segments = 1,
		.snapshots = 1,
		.refs = 1,
		.notes_size = note ? (uint32_t)strlen(note) : 0,
	};
	struct stele_catalog_place place;

	if (stele_catalog_find_place(&own, &own, &counts, STELE_IMAGE_SIZE_MAX,
				     &place) < 0)
		return UINT64_MAX; /* more than any target has */
	/* And the catalog of a next generation, with less. */
	return place.high_water + stele_catalog_size_bound(&own, &counts);
}

/* ---- write -------------------------------------------------------------- */

/*
 * Where a UUID was given, the same input shall be the same bytes: give the segment an id
 * that follows from all that it will hold. Reads the source once more, before anything
 * is written; a dry run does not.
 */
static int identify(struct stele_append *append)
{
	struct stele_builder *builder = append->builder;

	if (!builder->opts.uuid || builder->opts.flags & STELE_DRY_RUN)
		return 0;
	return stele_content_id(builder, &append->plan, append->source,
				&append->plan.descriptor.id);
}

static int write_image(struct stele_append *append, struct stele_txn *txn,
		       const char *name)
{
	const struct stele_build_opts *opts = &append->builder->opts;
	struct stele_build_report *report = append->builder->report;
	uint64_t spare; /* see end_of() */
	int ret = stele_addition_begin(txn, NULL);

	txn->time = opts->time;
	if (!ret)
		ret = stele_append_write(append, txn->work);
	if (!ret)
		ret = stele_txn_snapshot(txn, name, opts->note, NULL);
	if (!ret && !txn->dry)
		memcpy(report->digest, stele_txn_find(txn, name)->info.digest,
		       sizeof(report->digest));
	if (!ret && append->builder->posix)
		ret = stele_txn_set_posix(txn, true);
	if (!ret)
		ret = stele_txn_publish_new(txn, opts->time);
	/* The image is whole, whatever becomes of its RBD snapshot: the next writer ends it. */
	if (!stele_txn_commit_size(txn, &spare))
		report->image_end = txn->image->sb.high_water + spare;
	report->written_size = txn->written_size;
	return ret;
}

/* `image_size`: bytes of the device that the image may use, whole blocks. */
static int write_device(struct stele_append *append, struct stele_device *dev,
			const char *name, const char *lost,
			uint64_t image_size, bool *whole)
{
	const struct stele_builder *builder = append->builder;
	const struct stele_new_image what = {
		.uuid = builder->uuid,
		.label = builder->opts.label,
		.lost = lost,
		.size = image_size,
		.time = builder->opts.time,
	};
	struct stele_txn txn = {0};
	int ret = stele_txn_on_new(&txn, dev, &what, &builder->log);

	if (!ret)
		ret = write_image(append, &txn, name);
	*whole = txn.image && txn.image->sb.state == STELE_STATE_READY;
	stele_txn_release(&txn);
	return ret;
}

static int write_target(struct stele_append *append,
			const struct stele_target *target)
{
	struct stele_builder *builder = append->builder;
	const struct stele_build_opts *opts = &builder->opts;
	struct stele_build_report *report = builder->report;
	const struct stele_claim_opts want = {
		.backend = opts->backend,
		.snapshot = report->snapshot,
		.needed = end_of(&append->plan, opts->note),
		.file_size = opts->file_size,
		.object_size = opts->object_size,
		.force = opts->flags & STELE_FORCE,
		.dry = opts->flags & STELE_DRY_RUN,
		.replace = true,
		.of_source = report->skipped[STELE_SKIP_TARGET],
	};
	struct stele_claim claim = {0};
	bool whole = false;
	int ret = stele_claim_open(&claim, target->path, &want, &builder->log);

	if (claim.dev) {
		report->target_size = claim.size;
		snprintf(report->backend, sizeof(report->backend), "%s",
			 stele_device_backend(claim.dev));
	}
	if (!ret && claim.ours && !stele_claim_wants_beside(&claim))
		ret = stele_plan_probe(builder, &append->plan, append->source);
	if (ret > 0)
		ret = stele_append_check_any(append, 0);
	if (!ret)
		ret = identify(append);
	if (!ret)
		ret = stele_claim_take(&claim);
	if (!ret)
		ret = write_device(append, claim.dev, report->snapshot,
				   claim.lost, claim.image_size, &whole);
	if (!ret)
		ret = stele_claim_finish(&claim);
	whole = whole && !claim.beside;
	if (!ret)
		ret = stele_device_size(claim.dev, &report->target_size);
	stele_claim_drop(&claim, !whole);
	return ret;
}

/* A dry run without a target: there is room for all. */
static int write_nowhere(struct stele_append *append)
{
	const struct stele_builder *builder = append->builder;
	const uint64_t size = end_of(&append->plan, builder->opts.note);
	struct stele_device *dev;
	bool whole;
	int ret = stele_backend_check(builder->opts.backend, &builder->log);

	if (!ret)
		ret = stele_rehearsal_create(NULL, size, 0, &builder->log, &dev);
	if (ret < 0)
		return ret;
	ret = write_device(append, dev, builder->report->snapshot, NULL, size, &whole);
	stele_device_close(dev);
	return ret;
}

/* ---- stele_build() ------------------------------------------------------------- */

static int parse(const struct stele_builder *builder, const char *text,
		 struct stele_target *target)
{
	int ret;

	if (!text) {
		stele_log_error(&builder->log, "no target to write to");
		return -EINVAL;
	}
	ret = stele_target_parse(text, &builder->log, target);
	if (ret < 0)
		return ret;
	if (target->pinned) {
		stele_log_error(&builder->log,
				"cannot write to '%s', which is pinned by its "
				"digest; use TARGET@NAME",
				text);
		return -EINVAL;
	}
	return target->snapshot ? stele_txn_check_name(target->snapshot,
							&builder->log) :
				  0;
}

/* What layout suits what is there, if anything is? On RBD, for a start. */
static int look_at_rbd(struct stele_builder *builder, const struct stele_target *target)
{
	const struct stele_build_opts *opts = &builder->opts;
	const uint32_t object = opts->object_size ? opts->object_size :
						    STELE_OBJECT_SIZE_DEFAULT;
	struct stele_device *dev;
	int ret;

	ret = stele_device_create(target->path, 0, object, &builder->log);
	if (!ret)
		stele_builder_prefer_boundary(builder, object);
	if (ret != -EEXIST)
		return ret;
	ret = stele_device_open(target->path, NULL, 0, opts->backend,
				&builder->log, &dev);
	if (ret == -ENOENT)
		return 0;
	if (ret < 0) {
		stele_log_error(&builder->log, "cannot open '%s': %s",
				target->path, stele_strerror(ret));
		return ret;
	}
	stele_builder_fit(builder, dev);
	stele_device_close(dev);
	return 0;
}

/*
 * The plan must know the boundary, which a file or disk does not have, and how small blocks of
 * files may be.
 */
static int look_at_target(struct stele_builder *builder, const struct stele_target *target)
{
	const struct stele_log quiet = {0}; /* what is wrong there is for its claim to say */
	struct stele_device *dev;

	if (!target->path)
		return 0;
	if (stele_path_is_rbd(target->path))
		return builder->opts.boundary ? 0 : look_at_rbd(builder, target);
	if (builder->posix && !stele_device_open(target->path, NULL, 0, builder->opts.backend,
						 &quiet, &dev)) {
		stele_builder_fit(builder, dev);
		stele_device_close(dev);
	}
	return 0;
}

static int run(struct stele_append *append, const struct stele_source *source,
	       struct stele_builder *builder, const struct stele_target *target)
{
	struct stele_build_report *report = builder->report;
	int ret;

	snprintf(report->snapshot, sizeof(report->snapshot), "%s",
		 target->snapshot ? target->snapshot : STELE_SNAPSHOT_DEFAULT);
	ret = look_at_target(builder, target);
	if (!ret)
		ret = stele_append_prepare(append, builder, source, NULL);
	if (ret)
		return ret;
	ret = stele_append_check_any(append, append->source_count);
	if (ret)
		return ret;
	report->image_end = end_of(&append->plan, builder->opts.note);
	return target->path ? write_target(append, target) :
			      write_nowhere(append);
}

static int build(const struct stele_origin *origin, const char *target_text,
		 const struct stele_build_opts *opts,
		 struct stele_build_report *report)
{
	struct stele_build_report made;
	struct stele_append append = {0};
	struct stele_source source = {0};
	struct stele_target target = {0};
	struct stele_builder builder;
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	ret = stele_builder_init(&builder, opts, STELE_BUILD_FLAGS, &made);
	if (!ret)
		ret = stele_output_check(report, backend, &builder.log);
	if (!ret && !origin->path && !origin->ops)
		ret = -EINVAL;
	if (!ret && (target_text || !(builder.opts.flags & STELE_DRY_RUN)))
		ret = parse(&builder, target_text, &target);
	if (!ret)
		ret = stele_origin_open(origin, target.path,
					&builder.opts, &builder.log,
					&source);
	if (!ret)
		ret = run(&append, &source, &builder, &target);
	made.total_seconds = stele_seconds_since(&begin);
	stele_output_fill(report, &made, sizeof(made));
	stele_append_release(&append);
	stele_source_close(&source);
	stele_target_release(&target);
	stele_builder_release(&builder);
	return ret;
}

int stele_build(const char *source, const char *target,
		const struct stele_build_opts *opts,
		struct stele_build_report *report)
{
	const struct stele_origin origin = {.path = source};

	return STELE_CALL(build(&origin, target, opts, report),
			  "cannot build '%s'", target ? target : source);
}

int stele_build_from(const struct stele_source_ops *ops, void *user,
		     const char *target, const struct stele_build_opts *opts,
		     struct stele_build_report *report)
{
	const struct stele_origin origin = {.ops = ops, .user = user};
	const char *quote = target ? "'" : "";

	return STELE_CALL(build(&origin, target, opts, report), "cannot build %s%s%s", quote,
			  target ? target : "an image", quote);
}

/* ---- stele_txn_create() ------------------------------------------------- */

/* Room for what has to be there before anything is added. */
static uint64_t size_of_empty(void)
{
	const struct stele_catalog_counts counts = {.segments = 1, .snapshots = 1, .refs = 1};
	const struct stele_extents none = {0};

	return STELE_DATA_OFFSET + 2 * stele_catalog_size_bound(&none, &counts);
}

/* The transaction gets claim and target, whatever comes of it. */
static int begin_new(struct stele_txn *txn, struct stele_claim *claim,
		     struct stele_target *target, const char *const *sources,
		     const struct stele_builder *builder)
{
	const struct stele_build_opts *opts = &builder->opts;
	const struct stele_claim_opts want = {
		.backend = opts->backend,
		.sources = sources,
		.needed = size_of_empty(),
		.file_size = opts->file_size,
		.object_size = opts->object_size,
		.force = opts->flags & STELE_FORCE,
		.dry = opts->flags & STELE_DRY_RUN,
		.replace = true,
	};
	const struct stele_new_image what = {
		.uuid = builder->uuid,
		.label = opts->label,
		.time = opts->time,
	};
	int ret = stele_claim_open(claim, target->path, &want, &builder->log);

	if (ret)
		txn->claim = claim;
	else
		ret = stele_txn_on_claim(txn, claim, &what, &builder->log);
	txn->target = *target;
	txn->reproducible = opts->uuid;
	txn->sized = opts->file_size;
	txn->progress = opts->progress;
	txn->progress_user = opts->progress_user;
	*target = (struct stele_target){0};
	return ret;
}

static int create(const char *text, const struct stele_build_opts *opts,
		  const char *const *sources, struct stele_txn **out)
{
	struct stele_txn *txn = calloc(1, sizeof(*txn));
	struct stele_claim *claim = calloc(1, sizeof(*claim));
	struct stele_target target = {0};
	struct stele_build_report report;
	struct stele_builder builder;
	int ret = stele_builder_init(&builder, opts, STELE_FORCE | STELE_DRY_RUN, &report);

	if (!ret && (!txn || !claim))
		ret = -ENOMEM;
	if (!ret)
		ret = parse(&builder, text, &target);
	if (ret) {
		free(claim);
	} else {
		ret = begin_new(txn, claim, &target, sources, &builder);
		if (ret)
			stele_txn_release(txn);
	}
	stele_target_release(&target);
	stele_builder_release(&builder);
	if (ret)
		free(txn);
	else
		*out = txn;
	return ret;
}

static int txn_create(const char *target, const struct stele_create_opts *given,
		      struct stele_txn **out)
{
	struct stele_create_opts known = {0};
	struct stele_build_opts opts = {.size = sizeof(opts)};
	struct stele_log log;
	int ret = stele_options_get(given, &known, sizeof(known), &log);

	if (!ret)
		ret = stele_options_flags(known.flags, STELE_FORCE | STELE_DRY_RUN, &log);
	if (ret)
		return ret;
	opts.log = known.log;
	opts.log_user = known.log_user;
	opts.progress = known.progress;
	opts.progress_user = known.progress_user;
	opts.backend = known.backend;
	opts.label = known.label;
	opts.uuid = known.uuid;
	opts.file_size = known.file_size;
	opts.time = known.time;
	opts.flags = known.flags;
	opts.object_size = known.object_size;
	return create(target, &opts, known.sources, out);
}

int stele_txn_create(const char *target, const struct stele_create_opts *opts,
		     struct stele_txn **out)
{
	return STELE_CALL(txn_create(target, opts, out),
			  "cannot create '%s'", target ? target : "");
}

int stele_build_on(struct stele_device *dev, const struct stele_source *source,
		   const char *snapshot, const struct stele_build_opts *opts,
		   struct stele_build_report *report)
{
	struct stele_append append = {0};
	struct stele_builder builder;
	uint64_t size;
	bool whole;
	int ret = stele_builder_init(&builder, opts, STELE_BUILD_FLAGS,
				     report);

	stele_builder_fit(&builder, dev);
	if (!ret)
		ret = stele_append_prepare(&append, &builder, source, NULL);
	if (!ret)
		ret = stele_device_size(dev, &size);
	if (!ret && size < end_of(&append.plan, builder.opts.note))
		ret = -ENOSPC;
	if (!ret)
		ret = identify(&append);
	if (!ret)
		ret = write_device(&append, dev, snapshot, NULL,
				   round_down(size, STELE_BLOCK_SIZE), &whole);
	stele_append_release(&append);
	stele_builder_release(&builder);
	return ret;
}
