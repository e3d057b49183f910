/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - stele_copy(): a snapshot to another target, new or not
 *
 * A target without an image gets one that is committed empty before anything is
 * sent: from there on there is but one case, an image to which a snapshot is
 * added, however often the copy is interrupted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/base/error.h"

#include "lib/base/options.h"
#include "lib/base/workers.h"
#include "lib/node/open.h"
#include "lib/ops/copy_write.h"
#include "lib/read/dataset.h"
#include "lib/segment/builder.h"
#include "lib/segment/segment_copy.h"
#include "lib/txn/claim.h"
#include "lib/txn/writer.h"

#define JOBS_PER_CORE 4

struct copy {
	struct stele_copy_opts opts;
	struct stele_log log;
	struct stele_dataset *ds; /* the source */
	struct stele_target from, to;
	struct stele_writer writer;
	struct stele_copy_report *report;
};

static int check_options(struct copy *c, const struct stele_copy_opts *opts)
{
	int ret = stele_options_get(opts, &c->opts, sizeof(c->opts), &c->log);

	if (!ret)
		ret = stele_options_flags(c->opts.flags, STELE_CHANGE_FORCE,
					  &c->log);
	if (!ret)
		ret = stele_options_check(&(struct stele_option){
			"reserved", c->opts.reserved, 0}, 1, &c->log);
	if (ret < 0)
		return ret;
	if (c->opts.label && strlen(c->opts.label) > STELE_NAME_SIZE_MAX) {
		stele_log_error(&c->log, "a label has at most %u bytes",
				STELE_NAME_SIZE_MAX);
		return -EINVAL;
	}
	if (!c->opts.jobs)
		c->opts.jobs = JOBS_PER_CORE * stele_processors();
	if (c->opts.jobs > STELE_COPY_JOBS_MAX)
		c->opts.jobs = STELE_COPY_JOBS_MAX;
	return stele_options_time(c->opts.time, &c->log, &c->opts.time);
}

/* ---- source and target ------------------------------------------------------- */

static int open_source(struct copy *c, const char *source)
{
	struct stele_mapping mapping = {0};
	int ret;

	if (!source)
		return -EINVAL;
	ret = stele_dataset_open(source,
				 &STELE_OPTS(stele_open_opts, .log = c->opts.log,
					     .log_user = c->opts.log_user,
					     .backend = c->opts.backend),
				 &c->ds);
	if (ret < 0)
		return ret;
	/* What it is, to compare it with the target. */
	ret = stele_target_parse(source, &c->log, &c->from);
	if (ret == 0)
		ret = stele_target_resolve(&c->from, &c->log, &mapping);
	stele_mapping_release(&mapping);
	return ret;
}

static bool is_same_file(const struct copy *c)
{
	struct stat from, to;
	int fd = stele_device_fd(c->ds->image.dev);

	if (fd < 0 || fstat(fd, &from) < 0 || stat(c->to.path, &to) < 0)
		return false;
	if (S_ISBLK(from.st_mode) && S_ISBLK(to.st_mode))
		return from.st_rdev == to.st_rdev;
	return from.st_dev == to.st_dev && from.st_ino == to.st_ino;
}

/* Of "rbd:...": the same but for options. */
static bool is_same_image(const struct copy *c)
{
	const size_t from = strcspn(c->from.path, "?");
	const size_t to = strcspn(c->to.path, "?");

	return stele_path_has_shots(c->from.path) &&
	       stele_path_has_shots(c->to.path) && from == to &&
	       !memcmp(c->from.path, c->to.path, from);
}

static int parse_target(struct copy *c, const char *target)
{
	struct stele_mapping mapping = {0};
	char *name;
	int ret;

	if (!target)
		return -EINVAL;
	ret = stele_target_parse(target, &c->log, &c->to);
	if (ret < 0)
		return ret;
	if (c->to.pinned) {
		stele_log_error(&c->log,
				"'%s': a digest cannot be copied to, only a name",
				target);
		return -EINVAL;
	}
	/* Of a mapped name only the path is wanted. */
	name = c->to.snapshot;
	c->to.snapshot = NULL;
	ret = stele_target_resolve(&c->to, &c->log, &mapping);
	stele_mapping_release(&mapping);
	free(c->to.snapshot);
	c->to.snapshot = name;
	if (ret == 0 && (is_same_file(c) || is_same_image(c))) {
		stele_log_error(&c->log, "'%s' is where the source lies",
				target);
		ret = -EINVAL;
	}
	return ret;
}

static const char *name_of(const struct copy *c)
{
	return c->to.snapshot ? c->to.snapshot : c->ds->snapshot.info.name;
}

/* ---- a new image ------------------------------------------------------------- */

/*
 * Is there an image that a snapshot can be added to? Whatever else is there, the
 * claim says. Return: 1; 0; errno.
 */
