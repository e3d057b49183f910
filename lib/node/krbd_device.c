/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krbd_device.c - a shot that the kernel has attached, as a device
 *
 * The block device serves all that is read. It cannot tell that its shot went
 * away, and then brings other bytes without an error; so this device is
 * fleeting, and its check asks the cluster by librbd.
 */
#include "lib/node/krbd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct krbd {
	struct stele_device base;
	struct stele_device *inner;
	struct stele_device_ops ops; /* ours, by the name of who serves */
	struct stele_storage_id storage;
	char *target, *shot;
};

static ssize_t krbd_transfer(struct stele_device *dev, enum stele_op op,
			     void *data, uint64_t offset, size_t size)
{
	struct stele_device *inner = ((struct krbd *)dev)->inner;

	return inner->ops->transfer(inner, op, data, offset, size);
}

static int krbd_size(struct stele_device *dev, uint64_t *size)
{
	return stele_device_size(((struct krbd *)dev)->inner, size);
}

static int krbd_queue_open(struct stele_device *dev, unsigned int depth,
			   void *arena, size_t arena_size,
			   struct stele_queue **queue)
{
	struct stele_device *inner = ((struct krbd *)dev)->inner;

	return inner->ops->queue_open(inner, depth, arena, arena_size, queue);
}

static void krbd_close(struct stele_device *dev)
{
	struct krbd *krbd = (struct krbd *)dev;

	stele_device_close(krbd->inner);
	free(krbd->target);
	free(krbd->shot);
	free(krbd);
}

static int krbd_identify(struct stele_device *dev, struct stele_storage_id *id)
{
	*id = ((struct krbd *)dev)->storage;
	return 0;
}

static int krbd_check(struct stele_device *dev)
{
	struct krbd *krbd = (struct krbd *)dev;
	struct stele_storage_id now;
	struct stele_device *rbd;
	int err = stele_device_open(krbd->target, krbd->shot, 0, NULL, NULL,
				    &rbd);

	/* Without its protection it may read as zeros, though it is listed. */
	if (err == -ENOENT || err == -EPERM)
		return -ESTALE;
	if (err)
		return err;
	err = stele_device_identify(rbd, &now);
	if (!err && !stele_storage_same(&krbd->storage, &now))
		err = -ESTALE;
	stele_device_close(rbd);
	return err;
}

static const struct stele_device_ops krbd_ops = {
	.transfer = krbd_transfer,
	.size = krbd_size,
	.queue_open = krbd_queue_open,
	.close = krbd_close,
	.check = krbd_check,
	.identify = krbd_identify,
};

int stele_device_open_krbd(const char *node, const char *target,
			   const char *shot,
			   const struct stele_storage_id *storage,
			   const char *backend, const struct stele_log *log,
			   struct stele_device **out)
{
	struct krbd *krbd = calloc(1, sizeof(*krbd));
	int err = -ENOMEM;

	if (!krbd)
		return -ENOMEM;
	krbd->storage = *storage;
	krbd->target = strdup(target);
	krbd->shot = strdup(shot);
	if (krbd->target && krbd->shot)
		err = stele_device_open_file(node, 0, backend, log,
					     &krbd->inner);
	if (err) {
		krbd_close(&krbd->base);
		return err;
	}
	krbd->base = *krbd->inner;
	krbd->ops = krbd_ops;
	krbd->ops.name = stele_device_backend(krbd->inner);
	krbd->base.ops = &krbd->ops;
	krbd->base.fleeting = true;
	*out = &krbd->base;
	return 0;
}
