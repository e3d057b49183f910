/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot_device.h - opening what a snapshot is read through
 *
 * On a file or block device that is the target itself. On RBD it is the RBD
 * snapshot of the same name, which nobody can change, and
 * never the head, where a writer may be at work.
 */
#ifndef STELE_IMAGE_SNAPSHOT_DEVICE_H
#define STELE_IMAGE_SNAPSHOT_DEVICE_H

#include "lib/device/device.h"
#include "lib/device/target.h"

/*
 * Open whatever holds the snapshot that `target` names. Without a name
 * on RBD: the name is looked up in the head's catalog and
 * set in *target; a pin stays a pin.
 *
 * Return: as stele_dataset_open(); problems with RBD snapshots are logged.
 */
int stele_snapshot_open_device(struct stele_target *target, const char *backend,
			       const struct stele_log *log,
			       struct stele_device **dev);

#endif
