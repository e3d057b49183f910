/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krbd.c - see krbd.h
 */
#include "lib/node/krbd.h"

#include "lib/device/stack.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- find ------------------------------------------------------------------ */

int stele_krbd_node_of(uint64_t rdev, char node[STELE_KRBD_NODE_SIZE])
{
	char place[PATH_MAX];
	const char *name;

	if (stele_stack_place(rdev, place))
		return -ENOENT;
	name = strrchr(place, '/') + 1;
	if (strncmp(name, "rbd", 3) || strspn(name + 3, "0123456789") != strlen(name + 3))
		return -ENOENT; /* not krbd's, or a partition */
	return snprintf(node, STELE_KRBD_NODE_SIZE, "/dev/%s", name) <
			       STELE_KRBD_NODE_SIZE ?
		       0 :
		       -ENOENT;
}

/* Does the attribute hold just this? One that cannot be read does not. */
static bool is_attribute(const char *sysfs, const char *number,
			 const char *name, const char *wanted)
{
	char path[PATH_MAX], value[128] = "";
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/devices/%s/%s", sysfs, number,
		     name) >= (int)sizeof(path))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(value, sizeof(value), file))
		value[0] = '\0';
	fclose(file);
	value[strcspn(value, "\n")] = '\0';
	return !strcmp(value, wanted);
}

static bool is_snapshot(const char *sysfs, const char *number,
			const struct stele_storage_id *id)
{
	char pool[24], snapshot[24];

	snprintf(pool, sizeof(pool), "%" PRId64, id->pool);
	snprintf(snapshot, sizeof(snapshot), "%" PRIu64, id->snap);
	return is_attribute(sysfs, number, "cluster_fsid", id->cluster) &&
	       is_attribute(sysfs, number, "pool_id", pool) &&
	       is_attribute(sysfs, number, "image_id", id->image) &&
	       is_attribute(sysfs, number, "snap_id", snapshot);
}

int stele_krbd_find(const char *sysfs, const struct stele_storage_id *id,
		    char node[STELE_KRBD_NODE_SIZE])
{
	struct dirent *entry;
	char path[PATH_MAX];
	int found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/devices", sysfs);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	while (!found && (entry = readdir(dir))) {
		const char *number = entry->d_name;
		size_t size = strlen(number);

		if (size > 9 || strspn(number, "0123456789") != size ||
		    !is_snapshot(sysfs, number, id))
			continue;
		snprintf(node, STELE_KRBD_NODE_SIZE, "/dev/rbd%.9s", number);
		found = 1;
	}
	closedir(dir);
	return found;
}

/* ---- the device ------------------------------------------------------------ */

/*
 * The block device serves all reads. It cannot tell when its RBD snapshot was removed;
 * so this device is revocable, and its check asks the cluster through librbd.
 */
struct krbd {
	struct stele_device base;
	struct stele_device *inner;
	struct stele_device_ops ops; /* ours, by the name of who serves */
	struct stele_storage_id storage;
	char *target, *snap;
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
	free(krbd->snap);
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
	int err = stele_device_open(krbd->target, krbd->snap, 0, NULL, NULL,
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
			   const char *snap,
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
	krbd->snap = strdup(snap);
	if (krbd->target && krbd->snap)
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
	krbd->base.revocable = true;
	*out = &krbd->base;
	return 0;
}
