/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - the one sector of block 0 that makes an image an EROFS
 *
 * All that changes lies in the 512 bytes from 1024 on, so a write of the block leaves the old
 * or the new one there, on any device. What else block 0 has stays as it is.
 */
#ifndef STELE_POSIX_FRONT_H
#define STELE_POSIX_FRONT_H

#include "format/erofs.h"
#include "lib/device/device.h"

/* As it is on the device. Return: 0; -ENOMEM; errno of the device. */
int stele_front_read(struct stele_device *dev, struct stele_disk_erofs_front *out);
/* Of the tree at `offset`. Return: as above; -EUCLEAN (it is none of the image's). */
int stele_front_of_tree(struct stele_device *dev, uint64_t offset, const uint8_t uuid[16],
			struct stele_disk_erofs_front *out);
/* Is it one that Stele wrote: of this image; NULL: of any? */
bool stele_front_is_own(const struct stele_disk_erofs_front *front, const uint8_t *uuid);
/* And flush. Return: as read. */
int stele_front_write(struct stele_device *dev, const struct stele_disk_erofs_front *front);

#endif
