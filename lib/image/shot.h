/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shot.h - through what a snapshot is read
 *
 * On a file or block device that is the target itself. On storage that keeps
 * shots it is the shot of the snapshot's name, which nobody can change, and
 * never the head, where a writer may be at work.
 */
#ifndef STELE_IMAGE_SHOT_H
#define STELE_IMAGE_SHOT_H

#include "lib/device/device.h"
#include "lib/device/target.h"

/*
 * Open for reading what holds the snapshot that `target` names. Without a name
 * on a target that keeps shots: the head's catalog is asked for it, and it is
 * set in *target; a pin stays one.
 *
 * Return: as stele_dataset_open(); what shots are about is logged.
 */
int stele_snapshot_open_device(struct stele_target *target, const char *backend,
			       const struct stele_log *log,
			       struct stele_device **dev);

#endif
