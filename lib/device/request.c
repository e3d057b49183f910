/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - lists of requests, what a device takes, and what a raw result means
 *
 * Blocking and queued transfers obey the same rules, so these stand once,
 * here. A short transfer goes on at the last place that is aligned for offset
 * and memory: the bytes behind it are transferred again. Each round either
 * makes progress or costs one of STELE_RETRY_MAX retries, so none is endless.
 */
#include "lib/device/backend.h"

#include <errno.h>
#include <stdatomic.h>

#include "format/checked.h"
#include "lib/base/fifo.h"

void stele_request_push(struct stele_request_list *list,
			struct stele_request *request)
{
	stele_fifo_push(list, request);
	list->count++;
}

struct stele_request *stele_request_pop(struct stele_request_list *list)
{
	struct stele_request *request = stele_fifo_pop(list);

	list->count -= request != NULL;
	return request;
}

int stele_request_drain(struct stele_request_list *list,
			struct stele_request **done, ssize_t *res,
			unsigned int max)
{
	unsigned int count = 0;

	while (count < max && list->head) {
		done[count] = stele_request_pop(list);
		res[count] = done[count]->status;
		count++;
	}
	return count;
}

static bool range_aligned(const struct stele_device *dev,
			  const struct stele_request *request)
{
	uint32_t block = dev->limits.logical_block;

	return request->size && is_aligned(request->offset, block) &&
	       is_aligned(request->size, block) &&
	       range_ok(request->offset, request->size, INT64_MAX);
}

int stele_request_check(const struct stele_device *dev,
			const struct stele_request *request)
{
	if (request->op != STELE_OP_READ && !dev->writable)
		return -EROFS;
	switch (request->op) {
	case STELE_OP_READ:
	case STELE_OP_WRITE:
		if (!request->data || !range_aligned(dev, request) ||
		    !is_aligned((uintptr_t)request->data,
				dev->limits.memory_align) ||
		    request->size > dev->limits.transfer_max)
			return -EINVAL;
		return 0;
	case STELE_OP_FLUSH:
		return 0;
	case STELE_OP_DISCARD:
		return range_aligned(dev, request) ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static bool finish(struct stele_request *request, int status)
{
	request->status = status;
	return true;
}

/* The same piece once more, unless that has been tried often enough. */
static bool retry(struct stele_request *request, int status)
{
	if (request->retries >= STELE_RETRY_MAX)
		return finish(request, status);
	request->retries++;
	return false;
}

bool stele_request_advance(const struct stele_device *dev,
			   struct stele_request *request, ssize_t res)
{
	const struct stele_limits *limits = &dev->limits;
	uint32_t granule = limits->logical_block, left, step;
	int at_end = request->op == STELE_OP_READ ? -ENODATA : -ENOSPC;

	if (granule < limits->memory_align)
		granule = limits->memory_align;
	if (res == -EAGAIN || res == -EINTR)
		return retry(request, (int)res);
	/* Linux's word for a medium error; to us it would be the end. */
	if (res == -ENODATA)
		res = -EIO;
	if (res < 0)
		return finish(request, (int)res);
	if (request->op == STELE_OP_FLUSH || request->op == STELE_OP_DISCARD)
		return finish(request, 0);

	left = request->size - request->done;
	if (!res)
		return finish(request, at_end);
	if (res > left)
		return finish(request, -EIO);
	if (res == left) {
		request->done = request->size;
		return finish(request, 0);
	}
	step = (uint32_t)round_down((uint64_t)res, granule);
	if (!step)
		return retry(request, at_end);
	request->done += step;
	request->retries = 0;
	return false;
}

void stele_request_count(struct stele_device *dev,
			 const struct stele_request *request)
{
	if (request->op == STELE_OP_WRITE)
		atomic_fetch_add_explicit(&dev->written, request->done,
					  memory_order_relaxed);
}
