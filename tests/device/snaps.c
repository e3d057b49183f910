/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snaps.c - see snaps.h
 */
#include "tests/device/snaps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device/memory.h"
#include "tests/tap.h"

struct bytes {
	uint64_t id; /* of the RBD snapshot */
	uint8_t *data;
	uint64_t size;
};

struct test_storage {
	struct stele_device *head;
	struct stele_rbd_snaps snaps;
	struct bytes bytes[TEST_SNAPS_MAX];
	unsigned int made, changes, fail_at;
	int error;
	char list[4096];
};

struct storage_device {
	struct stele_device base;
	struct test_storage *storage;
};

static struct test_storage *storage_of(struct stele_device *dev)
{
	return ((struct storage_device *)dev)->storage;
}

/* ---- RBD snapshots ----------------------------------------------------------------- */

static int enter(struct test_storage *storage)
{
	return ++storage->changes == storage->fail_at ? storage->error : 0;
}

static int list(struct stele_device *dev, struct stele_rbd_snaps *out)
{
	return stele_rbd_snaps_copy(out, &storage_of(dev)->snaps);
}

static int add(struct test_storage *storage, const char *name, bool is_protected)
{
	struct bytes *bytes = &storage->bytes[storage->made];
	int ret = stele_rbd_snaps_add(&storage->snaps, name, 0, is_protected);

	if (ret < 0)
		return ret;
	if (storage->made == TEST_SNAPS_MAX)
		bail("too many RBD snapshots");
	bytes->id = storage->snaps.last_id;
	if (stele_device_size(storage->head, &bytes->size) < 0)
		bail("no size");
	bytes->data = stele_device_alloc(storage->head, bytes->size);
	if (!bytes->data ||
	    stele_device_read(storage->head, bytes->data, 0, bytes->size) < 0)
		bail("cannot read the head");
	storage->made++;
	return 0;
}

static int make(struct stele_device *dev, const char *name)
{
	int ret = enter(storage_of(dev));

	return ret < 0 ? ret : add(storage_of(dev), name, false);
}

static int protect(struct stele_device *dev, const char *name, bool wanted)
{
	struct test_storage *storage = storage_of(dev);
	int ret = enter(storage);

	return ret < 0 ? ret :
			 stele_rbd_snaps_protect(&storage->snaps, name, wanted);
}

static int rename_snap(struct stele_device *dev, const char *from,
		       const char *to)
{
	struct test_storage *storage = storage_of(dev);
	int ret = enter(storage);

	return ret < 0 ? ret : stele_rbd_snaps_rename(&storage->snaps, from, to);
}

static int remove_snap(struct stele_device *dev, const char *name)
{
	struct test_storage *storage = storage_of(dev);
	int ret = enter(storage);

	return ret < 0 ? ret : stele_rbd_snaps_remove(&storage->snaps, name);
}

static const struct stele_rbd_snap_ops snap_ops = {
	.list = list,
	.make = make,
	.protect = protect,
	.rename = rename_snap,
	.remove = remove_snap,
};

/* ---- the head -------------------------------------------------------------- */

static ssize_t transfer(struct stele_device *dev, enum stele_op op, void *data,
			uint64_t offset, size_t size)
{
	struct stele_device *head = storage_of(dev)->head;

	return head->ops->transfer(head, op, data, offset, size);
}

static int size_of(struct stele_device *dev, uint64_t *size)
{
	return stele_device_size(storage_of(dev)->head, size);
}

static int queue_open(struct stele_device *dev, unsigned int depth, void *arena,
		      size_t arena_size, struct stele_queue **queue)
{
	struct stele_device *head = storage_of(dev)->head;

	return head->ops->queue_open(head, depth, arena, arena_size, queue);
}

static int resize(struct stele_device *dev, uint64_t size)
{
	return stele_device_resize(storage_of(dev)->head, size);
}

static void close_device(struct stele_device *dev)
{
	free(dev);
}

static const struct stele_device_ops storage_ops = {
	.name = "snaps",
	.transfer = transfer,
	.size = size_of,
	.queue_open = queue_open,
	.close = close_device,
	.resize = resize,
	.snaps = &snap_ops,
};

struct test_storage *test_storage_new(struct stele_device *head)
{
	struct test_storage *storage = calloc(1, sizeof(*storage));

	if (!storage)
		bail("no memory");
	storage->head = head;
	return storage;
}

void test_storage_free(struct test_storage *storage)
{
	for (unsigned int i = 0; i < storage->made; i++)
		free(storage->bytes[i].data);
	stele_rbd_snaps_release(&storage->snaps);
	stele_device_close(storage->head);
	free(storage);
}

struct stele_device *test_storage_open(struct test_storage *storage)
{
	struct storage_device *dev = calloc(1, sizeof(*dev));

	if (!dev)
		bail("no memory");
	dev->base = *storage->head;
	dev->base.ops = &storage_ops;
	dev->base.written = 0;
	dev->storage = storage;
	return &dev->base;
}

struct stele_device *test_storage_read(struct test_storage *storage,
				       const char *name)
{
	const struct stele_rbd_snap *snap = stele_rbd_snaps_find(&storage->snaps, name);
	const struct bytes *bytes = storage->bytes;
	struct stele_device *dev;

	if (!snap)
		return NULL;
	while (bytes->id != snap->id)
		bytes++;
	dev = test_memory(bytes->size, storage->head->limits.logical_block, 0);
	memcpy(stele_device_memory(dev), bytes->data, bytes->size);
	return dev;
}

const char *test_storage_list(struct test_storage *storage)
{
	const struct stele_rbd_snaps *snaps = &storage->snaps;
	size_t at = 0;

	storage->list[0] = '\0';
	for (size_t i = 0; i < snaps->count; i++)
		at += (size_t)snprintf(storage->list + at,
				       sizeof(storage->list) - at, "%s%s%c",
				       i ? " " : "", snaps->list[i].name,
				       snaps->list[i].is_protected ? '+' : '-');
	return storage->list;
}

void test_storage_fail(struct test_storage *storage, unsigned int n, int error)
{
	storage->fail_at = n ? storage->changes + n : 0;
	storage->error = error;
}

unsigned int test_storage_changes(const struct test_storage *storage)
{
	return storage->changes;
}

void test_storage_make(struct test_storage *storage, const char *name,
		       bool is_protected)
{
	if (add(storage, name, is_protected) < 0)
		bail("RBD snapshot %s is there", name);
}
