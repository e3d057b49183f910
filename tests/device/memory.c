/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - a device in memory, for tests
 *
 * Behaves at its end as the kernel does: reads get shorter and then 0, writes
 * get shorter and then -ENOSPC. One lock around all bytes makes it safe from
 * several threads. Queued requests are done when they are started and wait in
 * a list to be reaped, in that order.
 */
#include "tests/device/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "format/checked.h"
#include "lib/device/backend.h"
#include "tests/device/lock.h"
#include "tests/tap.h"

#define MEMORY_ALIGN	 512
#define MEMORY_DEPTH_MAX 128

struct memory {
	struct stele_device base;
	struct test_lock lock;
	uint8_t *bytes;
	uint64_t size;
};

struct memory_queue {
	struct stele_queue base;
	struct stele_device *memory; /* base.dev may be one that wraps it */
	struct stele_done done;
};

static ssize_t memory_copy(struct memory *memory, enum stele_op op, void *data,
			   uint64_t offset, size_t size)
{
	if (op == STELE_OP_FLUSH)
		return 0;
	if (offset >= memory->size)
		return op == STELE_OP_WRITE ? -ENOSPC : 0;
	if (size > memory->size - offset)
		size = memory->size - offset;
	switch (op) {
	case STELE_OP_READ:
		memcpy(data, memory->bytes + offset, size);
		break;
	case STELE_OP_WRITE:
		memcpy(memory->bytes + offset, data, size);
		break;
	default:
		memset(memory->bytes + offset, 0, size);
		return 0;
	}
	return (ssize_t)size;
}

static ssize_t memory_transfer(struct stele_device *dev, enum stele_op op,
			       void *data, uint64_t offset, size_t size)
{
	struct memory *memory = (struct memory *)dev;
	ssize_t res;

	test_lock_take(&memory->lock);
	res = memory_copy(memory, op, data, offset, size);
	test_lock_drop(&memory->lock);
	return res;
}

static int memory_size(struct stele_device *dev, uint64_t *size)
{
	*size = ((struct memory *)dev)->size;
	return 0;
}

static void memory_close(struct stele_device *dev)
{
	struct memory *memory = (struct memory *)dev;

	test_lock_destroy(&memory->lock);
	munmap(memory->bytes, memory->size);
	free(memory);
}

static int queue_start(struct stele_queue *base, struct stele_request *request)
{
	struct memory_queue *queue = (struct memory_queue *)base;
	char *data = request->data;

	stele_done_put(&queue->done, request,
		       memory_transfer(queue->memory, request->op,
				       data ? data + request->done : NULL,
				       request->offset + request->done,
				       request->size - request->done));
	return 0;
}

static int queue_wait(struct stele_queue *base, unsigned int min_wait,
		      struct stele_request **done, ssize_t *res,
		      unsigned int max)
{
	return stele_done_wait(&((struct memory_queue *)base)->done, min_wait,
			       done, res, max);
}

static int queue_event_fd(struct stele_queue *base)
{
	return ((struct memory_queue *)base)->done.event_fd;
}

static void queue_close(struct stele_queue *base, bool forked)
{
	struct memory_queue *queue = (struct memory_queue *)base;

	stele_done_release(&queue->done, forked);
	free(queue);
}

static const struct stele_queue_ops queue_ops = {
	.start = queue_start,
	.wait = queue_wait,
	.event_fd = queue_event_fd,
	.close = queue_close,
};

static int memory_queue_open(struct stele_device *dev, unsigned int depth,
			     void *arena, size_t arena_size,
			     struct stele_queue **out)
{
	struct memory_queue *queue = calloc(1, sizeof(*queue));
	int rc;

	(void)depth, (void)arena, (void)arena_size;
	if (!queue)
		return -ENOMEM;
	queue->base.ops = &queue_ops;
	queue->memory = dev;
	rc = stele_done_init(&queue->done);
	if (rc) {
		free(queue);
		return rc;
	}
	*out = &queue->base;
	return 0;
}

static const struct stele_device_ops memory_ops = {
	.name = "memory",
	.transfer = memory_transfer,
	.size = memory_size,
	.queue_open = memory_queue_open,
	.close = memory_close,
};

int stele_device_open_memory(uint64_t size, uint32_t logical_block,
			     struct stele_device **out)
{
	struct memory *memory;

	if (!size || size > SIZE_MAX || !is_power_of_two(logical_block) ||
	    logical_block < 512 || logical_block > 65536)
		return -EINVAL;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	memory->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			     0);
	if (memory->bytes == MAP_FAILED) {
		free(memory);
		return -ENOMEM;
	}
	test_lock_init(&memory->lock);
	memory->size = size;
	memory->base = (struct stele_device){
		.ops = &memory_ops,
		.limits = {.logical_block = logical_block,
			   .memory_align = MEMORY_ALIGN,
			   .transfer_max = STELE_FILE_TRANSFER_SIZE_MAX,
			   .depth_max = MEMORY_DEPTH_MAX},
		.writable = true,
		.fd = -1,
	};
	*out = &memory->base;
	return 0;
}

void *stele_device_memory(struct stele_device *dev)
{
	if (dev->ops != &memory_ops)
		return NULL;
	return ((struct memory *)dev)->bytes;
}

/* ---- for tests ------------------------------------------------------------- */

struct stele_device *test_memory(uint64_t size, uint32_t logical_block,
				 int byte)
{
	struct stele_device *dev;

	if (stele_device_open_memory(size, logical_block, &dev) < 0)
		bail("no memory device");
	if (byte) /* else its pages are not there yet */
		memset(stele_device_memory(dev), byte, size);
	return dev;
}

void test_memory_save(struct stele_device *dev, const char *path)
{
	FILE *file = fopen(path, "w");
	uint64_t size;

	if (stele_device_size(dev, &size) || !file ||
	    fwrite(stele_device_memory(dev), 1, size, file) != size ||
	    fclose(file) != 0)
		sysbail("%s", path);
}
