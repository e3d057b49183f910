/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - targets to handles: stele_dataset_open(), stele_image_open()
 *
 * A mapped name opens the target that was mapped. A dataset must still be the
 * snapshot that was mapped; an image is what the target holds now.
 */
#include "lib/node/open.h"

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/image/snapshot_device.h"
#include "lib/image/snapshot.h"
#include "lib/posix/shown.h"
#include "lib/read/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is it the snapshot that was asked for, if one was? */
static bool is_wanted(const struct stele_target *target,
		      const struct stele_mapping *mapping)
{
	if (target->pinned)
		return !memcmp(target->digest, mapping->info.digest,
			       sizeof(target->digest));
	return !target->snapshot ||
	       !strcmp(target->snapshot, mapping->info.snapshot);
}

/* A pin stays one, given now or when it was mapped. */
static int take_names(struct stele_target *target,
		      const struct stele_mapping *mapping)
{
	char *path = strdup(mapping->info.target);
	char *snapshot;

	target->pinned |= mapping->info.pinned;
	target->mapped = true;
	memcpy(target->digest, mapping->info.digest, sizeof(target->digest));
	snapshot = target->pinned ? NULL : strdup(mapping->info.snapshot);

	if (!path || (!snapshot && !target->pinned)) {
		free(path);
		free(snapshot);
		return -ENOMEM;
	}
	free(target->path);
	free(target->snapshot);
	target->path = path;
	target->snapshot = snapshot;
	return 0;
}

int stele_target_resolve(struct stele_target *target,
			 const struct stele_log *log,
			 struct stele_mapping *mapping)
{
	int err;

	memset(mapping, 0, sizeof(*mapping));
	if (strchr(target->path, '/'))
		return 0;
	err = stele_mapping_load(target->path, log, mapping);
	if (err == -ENOENT || err == -EINVAL) /* then it is a path */
		return 0;
	if (err)
		return err;
	if (!is_wanted(target, mapping)) {
		stele_log_error(log, "'%s' is mapped to snapshot '%s' of '%s', not to that one",
				target->path, mapping->info.snapshot,
				mapping->info.target);
		err = -ENOENT;
	}
	if (!err)
		err = take_names(target, mapping);
	if (err)
		stele_mapping_release(mapping);
	return err;
}

bool stele_mapping_hides_file(const struct stele_mapping *mapping, const char *name)
{
	struct stele_identity file;

	return !stele_identity_of_path(name, &file) &&
	       !stele_mapping_is_on(mapping, &file);
}

static int refuse_hidden(const struct stele_mapping *mapping, const char *name,
			 const struct stele_log *log)
{
	if (!mapping->target || !stele_mapping_hides_file(mapping, name))
		return 0;
	stele_log_error(log, "'%s' is a mapping of '%s' as well as a file: write to "
			"'./%s', or to '%s'",
			name, mapping->info.target, name, mapping->info.target);
	return -EEXIST;
}

/* What is changed by its name is what was mapped, and not what took its place. */
static int refuse_replaced(const struct stele_mapping *mapping, const struct stele_log *log)
{
	struct stele_device *dev;
	int err;

	if (!mapping->target)
		return 0;
	err = stele_mapping_open_device(mapping, true, NULL, log, &dev);
	if (!err)
		stele_device_close(dev);
	return err;
}

int stele_target_resolve_image(struct stele_target *target,
			       const struct stele_log *log)
{
	struct stele_mapping mapping = {0};
	char *name = strdup(target->path), *wanted = target->snapshot;
	int err = name ? 0 : -ENOMEM;

	if (target->pinned) {
		stele_log_error(log, "cannot write to '%s', which is pinned by its "
				"digest; use TARGET@NAME", target->path);
		err = -EINVAL;
	}
	target->snapshot = NULL;
	if (!err)
		err = stele_target_resolve(target, log, &mapping);
	if (!err)
		err = refuse_hidden(&mapping, name, log);
	if (!err)
		err = refuse_replaced(&mapping, log);
	if (wanted) {
		free(target->snapshot);
		target->snapshot = wanted;
	}
	stele_mapping_release(&mapping);
	free(name);
	return err;
}

static void forget_snapshot(struct stele_target *target)
{
	free(target->snapshot);
	target->snapshot = NULL;
	target->pinned = target->mapped = false;
}

