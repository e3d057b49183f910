/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - the spelling of a target to the backend that serves it
 */
#include "lib/device/device.h"

#include <errno.h>
#include <string.h>

#define RBD_PREFIX "rbd:"

bool stele_path_has_shots(const char *path)
{
	return !strncmp(path, RBD_PREFIX, strlen(RBD_PREFIX));
}

int stele_device_open(const char *path, const char *shot, unsigned int flags,
		      const char *backend, const struct stele_log *log,
		      struct stele_device **out)
{
	if (stele_path_has_shots(path))
		return -EOPNOTSUPP;
	if (shot)
		return -EOPNOTSUPP;
	return stele_device_open_file(path, flags, backend, log, out);
}

const struct stele_shot_ops *stele_device_shots(const struct stele_device *dev)
{
	return dev->ops->shots;
}

int stele_device_check(struct stele_device *dev)
{
	return dev->ops->check ? dev->ops->check(dev) : 0;
}
