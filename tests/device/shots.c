/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shots.c - see shots.h
 */
#include "tests/device/shots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device/memory.h"
#include "tests/tap.h"

struct shot {
	char name[128];
	uint64_t id;
	bool is_protected;
	uint8_t *bytes;
	uint64_t size;
};

struct test_storage {
	struct stele_device *head;
	struct shot shots[TEST_SHOTS_MAX];
	unsigned int count;
	uint64_t next_id;
	unsigned int changes, fail_at;
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

/* ---- shots ----------------------------------------------------------------- */

static struct shot *find(struct test_storage *storage, const char *name)
{
	for (unsigned int i = 0; i < storage->count; i++)
		if (!strcmp(storage->shots[i].name, name))
			return &storage->shots[i];
	return NULL;
}

static int enter(struct test_storage *storage)
{
	return ++storage->changes == storage->fail_at ? storage->error : 0;
}

static int each(struct stele_device *dev, stele_shot_fn fn, void *user)
{
	struct test_storage *storage = storage_of(dev);
	int ret = 0;

	for (unsigned int i = 0; ret == 0 && i < storage->count; i++) {
		const struct stele_shot shot = {
			.name = storage->shots[i].name,
			.id = storage->shots[i].id,
			.is_protected = storage->shots[i].is_protected,
		};

		ret = fn(user, &shot);
	}
	return ret;
}

static int add(struct test_storage *storage, const char *name)
{
	struct shot *shot = &storage->shots[storage->count];
	void *data;

	if (find(storage, name))
		return -EEXIST;
	if (storage->count == TEST_SHOTS_MAX)
		bail("too many shots");
	memset(shot, 0, sizeof(*shot));
	snprintf(shot->name, sizeof(shot->name), "%s", name);
	shot->id = ++storage->next_id;
	if (stele_device_size(storage->head, &shot->size) < 0)
		bail("no size");
	data = stele_device_alloc(storage->head, shot->size);
	if (!data ||
	    stele_device_read(storage->head, data, 0, shot->size) < 0)
		bail("cannot read the head");
	shot->bytes = data;
	storage->count++;
	return 0;
}

static int make(struct stele_device *dev, const char *name)
{
	int ret = enter(storage_of(dev));

	return ret < 0 ? ret : add(storage_of(dev), name);
}

static int protect(struct stele_device *dev, const char *name, bool wanted)
{
	struct shot *shot = find(storage_of(dev), name);
	int ret = enter(storage_of(dev));

	if (ret < 0)
		return ret;
	if (!shot)
		return -ENOENT;
	if (shot->is_protected == wanted)
		return wanted ? -EBUSY : -EINVAL;
	shot->is_protected = wanted;
	return 0;
}

static int rename_shot(struct stele_device *dev, const char *from,
		       const char *to)
{
	struct shot *shot = find(storage_of(dev), from);
	int ret = enter(storage_of(dev));

	if (ret < 0)
		return ret;
	if (!shot)
		return -ENOENT;
	if (find(storage_of(dev), to))
		return -EEXIST;
	snprintf(shot->name, sizeof(shot->name), "%s", to);
	return 0;
}

static int remove_shot(struct stele_device *dev, const char *name)
{
	struct test_storage *storage = storage_of(dev);
	struct shot *shot = find(storage, name);
	int ret = enter(storage);

	if (ret < 0)
		return ret;
	if (!shot)
		return -ENOENT;
	if (shot->is_protected)
		return -EBUSY;
	free(shot->bytes);
	storage->count--;
	memmove(shot, shot + 1,
		(size_t)(storage->shots + storage->count - shot) *
			sizeof(*shot));
	return 0;
}

static const struct stele_shot_ops shot_ops = {
	.each = each,
	.make = make,
	.protect = protect,
	.rename = rename_shot,
	.remove = remove_shot,
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
	.name = "shots",
	.transfer = transfer,
	.size = size_of,
	.queue_open = queue_open,
	.close = close_device,
	.resize = resize,
	.shots = &shot_ops,
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
	for (unsigned int i = 0; i < storage->count; i++)
		free(storage->shots[i].bytes);
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
	struct shot *shot = find(storage, name);
	struct stele_device *dev;

	if (!shot)
		return NULL;
	dev = test_memory(shot->size, storage->head->limits.logical_block, 0);
	memcpy(stele_device_memory(dev), shot->bytes, shot->size);
	return dev;
}

const char *test_storage_list(struct test_storage *storage)
{
	size_t at = 0;

	storage->list[0] = '\0';
	for (unsigned int i = 0; i < storage->count; i++)
		at += (size_t)snprintf(storage->list + at,
				       sizeof(storage->list) - at, "%s%s%c",
				       i ? " " : "", storage->shots[i].name,
				       storage->shots[i].is_protected ? '+' :
									'-');
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
	if (add(storage, name) < 0)
		bail("shot %s is there", name);
	storage->shots[storage->count - 1].is_protected = is_protected;
}
