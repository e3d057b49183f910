/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shot.c - from a snapshot to the shot that it is read through
 */
#include "lib/image/shot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"

/* The name of the snapshot that is meant, by the head's catalog. */
static int find_name(const struct stele_target *target, const char *backend,
		     const struct stele_log *log,
		     char name[STELE_NAME_SIZE_MAX + 1])
{
	struct stele_catalog_snapshot info;
	struct stele_image image;
	struct stele_device *head;
	uint32_t index;
	int err = stele_device_open(target->path, NULL, 0, backend, log, &head);

	if (err)
		return err;
	err = stele_image_load(head, log, &image);
	if (err) {
		stele_device_close(head);
		return err;
	}
	err = stele_snapshot_find(&image, target->snapshot,
				  stele_target_digest(target), &index);
	if (err) {
		stele_snapshot_log_choice(&image, err);
	} else {
		stele_catalog_snapshot(&image.catalog, index, &info);
		memcpy(name, info.name, STELE_NAME_SIZE_MAX + 1);
	}
	stele_image_release(&image);
	return err;
}

/* A writer that was interrupted leaves a snapshot without its shot. */
static void explain_missing(const struct stele_target *target,
			    const char *backend, const struct stele_log *log)
{
	char name[STELE_NAME_SIZE_MAX + 1];

	if (!find_name(target, backend, NULL, name))
		stele_log_error(log,
				"'%s' has a snapshot '%s', but its RBD snapshot "
				"was not made: a writer was interrupted, and "
				"the next command that writes ('stele resize %s') "
				"finishes it",
				target->path, target->snapshot, target->path);
}

int stele_snapshot_open_device(struct stele_target *target, const char *backend,
			       const struct stele_log *log,
			       struct stele_device **dev)
{
	char name[STELE_NAME_SIZE_MAX + 1];
	int err;

	if (!stele_path_has_shots(target->path))
		return stele_device_open(target->path, NULL, 0, backend, log,
					 dev);
	if (!target->snapshot) {
		err = find_name(target, backend, log, name);
		if (err)
			return err;
		target->snapshot = strdup(name);
		if (!target->snapshot)
			return -ENOMEM;
	}
	err = stele_device_open(target->path, target->snapshot, 0, backend, log,
				dev);
	if (err == -ENOENT)
		explain_missing(target, backend, log);
	return err;
}
