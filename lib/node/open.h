/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.h - from the spelling of a target to a device
 *
 * A word without a slash that was mapped on this machine stands for what was
 * mapped, before it is a path. Shared by those who open by name.
 */
#ifndef STELE_NODE_OPEN_H
#define STELE_NODE_OPEN_H

#include "lib/device/target.h"
#include "lib/node/mapping.h"

/*
 * If the target is a mapped name: load the mapping, and put its path and
 * snapshot into the target. Else mapping->target stays NULL.
 * Return: 0; -ENOENT (the mapping is of another snapshot; logged); errors of stele_mapping_load().
 */
int stele_target_resolve(struct stele_target *target,
			 const struct stele_log *log,
			 struct stele_mapping *mapping);

/*
 * The same of an image that will be changed, whatever snapshot of it was mapped; what stands
 * behind the '@' stays, and without that the target's snapshot is the one that was mapped.
 * Return: as above; -EINVAL (pinned; logged); -EEXIST (another file has that name; logged);
 * -ESTALE and others of stele_mapping_open_device(), which is asked before.
 */
int stele_target_resolve_image(struct stele_target *target,
			       const struct stele_log *log);

/* Is there a file of that name which is not what was mapped? */
bool stele_mapping_hides_file(const struct stele_mapping *mapping, const char *name);

/*
 * Parse, resolve, and open for reading the real device, whose newest state
 * shows. Release *target afterwards. With `whole`, what stands behind the '@' is
 * ignored; then, and without a snapshot, of RBD it is the head; else what its
 * snapshot is read through.
 * Return: as stele_image_open(), but for what is on the device.
 */
int stele_target_open(const char *text, bool whole, const char *backend,
		      const struct stele_log *log, struct stele_target *target,
		      struct stele_device **dev);

/*
 * stele_image_detect() of an open file; O_PATH will do.
 * Return: 1; 0; -ENOMEM.
 */
int stele_image_detect_fd(int fd);

#endif
