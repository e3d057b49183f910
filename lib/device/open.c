/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - from the name of a target to the backend that opens it
 */
#include "lib/device/device.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/device/backend.h"
#include "lib/device/target.h"

#define BUSY_TRIES   20
#define BUSY_WAIT_NS 50000000

#ifndef HAVE_LIBRBD
static int no_librbd(const char *path, const struct stele_log *log)
{
	stele_log_error(log, "cannot open '%s': built without librbd", path);
	return -EOPNOTSUPP;
}
#define stele_device_open_rbd(path, snap, flags, log, out) no_librbd(path, log)
#define stele_rbd_create(path, size, object_size, log) \
	((void)(size), (void)(object_size), no_librbd(path, log))
#define stele_rbd_destroy(path, log)			   no_librbd(path, log)
#endif

int stele_device_open(const char *path, const char *snap, unsigned int flags,
		      const char *backend, const struct stele_log *log,
		      struct stele_device **out)
{
	if (stele_path_is_rbd(path))
		return stele_device_open_rbd(path, snap, flags, log, out);
	if (snap)
		return -EOPNOTSUPP;
	return stele_device_open_file(path, flags, backend, log, out);
}

int stele_device_open_patiently(const char *path, unsigned int flags,
				const char *backend,
				const struct stele_log *log,
				struct stele_device **out)
{
	const struct timespec wait = {.tv_nsec = BUSY_WAIT_NS};
	const int tries = stele_path_is_rbd(path) ? 1 : BUSY_TRIES;
	int ret = -EBUSY;

	for (int i = 0; i < tries && ret == -EBUSY; i++) {
		if (i)
			nanosleep(&wait, NULL);
		ret = stele_device_open(path, NULL, flags, backend, log, out);
	}
	return ret;
}

int stele_device_create(const char *path, uint64_t size, uint32_t object_size,
			const struct stele_log *log)
{
	if (!stele_path_is_rbd(path))
		return -EOPNOTSUPP;
	return stele_rbd_create(path, size, object_size, log);
}

int stele_device_destroy(const char *path, const struct stele_log *log)
{
	if (!stele_path_is_rbd(path))
		return unlink(path) ? -errno : 0;
	return stele_rbd_destroy(path, log);
}

char *stele_device_uri(struct stele_device *dev)
{
	return dev->ops->uri ? dev->ops->uri(dev) : NULL;
}

int stele_device_pick(struct stele_device *dev, const char *name)
{
	return dev->ops->pick ? dev->ops->pick(dev, name) : -EOPNOTSUPP;
}

int stele_device_identify(struct stele_device *dev, struct stele_storage_id *id)
{
	memset(id, 0, sizeof(*id));
	return dev->ops->identify ? dev->ops->identify(dev, id) : -EOPNOTSUPP;
}

int stele_device_check(struct stele_device *dev)
{
	return dev->ops->check ? dev->ops->check(dev) : 0;
}
