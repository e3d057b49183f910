/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append.c - stele_append(): a directory on top of a snapshot of a target
 *
 * The image is claimed for as long as it takes: what the source is compared
 * with must still be there when the new snapshot refers to it.
 */
#include "lib/ops/append_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/node/open.h"
#include "lib/txn/writer.h"

/* The image: of a writer, or only looked at by a dry run. */
struct appending {
	struct stele_builder builder;
	struct stele_append append;
	struct stele_append_report *report;
	struct stele_target target;
	struct stele_source source;
	struct stele_writer writer;
	/* Of a dry run. */
	struct stele_target seen;
	struct stele_image image;
	struct stele_edit edit;
};

static bool is_dry(const struct appending *a)
{
	return a->builder.opts.flags & STELE_BUILD_DRY_RUN;
}

static struct stele_edit *edit_of(struct appending *a)
{
	return is_dry(a) ? &a->edit : &a->writer.edit;
}

static int parse(struct appending *a, const char *text)
{
	const struct stele_log *log = &a->builder.log;
	int ret;

	if (!text) {
		stele_log_error(log, "no target to append to");
		return -EINVAL;
	}
	ret = stele_target_parse(text, log, &a->target);
	if (ret < 0)
		return ret;
	if (a->target.snapshot)
		return stele_edit_check_name(a->target.snapshot, log);
	stele_log_error(log, a->target.pinned ?
			"'%s': a digest cannot be appended, only a name" :
			"'%s': say what the new snapshot is called, as "
			"TARGET@NAME", text);
	return -EINVAL;
}

static int open_dry(struct appending *a, const char *text)
{
	struct stele_device *dev;
	int ret = stele_target_open(text, true, a->builder.opts.backend,
				    &a->builder.log, &a->seen, &dev);

	if (ret < 0)
		return ret;
	ret = stele_image_load(dev, &a->builder.log, &a->image);
	if (ret < 0) {
		stele_device_close(dev);
		return ret;
	}
	return stele_edit_begin(&a->image, &a->edit);
}

/* A file or RBD image as large as wanted; until the commit it can go back. */
static int make_larger(struct appending *a)
{
	const uint64_t wanted = a->builder.opts.file_size;
	struct stele_edit *edit = edit_of(a);
	struct stele_device *dev = edit->image->dev;
	uint64_t size;
	int ret = wanted ? stele_device_size(dev, &size) : 0;

	if (!wanted || ret < 0 || is_dry(a))
		return ret;
	if (wanted < size || !is_aligned(wanted, STELE_BLOCK_SIZE)) {
		stele_log_error(&a->builder.log,
				"a size of %" PRIu64 " bytes: the target has %"
				PRIu64 ", and wants whole 4096s",
				wanted, size);
		return -EINVAL;
	}
	ret = stele_edit_enlarge(edit, wanted);
	return ret ? ret : stele_edit_grow(edit, wanted);
}

/* What to append: a directory, or what a program has. */
struct origin {
	const char *path; /* NULL: ops */
	const struct stele_source_ops *ops;
	void *user;
};

/* The base says whether files have labels. */
static int open_source(struct appending *a, const struct origin *origin)
{
	if (origin->ops)
		return stele_source_from(origin->ops, origin->user,
					 &a->builder.log, &a->source);
	return stele_source_open_beside(
		origin->path,
		is_dry(a) ? a->seen.path : a->writer.target.path,
		STELE_LABELS_AUTO, &a->builder.log, &a->source);
}

static int open_all(struct appending *a, const struct origin *origin,
		    const char *target)
{
	struct stele_build_report *report = &a->report->build;
	const struct stele_device *dev;
	int ret;

	if (is_dry(a))
		ret = open_dry(a, target);
	else
		ret = stele_writer_open(&a->writer, target,
					a->builder.opts.backend,
					&a->builder.log);
	if (!ret)
		ret = make_larger(a);
	if (!ret)
		ret = open_source(a, origin);
	if (ret < 0)
		return ret;
	dev = edit_of(a)->image->dev;
	stele_builder_prefer_boundary(&a->builder, dev->limits.boundary);
	memcpy(report->uuid, edit_of(a)->image->sb.uuid, STELE_UUID_SIZE);
	snprintf(report->backend, sizeof(report->backend), "%s",
		 stele_device_backend(dev));
	return 0;
}

/* What a dry run would write: but for the catalog, whose place is not known. */
static uint64_t size_to_write(const struct stele_append *append)
{
	uint64_t size = append->plan.descriptor.size;

	for (uint32_t i = 0; i < append->comparison.segment_count; i++) {
		uint64_t count = append->comparison.drops[i].count;

		if (count)
			count += append->base.snapshot.segments[i].deleted_count;
		size += stele_image_deleted_size(count);
	}
	return size;
}

static int run(struct appending *a)
{
	const char *name = a->target.snapshot;
	const struct stele_image *image = edit_of(a)->image;
	struct stele_build_report *report = &a->report->build;
	int ret;

	snprintf(report->snapshot, sizeof(report->snapshot), "%s", name);
	ret = stele_append_prepare(&a->append, &a->builder, &a->source,
				   edit_of(a), name, a->report);
	if (!ret && is_dry(a))
		a->report->written_size = size_to_write(&a->append);
	if (!ret && !is_dry(a))
		ret = stele_append_write(&a->append, name);
	if (!ret && !is_dry(a))
		ret = stele_writer_commit(&a->writer, a->builder.opts.time);
	if (!is_dry(a))
		a->report->written_size = a->writer.written_size;
	report->image_end = image->sb.high_water;
	return ret ? ret : stele_device_size(image->dev, &report->target_size);
}

static void release(struct appending *a)
{
	stele_append_release(&a->append);
	stele_source_close(&a->source);
	stele_edit_release(&a->edit);
	stele_image_release(&a->image);
	stele_writer_close(&a->writer);
	stele_target_release(&a->seen);
	stele_target_release(&a->target);
	stele_builder_release(&a->builder);
}

static int do_append(const struct origin *origin, const char *target,
		     const struct stele_build_opts *opts,
		     struct stele_append_report *report)
{
	struct stele_append_report unwanted;
	struct appending a = {0};
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!report)
		report = &unwanted;
	memset(report, 0, sizeof(*report));
	a.report = report;
	ret = stele_builder_init(&a.builder, opts, &report->build);
	if (!ret)
		ret = stele_builder_for_append(&a.builder);
	if (!ret && !origin->path && !origin->ops)
		ret = -EINVAL;
	if (!ret)
		ret = parse(&a, target);
	if (!ret)
		ret = open_all(&a, origin, target);
	if (!ret)
		ret = run(&a);
	report->build.total_seconds = stele_seconds_since(&begin);
	release(&a);
	return ret;
}

int stele_append(const char *source, const char *target,
		 const struct stele_build_opts *opts,
		 struct stele_append_report *report)
{
	const struct origin origin = {.path = source};

	return STELE_CALL(do_append(&origin, target, opts, report),
			  "cannot append '%s' to '%s'", source, target);
}

int stele_append_from(const struct stele_source_ops *ops, void *user,
		      const char *target, const struct stele_build_opts *opts,
		      struct stele_append_report *report)
{
	const struct origin origin = {.ops = ops, .user = user};

	return STELE_CALL(do_append(&origin, target, opts, report),
			  "cannot append to '%s'", target ? target : "");
}