static int open_plain(struct stele_target *target, bool whole,
		      const struct stele_mapping *mapping, const char *backend,
		      const struct stele_log *log, struct stele_device **dev)
{
	int err;

	if (mapping->target)
		return stele_mapping_open_device(mapping, whole, backend, log,
						 dev);
	err = whole ? stele_device_open(target->path, NULL, 0, backend, log,
					dev) :
		      stele_snapshot_open_device(target, backend, log, dev);
	if (err == -ENOTBLK)
		stele_log_error(log, "'%s' is neither a block device nor a regular file",
				target->path);
	if (err == -ENOENT && !stele_path_is_rbd(target->path))
		stele_log_error(log, "no such file, device or mapping");
	return err;
}

int stele_target_open(const char *text, bool whole, const char *backend,
		      const struct stele_log *log, struct stele_target *target,
		      struct stele_device **dev)
{
	struct stele_mapping mapping = {0};
	int err = stele_target_parse(text, log, target);

	if (err)
		return err;
	if (whole)
		forget_snapshot(target);
	err = stele_target_resolve(target, log, &mapping);
	if (!target->snapshot && !target->pinned)
		whole = true;
	if (!err)
		err = open_plain(target, whole, &mapping, backend, log, dev);
	stele_mapping_release(&mapping);
	if (err)
		stele_target_release(target);
	return err;
}

/* ---- datasets -------------------------------------------------------------- */

static int dataset_open(const char *text, const struct stele_open_opts *opts,
			struct stele_dataset **out)
{
	struct stele_mapping mapping = {0};
	struct stele_target target = {0};
	struct stele_device *dev;
	struct stele_open_opts known;
	struct stele_log log;
	int err = stele_options_get(opts, &known, sizeof(known), &log);

	if (!err)
		err = stele_dataset_check(&known, &log);
	if (err)
		return err;
	err = stele_target_parse(text, &log, &target);
	if (!err)
		err = stele_target_resolve(&target, &log, &mapping);
	if (!err)
		err = open_plain(&target, false, &mapping, known.backend, &log, &dev);
	if (!err)
		err = stele_dataset_create(dev, &target, opts, out);
	stele_mapping_release(&mapping);
	stele_target_release(&target);
	return err;
}

int stele_dataset_open(const char *text, const struct stele_open_opts *opts,
		       struct stele_dataset **out)
{
	return STELE_CALL(dataset_open(text, opts, out),
			  "cannot open '%s'", text);
}

/* ---- images ---------------------------------------------------------------- */

static int image_open(const char *text, const struct stele_open_opts *opts,
		      struct stele_image **out)
{
	struct stele_image *image = NULL;
	struct stele_target target = {0};
	struct stele_device *dev;
	struct stele_open_opts known;
	struct stele_log log;
	int err = stele_options_get(opts, &known, sizeof(known), &log);

	if (!err)
		err = stele_dataset_check(&known, &log);
	if (err)
		return err;
	err = stele_target_open(text, true, known.backend, &log, &target, &dev);
	if (err)
		return err;
	image = calloc(1, sizeof(*image));
	err = image ? stele_image_load(dev, &log, image) : -ENOMEM;
	if (err) {
		stele_device_close(dev);
		free(image);
	} else {
		if (!image->catalog.counts.snapshots)
			stele_image_log_empty(image, STELE_LOG_WARNING, &log);
		*out = image;
	}
	stele_target_release(&target);
	return err;
}

int stele_image_open(const char *text, const struct stele_open_opts *opts,
		     struct stele_image **out)
{
	return STELE_CALL(image_open(text, opts, out),
			  "cannot open '%s'", text);
}

void stele_image_close(struct stele_image *image)
{
	if (!image)
		return;
	stele_image_release(image);
	free(image);
}

/* What loading says of an image that cannot be read, but is one. */
static bool is_image(int err)
{
	return !err || err == -ENODATA || err == -EINPROGRESS || err == -EBADMSG ||
	       err == -EUCLEAN || err == -ENOTUNIQ || err == -EOPNOTSUPP;
}

