/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - guard, open, recover, edit, commit; shots before and behind it
 */
#include "lib/txn/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/device/guard.h"
#include "lib/image/fork.h"
#include "lib/image/proof.h"
#include "lib/node/mapping.h"
#include "lib/node/open.h"
#include "lib/txn/intent.h"

/* ---- shots ----------------------------------------------------------------- */

struct shot {
	char *name; /* owned */
	bool is_protected;
};

struct shots {
	struct shot *list;
	size_t count;
};

static void shots_release(struct shots *shots)
{
	for (size_t i = 0; i < shots->count; i++)
		free(shots->list[i].name);
	free(shots->list);
	memset(shots, 0, sizeof(*shots));
}

static int keep(void *user, const struct stele_shot *shot)
{
	struct shots *shots = user;
	struct shot *list = realloc(shots->list,
				    (shots->count + 1) * sizeof(*list));

	if (!list)
		return -ENOMEM;
	shots->list = list;
	list[shots->count].is_protected = shot->is_protected;
	list[shots->count].name = strdup(shot->name);
	return list[shots->count].name ? (shots->count++, 0) : -ENOMEM;
}

/* NULL: none of that name. */
static const struct shot *find_shot(const struct shots *shots, const char *name)
{
	for (size_t i = 0; i < shots->count; i++)
		if (!strcmp(shots->list[i].name, name))
			return &shots->list[i];
	return NULL;
}

static int load_shots(struct stele_writer *writer, struct shots *shots)
{
	struct stele_device *dev = writer->image.dev;
	int ret = stele_device_shots(dev)->each(dev, keep, shots);

	if (ret < 0)
		stele_log_error(&writer->log, "cannot list RBD snapshots: %s",
				stele_strerror(ret));
	return ret;
}

/* Make and protect, or whichever is missing. */
static int complete_shot(struct stele_writer *writer, const char *name,
			 const struct shot *shot)
{
	struct stele_device *dev = writer->image.dev;
	const struct stele_shot_ops *ops = stele_device_shots(dev);
	int ret = 0;

	if (shot && shot->is_protected)
		return 0;
	if (!shot)
		ret = ops->make(dev, name);
	if (ret == 0)
		ret = ops->protect(dev, name, true);
	if (ret < 0)
		stele_log_error(&writer->log,
				"snapshot '%s' is committed, but its RBD "
				"snapshot is not complete, so that nobody can "
				"open it yet: %s; the next change to the image "
				"completes it",
				name, stele_strerror(ret));
	return ret;
}

/* What the catalog has and the storage lacks. Goes on after an error. */
static int complete_shots(struct stele_writer *writer)
{
	struct shots shots = {0};
	int error = 0, ret;

	if (!stele_device_shots(writer->image.dev))
		return 0;
	ret = load_shots(writer, &shots);
	for (uint32_t i = 0; ret == 0 && i < writer->edit.snapshot_count; i++) {
		const char *name = writer->edit.snapshots[i].name;
		int failed = complete_shot(writer, name,
					   find_shot(&shots, name));

		if (error == 0)
			error = failed;
	}
	shots_release(&shots);
	return ret < 0 ? ret : error;
}

/* Under this name, by the catalog that is on the device? */
static bool is_committed(const struct stele_writer *writer,
			 const struct stele_edit_snapshot *wanted)
{
	for (uint32_t i = 0; i < writer->image.catalog.counts.snapshots; i++) {
		struct stele_catalog_snapshot snapshot;

		stele_catalog_snapshot(&writer->image.catalog, i, &snapshot);
		if (snapshot.id == wanted->id &&
		    !strcmp(snapshot.name, wanted->name))
			return true;
	}
	return false;
}

/* A shot that was there before its snapshot cannot hold it. */
static int check_names(struct stele_writer *writer)
{
	struct shots shots = {0};
	int ret;

	if (!stele_device_shots(writer->image.dev))
		return 0;
	ret = load_shots(writer, &shots);
	for (uint32_t i = 0; ret == 0 && i < writer->edit.snapshot_count; i++) {
		const struct stele_edit_snapshot *s =
			&writer->edit.snapshots[i];

		if (is_committed(writer, s) || !find_shot(&shots, s->name))
			continue;
		stele_log_error(&writer->log,
				"there is an RBD snapshot '%s' that is none of "
				"ours: take another name, or remove it",
				s->name);
		ret = -EEXIST;
	}
	shots_release(&shots);
	return ret;
}

/* ---- open ------------------------------------------------------------------ */

static bool is_set_read_only(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int read_only = 0;

	if (fd < 0)
		return false;
	if (ioctl(fd, BLKROGET, &read_only) < 0)
		read_only = 0;
	close(fd);
	return read_only;
}