static int find_image(struct copy *c, const char *target)
{
	struct stele_target unused = {0};
	struct stele_device *dev = NULL;
	struct stele_image image;
	int ret;

	if (c->opts.flags & STELE_CHANGE_FORCE)
		return 0;
	ret = stele_target_open(target, true, c->opts.backend, NULL, &unused,
				&dev);
	stele_target_release(&unused);
	if (ret < 0)
		return 0;
	ret = stele_image_load(dev, NULL, &image);
	if (ret < 0) {
		stele_device_close(dev);
		return 0;
	}
	stele_image_release(&image);
	return 1;
}

static int fill_superblock(const struct copy *c, uint64_t image_size,
			   struct stele_superblock *sb)
{
	const char *label = c->opts.label ? c->opts.label :
					    c->ds->image.sb.label;

	*sb = (struct stele_superblock){
		.image_size = image_size,
		.create_time = c->opts.time,
	};
	snprintf(sb->label, sizeof(sb->label), "%s", label);
	if (c->opts.uuid)
		memcpy(sb->uuid, c->opts.uuid, sizeof(sb->uuid));
	else if (getrandom(sb->uuid, sizeof(sb->uuid), 0) !=
		 sizeof(sb->uuid))
		return -EIO;
	if (!c->opts.uuid) { /* RFC 4122: random */
		sb->uuid[6] = (sb->uuid[6] & 0x0f) | 0x40;
		sb->uuid[8] = (sb->uuid[8] & 0x3f) | 0x80;
	}
	return 0;
}

/* An image that holds nothing, yet is whole. */
static int begin_image(const struct copy *c, struct stele_device *dev,
		       uint64_t image_size)
{
	struct stele_superblock sb;
	struct stele_image image = {0};
	struct stele_edit edit = {0};
	int ret = fill_superblock(c, image_size, &sb);

	if (ret == 0)
		ret = stele_image_begin(dev, &c->log, &sb, &image);
	if (ret == 0)
		ret = stele_edit_begin(&image, &edit);
	if (ret == 0)
		ret = stele_edit_commit(&edit, c->opts.time);
	stele_edit_release(&edit);
	image.dev = NULL; /* the claim's */
	stele_image_release(&image);
	return ret;
}

static int make_image(const struct copy *c)
{
	const struct stele_claim_opts want = {
		.backend = c->opts.backend,
		.snapshot = name_of(c),
		.needed = stele_copier_need(&c->ds->snapshot),
		.file_size = c->opts.file_size,
		.object_size = c->opts.object_size,
		.force = c->opts.flags & STELE_CHANGE_FORCE,
	};
	struct stele_claim claim = {0};
	int ret = stele_claim_open(&claim, c->to.path, &want, &c->log);

	if (ret == 0)
		ret = stele_claim_take(&claim);
	if (ret == 0)
		ret = begin_image(c, claim.dev, claim.image_size);
	stele_claim_drop(&claim, ret < 0);
	return ret;
}

/* ---- copy -------------------------------------------------------------------- */

static int commit(void *user, int64_t time)
{
	return stele_writer_commit(user, time);
}

static int run(struct copy *c)
{
	struct stele_copier copier = {
		.image = &c->ds->image,
		.snapshot = &c->ds->snapshot,
		.edit = &c->writer.edit,
		.name = name_of(c),
		.commit = commit,
		.commit_user = &c->writer,
		.time = c->opts.time,
		.jobs = c->opts.jobs,
		.progress = c->opts.progress,
		.progress_user = c->opts.progress_user,
		.report = c->report,
	};

	return stele_copier_run(&copier);
}

static int copy_to(struct copy *c, const char *target)
{
	int ret = stele_edit_check_name(name_of(c), &c->log);

	if (ret < 0)
		return ret;
	ret = find_image(c, target);
	if (ret == 0)
		ret = make_image(c);
	if (ret >= 0)
		ret = stele_writer_open(&c->writer, target, c->opts.backend,
					&c->log);
	return ret < 0 ? ret : run(c);
}

static int do_copy(const char *source, const char *target,
		   const struct stele_copy_opts *opts,
		   struct stele_copy_report *report)
{
	struct stele_copy_report unwanted;
	struct copy c = {.report = report ? report : &unwanted};
	struct timespec begin;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	memset(c.report, 0, sizeof(*c.report));
	ret = check_options(&c, opts);
	if (ret == 0)
		ret = open_source(&c, source);
	if (ret == 0)
		ret = parse_target(&c, target);
	if (ret == 0)
		ret = copy_to(&c, target);
	stele_writer_close(&c.writer);
	stele_dataset_close(c.ds);
	stele_target_release(&c.from);
	stele_target_release(&c.to);
	c.report->seconds = stele_seconds_since(&begin);
	return ret;
}

int stele_copy(const char *source, const char *target,
	       const struct stele_copy_opts *opts,
	       struct stele_copy_report *report)
{
	return STELE_CALL(do_copy(source, target, opts, report),
			  "cannot copy '%s' to '%s'", source, target);
}
