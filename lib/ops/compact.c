/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.c - stele_compact(): one snapshot, laid out anew as one segment
 *
 * The image is claimed before the plan is made: what is planned is what is
 * read. A dry run only looks, and hinders nobody.
 */
#include "lib/ops/compact_write.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "format/catalog.h"
#include "lib/base/error.h"
#include "lib/node/open.h"
#include "lib/txn/writer.h"

struct compacting {
	struct stele_builder builder;
	const char *name; /* of the new snapshot */
	struct stele_target target; /* its snapshot is the old one */
	struct stele_writer writer;
	struct stele_image looked_at; /* of a dry run */
	struct stele_compact compact;
};

static bool is_dry(const struct compacting *c)
{
	return c->builder.opts.flags & STELE_BUILD_DRY_RUN;
}

static struct stele_image *image_of(struct compacting *c)
{
	return is_dry(c) ? &c->looked_at : &c->writer.image;
}

static int check(const struct compacting *c, const char *target)
{
	const struct stele_build_opts *opts = &c->builder.opts;
	const struct stele_log *log = &c->builder.log;

	if (!target || stele_edit_check_name(c->name ? c->name : "", log) < 0)
		return -EINVAL;
	if ((opts->flags & ~(uint32_t)STELE_BUILD_DRY_RUN) || *opts->label ||
	    opts->uuid || opts->base || opts->file_size || opts->object_size) {
		stele_log_error(log, "to compact keeps samples, fields, label, "
				     "UUID and target as they are");
		return -EINVAL;
	}
	return 0;
}

static int parse(struct compacting *c, const char *text)
{
	int ret = stele_target_parse(text, &c->builder.log, &c->target);

	if (ret < 0 || !c->target.pinned)
		return ret;
	stele_log_error(&c->builder.log,
			"'%s': name the snapshot, not its digest", text);
	return -EINVAL;
}

/* Of a mapped name it is the snapshot that was mapped, if none is given. */
static void take_snapshot(struct compacting *c, struct stele_target *opened)
{
	if (c->target.snapshot)
		return;
	c->target.snapshot = opened->snapshot;
	opened->snapshot = NULL;
}

static int look(struct compacting *c, const char *text)
{
	const struct stele_log *log = &c->builder.log;
	struct stele_target opened = {0};
	struct stele_device *dev;
	int ret = stele_target_open(text, true, c->builder.opts.backend, log,
				    &opened, &dev);

	if (ret < 0)
		return ret;
	take_snapshot(c, &opened);
	stele_target_release(&opened);
	ret = stele_image_load(dev, log, &c->looked_at);
	if (ret < 0)
		stele_device_close(dev);
	return ret;
}

static int claim(struct compacting *c, const char *text)
{
	int ret = stele_writer_open(&c->writer, text, c->builder.opts.backend,
				    &c->builder.log);

	if (!ret)
		take_snapshot(c, &c->writer.target);
	return ret;
}

static int open_image(struct compacting *c, const char *target)
{
	struct stele_build_report *report = c->builder.report;
	struct stele_image *image = image_of(c);
	int ret = is_dry(c) ? look(c, target) : claim(c, target);

	if (ret < 0)
		return ret;
	stele_builder_prefer_boundary(&c->builder, image->dev->limits.boundary);
	memcpy(report->uuid, image->sb.uuid, STELE_UUID_SIZE);
	snprintf(report->snapshot, sizeof(report->snapshot), "%s", c->name);
	snprintf(report->backend, sizeof(report->backend), "%s",
		 stele_device_backend(image->dev));
	return 0;
}

static int find(struct compacting *c, uint32_t *index)
{
	const char *path = c->target.path, *wanted = c->target.snapshot;
	const struct stele_log *log = &c->builder.log;
	const struct stele_image *image = image_of(c);
	int ret;

	if (stele_snapshot_find(image, c->name, NULL, index) == 0) {
		stele_log_error(log, "'%s' has a snapshot '%s' already", path,
				c->name);
		return -EEXIST;
	}
	ret = stele_snapshot_find(image, wanted, NULL, index);
	if (ret == -EINVAL)
		stele_log_error(log, "'%s' has several snapshots: say which "
				     "one to compact, as TARGET@NAME", path);
	else if (ret == -ENOENT)
		stele_log_error(log, "'%s' has no snapshot%s%s%s to compact",
				path, wanted ? " '" : "", wanted ? wanted : "",
				wanted ? "'" : "");
	return ret;
}

static int run(struct compacting *c, const char *target)
{
	struct stele_build_report *report = c->builder.report;
	uint32_t index;
	int ret;

	ret = parse(c, target);
	if (!ret)
		ret = open_image(c, target);
	if (!ret)
		ret = find(c, &index);
	if (!ret)
		ret = stele_compact_prepare(&c->compact, &c->builder,
					    image_of(c), index);
	if (!ret && !is_dry(c))
		ret = stele_compact_write(&c->compact, &c->writer.edit,
					  c->name);
	if (!ret && !is_dry(c))
		ret = stele_writer_commit(&c->writer, c->builder.opts.time);
	if (ret < 0)
		return ret;
	report->image_end = image_of(c)->sb.high_water;
	return stele_device_size(image_of(c)->dev, &report->target_size);
}

static int do_compact(const char *target, const char *name,
		      const struct stele_build_opts *opts,
		      struct stele_build_report *report)
{
	struct stele_build_report unwanted;
	struct compacting c = {.name = name};
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (!report)
		report = &unwanted;
	ret = stele_builder_init(&c.builder, opts, report);
	if (!ret)
		ret = check(&c, target);
	if (!ret)
		ret = run(&c, target);
	report->total_seconds = stele_seconds_since(&begin);
	stele_compact_release(&c.compact);
	stele_image_release(&c.looked_at);
	stele_writer_close(&c.writer);
	stele_target_release(&c.target);
	stele_builder_release(&c.builder);
	return ret;
}

int stele_compact(const char *target, const char *name,
		  const struct stele_build_opts *opts,
		  struct stele_build_report *report)
{
	return STELE_CALL(do_compact(target, name, opts, report),
			  "cannot compact '%s'", target);
}