static int log_refused(const struct stele_writer *writer, int error)
{
	const char *path = writer->target.path;
	char by[64];

	if (error == -EBUSY && stele_guard_writer(path, by, sizeof(by)))
		stele_log_error(&writer->log,
				"cannot change '%s': %s is writing to it", path,
				by);
	else if ((error == -EROFS || error == -EACCES || error == -EPERM) &&
		 is_set_read_only(path))
		stele_log_error(&writer->log,
				"cannot change '%s': the device is set "
				"read-only, as 'stele map --read-only' does: "
				"unmap it, or set it writable",
				path);
	else if (error == -ENOENT && !stele_path_has_shots(path))
		stele_log_error(&writer->log, "no such file, device or mapping");
	else if (error == -ENOTBLK)
		stele_log_error(&writer->log,
				"'%s' is neither a block device nor a regular "
				"file",
				path);
	else
		stele_log_error(&writer->log, "cannot open '%s': %s", path,
				stele_strerror(error));
	return error;
}

/* What a name was mapped to says nothing of the snapshot that is asked for. */
static int resolve(struct stele_writer *writer, const char *text)
{
	struct stele_target *target = &writer->target;
	struct stele_mapping mapping = {0};
	char *wanted;
	int ret = stele_target_parse(text, &writer->log, target);

	if (ret < 0)
		return ret;
	if (target->pinned) {
		stele_log_error(&writer->log,
				"'%s': a digest cannot be changed, only a name",
				text);
		return -EINVAL;
	}
	wanted = target->snapshot;
	target->snapshot = NULL;
	ret = stele_target_resolve(target, &writer->log, &mapping);
	stele_mapping_release(&mapping);
	if (wanted) {
		free(target->snapshot);
		target->snapshot = wanted;
	}
	return ret;
}

static int open_device(struct stele_writer *writer, const char *backend,
		       struct stele_device **dev)
{
	const char *path = writer->target.path;
	int ret = 0;

	if (!stele_path_has_shots(path))
		ret = stele_guard_claimed(path, &writer->log);
	if (ret < 0)
		return ret;
	ret = stele_device_open_patiently(path,
					  STELE_DEVICE_WRITE |
						  STELE_DEVICE_SOLE,
					  backend, &writer->log, dev);
	return ret < 0 ? log_refused(writer, ret) : 0;
}

static int log_no_image(const struct stele_writer *writer, int error)
{
	if (error == -EMEDIUMTYPE && writer->target.path)
		stele_log_error(&writer->log, "'%s' holds no Stele image",
				writer->target.path);
	return error;
}

int stele_writer_begin(struct stele_writer *writer, struct stele_device *dev,
		       const struct stele_log *log)
{
	int ret;

	if (log)
		writer->log = *log;
	ret = stele_image_load(dev, log, &writer->image);
	if (ret < 0) {
		stele_device_close(dev);
		return log_no_image(writer, ret);
	}
	if (writer->side && writer->image.fork)
		ret = stele_fork_choose(&writer->image, writer->side - 1);
	if (ret == 0)
		ret = stele_image_announce(&writer->image);
	/* What a writer takes from sections goes into digests that vouch for it. */
	if (ret == 0)
		ret = stele_prover_new(&writer->image, &writer->image.prover);
	if (ret == 0)
		ret = stele_edit_begin(&writer->image, &writer->edit);
	return ret < 0 ? ret : complete_shots(writer);
}

int stele_writer_open(struct stele_writer *writer, const char *text,
		      const char *backend, const struct stele_log *log)
{
	return stele_writer_open_side(writer, text, 0, backend, log);
}

int stele_writer_open_side(struct stele_writer *writer, const char *text,
			   uint32_t side, const char *backend,
			   const struct stele_log *log)
{
	struct stele_device *dev;
	int ret;

	memset(writer, 0, sizeof(*writer));
	writer->side = side;
	if (log)
		writer->log = *log;
	ret = resolve(writer, text);
	if (ret == 0)
		ret = open_device(writer, backend, &dev);
	return ret < 0 ? ret : stele_writer_begin(writer, dev, log);
}

int stele_writer_commit(struct stele_writer *writer, int64_t time)
{
	int ret = check_names(writer);

	if (ret == 0)
		ret = stele_edit_commit(&writer->edit, time);
	if (ret == 0)
		ret = complete_shots(writer);
	writer->written_size = writer->image.dev->written;
	return ret;
}

void stele_writer_close(struct stele_writer *writer)
{
	if (writer->edit.image)
		stele_edit_release(&writer->edit);
	stele_intent_end(writer->image.dev);
	stele_image_release(&writer->image);
	stele_target_release(&writer->target);
	memset(writer, 0, sizeof(*writer));
}