int stele_image_detect_fd(int fd)
{
	char path[32], table[STELE_GUARD_TABLE_SIZE];
	struct stele_image *image = calloc(1, sizeof(*image));
	struct stele_device *dev = NULL;
	uint64_t begin;
	bool found = false;
	int err;

	if (!image)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = stele_device_open(path, NULL, 0, "threads", NULL, &dev);
	if (!err) {
		err = stele_image_load(dev, NULL, image);
		found = is_image(err) || (err == -EMEDIUMTYPE &&
					  stele_image_on_partition(dev, &begin, table));
	}
	if (err) {
		stele_device_close(dev);
		free(image);
	} else {
		stele_image_close(image);
	}
	return found ? 1 : err == -ENOMEM ? err : 0;
}

static int image_detect(const char *path)
{
	const int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;
	int ret = 0;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)))
		ret = stele_image_detect_fd(fd);
	close(fd);
	return ret;
}

int stele_image_detect(const char *path)
{
	return STELE_CALL(image_detect(path), "cannot look for an image on '%s'", path);
}

static uint64_t free_size(const struct stele_image *image)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < image->catalog.counts.free; i++) {
		struct stele_catalog_free extent;

		stele_catalog_free(&image->catalog, i, &extent);
		size += extent.size;
	}
	return size;
}

static uint64_t unused_size(const struct stele_image *image)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		struct stele_catalog_segment segment;

		stele_catalog_segment(&image->catalog, i, &segment);
		size += segment.unused_since ? segment.size : 0;
	}
	return size;
}

/* Without parts of trees. */
static uint32_t count_segments(const struct stele_image *image)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		struct stele_catalog_segment segment;

		stele_catalog_segment(&image->catalog, i, &segment);
		count += !stele_catalog_is_tree(&segment);
	}
	return count;
}

/* Snapshots, deleted ones included. */
static uint32_t count_all(const struct stele_image *image)
{
	return image->catalog.counts.snapshots + image->catalog.counts.deleted;
}

static int image_info(const struct stele_image *image,
		      struct stele_image_info *out)
{
	const struct stele_superblock *sb = &image->sb;
	struct stele_image_info info = {
		.version = STELE_FORMAT_VERSION,
		.snapshot_count = image->catalog.counts.snapshots,
		.segment_count = count_segments(image),
		.fence_mode = sb->fence_mode,
		.feature_compat = sb->feature_compat,
		.feature_ro_compat = sb->feature_ro_compat,
		.feature_incompat = sb->feature_incompat,
		.generation = sb->generation,
		.image_size = sb->image_size,
		.used_size = sb->high_water,
		.free_size = free_size(image),
		.create_time = sb->create_time,
		.commit_time = sb->commit_time,
		.superblocks_good = image->copies_good,
		.deleted_count = image->catalog.counts.deleted,
		.unused_size = unused_size(image),
		.tree_size = stele_posix_size(image),
		.tree_mountable = stele_posix_fits(image),
		.tree_block_size = stele_posix_shown_block(image),
	};
	memcpy(info.uuid, sb->uuid, sizeof(info.uuid));
	memcpy(info.label, sb->label, sizeof(info.label) - 1);
	return stele_output_set(out, &info, unused_size, &image->log);
}

int stele_image_info(const struct stele_image *image,
		     struct stele_image_info *info)
{
	return STELE_CALL(image_info(image, info), "cannot describe the image");
}

static int image_snapshot(const struct stele_image *image, uint32_t index,
			  struct stele_snapshot_info *out)
{
	struct stele_catalog_snapshot snapshot;
	struct stele_snapshot_info info;

	if (index >= count_all(image))
		return -ERANGE;
	stele_catalog_snapshot(&image->catalog, index, &snapshot);
	stele_snapshot_describe(&snapshot, &info);
	return stele_output_set(out, &info, deleted_time, &image->log);
}

int stele_image_snapshot(const struct stele_image *image, uint32_t index,
			 struct stele_snapshot_info *out)
{
	return STELE_CALL(image_snapshot(image, index, out),
			  "no snapshot %" PRIu32 " in the image", index);
}

static int image_note(const struct stele_image *image, uint32_t index,
		      char *note, size_t size)
{
	struct stele_catalog_snapshot snapshot;

	if (index >= count_all(image))
		return -ERANGE;
	stele_catalog_snapshot(&image->catalog, index, &snapshot);
	if (size < snapshot.note_size)
		return -ERANGE;
	stele_catalog_note(&image->catalog, index, note);
	return 0;
}

int stele_image_note(const struct stele_image *image, uint32_t index,
		     char *note, size_t size)
{
	return STELE_CALL(image_note(image, index, note, size),
			  "cannot get the note of snapshot %" PRIu32, index);
}
