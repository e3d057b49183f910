/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - stele_build(): a directory and the name of a target to an image
 *
 * The plan comes first, and costs the target nothing; then the claim, which
 * refuses what must not be overwritten; only then is anything written.
 */
#include "lib/ops/build_write.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/device/target.h"
#include "lib/txn/claim.h"
#include "lib/txn/edit.h"
#include "lib/txn/publish.h"

static int parse(const struct stele_builder *builder, const char *text,
		 struct stele_target *target)
{
	int ret;

	if (!text) {
		if (builder->opts.flags & STELE_BUILD_DRY_RUN)
			return 0;
		stele_log_error(&builder->log, "no target to build on");
		return -EINVAL;
	}
	ret = stele_target_parse(text, &builder->log, target);
	if (ret < 0)
		return ret;
	if (target->pinned) {
		stele_log_error(&builder->log,
				"'%s': a digest cannot be built, only a name",
				text);
		return -EINVAL;
	}
	return target->snapshot ? stele_edit_check_name(target->snapshot,
							&builder->log) :
				  0;
}

/* How large is what is there, if anything is, and what layout suits it? */
static int look_at_target(struct stele_builder *builder,
			  const struct stele_target *target)
{
	const struct stele_build_opts *opts = &builder->opts;
	const uint32_t object = opts->object_size ? opts->object_size :
						    STELE_OBJECT_SIZE_DEFAULT;
	struct stele_device *dev;
	int ret;

	if (!target->path)
		return 0;
	if (stele_path_has_shots(target->path)) {
		ret = stele_device_create(target->path, 0, object,
					  &builder->log);
		if (!ret)
			stele_builder_prefer_boundary(builder, object);
		if (ret != -EEXIST)
			return ret;
	}
	ret = stele_device_open(target->path, NULL, 0, opts->backend,
				&builder->log, &dev);
	if (ret == -ENOENT)
		return 0;
	if (ret < 0) {
		stele_log_error(&builder->log, "cannot open '%s': %s",
				target->path, stele_strerror(ret));
		return ret;
	}
	stele_builder_prefer_boundary(builder, dev->limits.boundary);
	ret = stele_device_size(dev, &builder->report->target_size);
	stele_device_close(dev);
	return ret;
}

/* The plan must know the boundary; a file or disk has none. */
static bool needs_look(const struct stele_builder *builder,
		       const struct stele_target *target)
{
	return (builder->opts.flags & STELE_BUILD_DRY_RUN) ||
	       (!builder->opts.boundary && target->path &&
		stele_path_has_shots(target->path));
}

static int write_target(struct stele_builder *builder, struct stele_plan *plan,
			const struct stele_source *source,
			const struct stele_target *target)
{
	const struct stele_build_opts *opts = &builder->opts;
	struct stele_build_report *report = builder->report;
	const struct stele_claim_opts want = {
		.backend = opts->backend,
		.snapshot = report->snapshot,
		.needed = stele_build_end(plan, opts->note),
		.file_size = opts->file_size,
		.object_size = opts->object_size,
		.force = opts->flags & STELE_BUILD_FORCE,
	};
	struct stele_claim claim = {0};
	int ret = stele_claim_open(&claim, target->path, &want, &builder->log);

	if (claim.dev) {
		report->target_size = claim.size;
		snprintf(report->backend, sizeof(report->backend), "%s",
			 stele_device_backend(claim.dev));
	}
	if (!ret)
		ret = stele_build_identify(builder, plan, source);
	if (!ret)
		ret = stele_claim_take(&claim);
	if (!ret)
		ret = stele_build_write(builder, plan, source, claim.dev,
					report->snapshot, claim.image_size);
	if (!ret)
		ret = stele_device_size(claim.dev, &report->target_size);
	if (ret) {
		stele_claim_drop(&claim, true);
		return ret;
	}
	/* The image is whole, whatever becomes of this: the next writer ends it. */
	ret = stele_shots_publish(claim.dev, report->snapshot);
	stele_claim_drop(&claim, false);
	return ret;
}

/* What to build: a directory, or what a program has. */
struct origin {
	const char *path; /* NULL: ops */
	const struct stele_source_ops *ops;
	void *user;
};

static int open_source(const struct stele_builder *builder,
		       const struct origin *origin, const char *target,
		       struct stele_source *out)
{
	const uint32_t flags = builder->opts.flags;

	if (origin->ops)
		return stele_source_from(origin->ops, origin->user,
					 &builder->log, out);
	return stele_source_open_beside(
		origin->path, target,
		flags & STELE_BUILD_LABELS    ? STELE_LABELS_ALWAYS :
		flags & STELE_BUILD_NO_LABELS ? STELE_LABELS_NEVER :
						STELE_LABELS_AUTO,
		&builder->log, out);
}

static int build(const struct origin *origin, const char *target_text,
		 const struct stele_build_opts *opts,
		 struct stele_build_report *report)
{
	struct stele_build_report unwanted;
	struct stele_source source = {0};
	struct stele_target target = {0};
	struct stele_builder builder;
	struct stele_plan plan = {0};
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!report)
		report = &unwanted;
	ret = stele_builder_init(&builder, opts, report);
	if (!ret)
		ret = stele_builder_for_build(&builder, origin->path);
	if (!ret && !origin->path && !origin->ops)
		ret = -EINVAL;
	if (!ret)
		ret = parse(&builder, target_text, &target);
	if (!ret)
		ret = open_source(&builder, origin, target.path, &source);
	if (!ret) {
		snprintf(report->snapshot, sizeof(report->snapshot), "%s",
			 target.snapshot ? target.snapshot :
					   STELE_SNAPSHOT_DEFAULT);
		if (needs_look(&builder, &target))
			ret = look_at_target(&builder, &target);
	}
	if (!ret)
		ret = stele_plan_make(&plan, &builder, &source);
	if (!ret) {
		report->image_end = stele_build_end(&plan, builder.opts.note);
		if (!(builder.opts.flags & STELE_BUILD_DRY_RUN))
			ret = write_target(&builder, &plan, &source, &target);
	}
	report->total_seconds = stele_seconds_since(&begin);
	stele_plan_release(&plan);
	stele_source_close(&source);
	stele_target_release(&target);
	stele_builder_release(&builder);
	return ret;
}

int stele_build(const char *source, const char *target,
		const struct stele_build_opts *opts,
		struct stele_build_report *report)
{
	const struct origin origin = {.path = source};

	return STELE_CALL(build(&origin, target, opts, report),
			  "cannot build '%s'", target ? target : source);
}

int stele_build_from(const struct stele_source_ops *ops, void *user,
		     const char *target, const struct stele_build_opts *opts,
		     struct stele_build_report *report)
{
	const struct origin origin = {.ops = ops, .user = user};

	return STELE_CALL(build(&origin, target, opts, report),
			  "cannot build '%s'", target ? target : "");
}
