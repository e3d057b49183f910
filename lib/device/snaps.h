/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snaps.h - RBD snapshots: the list of an image's, and what a device does to them
 *
 * An RBD snapshot is a read-only snapshot that the storage itself keeps of a whole
 * target; files and disks have none. Names are those of our snapshots, or whatever
 * others chose. A list is owned, oldest first. It also serves devices without a
 * cluster: changes to a list fail as those in Ceph do.
 */
#ifndef STELE_DEVICE_SNAPS_H
#define STELE_DEVICE_SNAPS_H

#include "lib/device/device.h"

struct stele_rbd_snap {
	char *name;
	uint64_t id; /* of the storage; never used again */
	bool is_protected;
};

struct stele_rbd_snaps {
	struct stele_rbd_snap *list;
	size_t count;
	uint64_t last_id; /* ever added */
};

/* On a device that was opened for writing, at its head. All of them block. */
struct stele_rbd_snap_ops {
	/* Into an empty list; nothing to release on an error. */
	int (*list)(struct stele_device *dev, struct stele_rbd_snaps *out);
	/* Of all that was flushed. Return: 0; -EEXIST; errno. */
	int (*make)(struct stele_device *dev, const char *name);
	int (*protect)(struct stele_device *dev, const char *name, bool wanted);
	/* Open readers go on. */
	int (*rename)(struct stele_device *dev, const char *from,
		      const char *to);
	/* Return: 0; -ENOENT; -EBUSY (protected). */
	int (*remove)(struct stele_device *dev, const char *name);
};

/* The device's, or NULL: its storage has no RBD snapshots. */
const struct stele_rbd_snap_ops *stele_device_snaps(const struct stele_device *dev);

void stele_rbd_snaps_release(struct stele_rbd_snaps *snaps);
/* NULL: none of that name. Until the list changes. */
struct stele_rbd_snap *stele_rbd_snaps_find(const struct stele_rbd_snaps *snaps,
					    const char *name);
struct stele_rbd_snap *stele_rbd_snaps_find_id(const struct stele_rbd_snaps *snaps,
					       uint64_t id);

/* Return: 0; -EEXIST; -ENOMEM. `id` 0: the next one. */
int stele_rbd_snaps_add(struct stele_rbd_snaps *snaps, const char *name,
			uint64_t id, bool is_protected);
/* Return: 0; -ENOMEM, with nothing to release. */
int stele_rbd_snaps_copy(struct stele_rbd_snaps *to, const struct stele_rbd_snaps *from);
/* Return: 0; -ENOENT; -EBUSY (it is protected), -EINVAL (it is not). */
int stele_rbd_snaps_protect(struct stele_rbd_snaps *snaps, const char *name,
			    bool wanted);
/* Return: 0; -ENOENT; -EEXIST; -ENOMEM. */
int stele_rbd_snaps_rename(struct stele_rbd_snaps *snaps, const char *from,
			   const char *to);
/* Return: 0; -ENOENT; -EBUSY (protected). */
int stele_rbd_snaps_remove(struct stele_rbd_snaps *snaps, const char *name);

#endif
