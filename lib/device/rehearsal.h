/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rehearsal.h - a device for dry runs: takes every write, and lets none through
 *
 * It reads as its target, which is opened for reading alone. What is written lies in an
 * unnamed file, and is read back from there; size and RBD snapshots change likewise. So
 * a dry run is the real one but for the samples themselves, which are not written.
 */
#ifndef STELE_DEVICE_REHEARSAL_H
#define STELE_DEVICE_REHEARSAL_H

#include "lib/device/device.h"

/*
 * `target`: the rehearsal's from here on, also after an error; not writable.
 * Return: 0; -EINVAL; -ENOMEM; errno.
 */
int stele_rehearsal_open(struct stele_device *target, struct stele_device **out);
/* Over a device that stays the caller's, and is only read meanwhile. Return: as above. */
int stele_rehearsal_over(struct stele_device *target, struct stele_device **out);
/*
 * Of a target that is yet to be created, of `size` bytes: a file, or an RBD image in
 * objects of `object_size`; NULL: of none in particular. Nothing is created. Return: 0;
 * -EACCES, -EROFS, -ENOENT and the like (a file cannot be created there); -ENOMEM; errno.
 */
int stele_rehearsal_create(const char *path, uint64_t size, uint32_t object_size,
			   const struct stele_log *log, struct stele_device **out);

#endif
