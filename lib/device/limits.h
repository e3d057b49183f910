/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h - what the kernel says that a file or block device can take
 */
#ifndef STELE_DEVICE_LIMITS_H
#define STELE_DEVICE_LIMITS_H

#include "lib/device/device.h"

/*
 * Reads limits of an open file; `direct` says whether it is O_DIRECT. A limit
 * that the kernel does not tell gets the most careful value.
 * Return: 0; -EOPNOTSUPP (a logical block that we cannot serve); errno.
 */
int stele_limits_read(int fd, bool direct, struct stele_limits *out);

/*
 * One number that the queue of a disk (of its disk, if it is a partition) shows in
 * sysfs. False: it has none of that name.
 */
bool stele_limits_attribute(dev_t dev, const char *name, uint32_t *value);

#endif
