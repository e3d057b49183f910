/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_device.c - from a snapshot to the RBD snapshot that it is read through
 */
#include "lib/image/snapshot_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"

/*
 * The name of the snapshot, from the head's catalog. Return: 0, with the head open;
 * errno.
 */
static int find_name(const struct stele_target *target, const char *backend,
		     const struct stele_log *log, char **name,
		     struct stele_device **head)
{
	struct stele_catalog_snapshot info;
	struct stele_image image;
	uint32_t index;
	int err = stele_device_open(target->path, NULL, 0, backend, log, head);

	if (err)
		return err;
	err = stele_image_load(*head, log, &image);
	if (err) {
		stele_device_close(*head);
		return err;
	}
	err = stele_snapshot_find(&image, target->snapshot,
				  stele_target_digest(target), &index);
	if (err) {
		stele_snapshot_log_choice(&image, err);
	} else {
		stele_catalog_snapshot(&image.catalog, index, &info);
		*name = strdup(info.name);
		err = *name ? 0 : -ENOMEM;
	}
	if (!err)
		image.dev = NULL; /* stays open */
	stele_image_release(&image);
	return err;
}

/* An interrupted writer leaves a snapshot without its RBD snapshot. */
static void explain_missing(const struct stele_target *target,
			    const char *backend, const struct stele_log *log)
{
	struct stele_device *head;
	char *name;

	if (find_name(target, backend, NULL, &name, &head))
		return;
	stele_log_error(log,
			"'%s' has a snapshot '%s', but its RBD snapshot was not "
			"made: its writer was interrupted; any command that "
			"writes, such as 'stele resize %s', completes it",
			target->path, name, target->path);
	free(name);
	stele_device_close(head);
}

/*
 * Sets target->snapshot. -EAGAIN: its RBD snapshot is not there, or not protected; but that
 * may have been done since the head was opened.
 */
static int pick(struct stele_target *target, const char *backend,
		const struct stele_log *log, struct stele_device **dev)
{
	struct stele_log_held held;
	int err = find_name(target, backend, log, &target->snapshot, dev);

	if (err)
		return err;
	stele_log_hold(&held, log);
	(*dev)->log = held.log;
	err = stele_device_pick(*dev, target->snapshot);
	if (err == -ENOENT || err == -EPERM)
		err = -EAGAIN;
	stele_log_end(&held, err && err != -EAGAIN);
	if (err)
		stele_device_close(*dev);
	else
		(*dev)->log = *log;
	return err;
}

int stele_snapshot_open_device(struct stele_target *target, const char *backend,
			       const struct stele_log *log,
			       struct stele_device **dev)
{
	int err;

	if (!stele_path_is_rbd(target->path))
		return stele_device_open(target->path, NULL, 0, backend, log,
					 dev);
	if (!target->snapshot) {
		err = pick(target, backend, log, dev);
		if (err != -EAGAIN)
			return err;
	}
	err = stele_device_open(target->path, target->snapshot, 0, backend, log,
				dev);
	if (err == -ENOENT)
		explain_missing(target, backend, log);
	return err;
}
