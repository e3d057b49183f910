/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - queued transfers by librbd's completions
 *
 * librbd calls back in threads of its own, several at once; each callback gives
 * its slot back, and its request to what is done, with the lock: who takes that behind
 * the last one may free the queue. When what is in flight does not come for
 * much longer than the timeout, the queue is broken; closed like that, it stays for the
 * callbacks, which leave the requests alone.
 */
#include "lib/device/rbd/rbd.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "format/checked.h"
#include "lib/device/rbd/bound.h"

/* Of one request: what the callback has to know. */
struct rbd_slot {
	struct rbd_queue *queue;
	struct stele_request *request;
	enum stele_op op; /* the request's, which may be gone */
	uint64_t offset;
	size_t size;
	int64_t started; /* stele_rbd_now() */
	struct rbd_slot *next; /* idle ones */
};

struct rbd_queue {
	struct stele_queue base;
	struct stele_rbd *rbd; /* base.dev may be one that wraps it */
	rbd_image_t image;
	pthread_mutex_t lock; /* of what follows */
	bool closed;	      /* with requests in flight */
	struct stele_done done;
	struct rbd_slot *idle;
	struct rbd_slot slots[];
};

/* With the lock. */
static void put_idle(struct rbd_queue *queue, struct rbd_slot *slot)
{
	slot->next = queue->idle;
	queue->idle = slot;
}

static void on_completion(rbd_completion_t completion, void *arg)
{
	struct rbd_slot *slot = arg;
	struct rbd_queue *queue = slot->queue;
	ssize_t res = stele_ceph.rbd_aio_get_return_value(completion);

	stele_ceph.rbd_aio_release(completion);
	pthread_mutex_lock(&queue->lock);
	if (!queue->closed) {
		stele_rbd_weigh(queue->rbd, queue->image, slot->op,
				slot->started, res);
		res = stele_rbd_result(slot->op, slot->size, res);
		put_idle(queue, slot);
		stele_done_put(&queue->done, slot->request, res);
	}
	pthread_mutex_unlock(&queue->lock);
}

/* There is one: never more than depth are in flight. */
static struct rbd_slot *take_slot(struct rbd_queue *queue,
				  struct stele_request *request, size_t size)
{
	struct rbd_slot *slot;

	pthread_mutex_lock(&queue->lock);
	slot = queue->idle;
	queue->idle = slot->next;
	pthread_mutex_unlock(&queue->lock);
	slot->request = request;
	slot->op = request->op;
	slot->offset = request->offset + request->done;
	slot->size = size;
	slot->started = stele_rbd_now();
	return slot;
}

static int start_slot(struct rbd_queue *queue, struct rbd_slot *slot)
{
	struct stele_request *request = slot->request;
	char *data = request->data;
	rbd_completion_t completion;
	int rc = stele_ceph.rbd_aio_create_completion(slot, on_completion,
						      &completion);

	if (rc)
		return rc;
	rc = stele_rbd_start(queue->image, request->op,
			     data ? data + request->done : NULL, slot->offset,
			     slot->size, completion);
	if (rc)
		stele_ceph.rbd_aio_release(completion);
	return rc;
}

static int queue_start(struct stele_queue *base, struct stele_request *request)
{
	struct rbd_queue *queue = (struct rbd_queue *)base;
	ssize_t room = stele_rbd_room(queue->rbd, request->op,
				      request->offset + request->done,
				      request->size - request->done);
	struct rbd_slot *slot;
	int rc;

	if (request->op != STELE_OP_FLUSH && room <= 0) {
		stele_done_put(&queue->done, request, room);
		return 0;
	}
	rc = request->op == STELE_OP_READ ? 0 : stele_rbd_guard(queue->rbd);
	if (rc)
		return rc;
	slot = take_slot(queue, request, (size_t)room);
	rc = start_slot(queue, slot);
	if (rc) {
		pthread_mutex_lock(&queue->lock);
		put_idle(queue, slot);
		pthread_mutex_unlock(&queue->lock);
	}
	return rc;
}

static int queue_wait(struct stele_queue *base, unsigned int min_wait,
		      struct stele_request **done, ssize_t *res,
		      unsigned int max)
{
	struct rbd_queue *queue = (struct rbd_queue *)base;
	int count = stele_done_wait(&queue->done, min_wait, done, res, max);

	for (int i = 0; i < count; i++)
		res[i] = stele_rbd_judge(queue->rbd, res[i]);
	if (count < 0 && queue->rbd->base.writable)
		stele_rbd_doubt(queue->image);
	return count;
}

static int queue_event_fd(struct stele_queue *base)
{
	return ((struct rbd_queue *)base)->done.event_fd;
}

/* The last callback may still have the lock. */
static void queue_close(struct stele_queue *base, bool forked)
{
	struct rbd_queue *queue = (struct rbd_queue *)base;

	if (!forked) {
		pthread_mutex_lock(&queue->lock);
		queue->closed = base->in_flight;
		pthread_mutex_unlock(&queue->lock);
	}
	if (queue->closed)
		return;
	stele_done_release(&queue->done, forked);
	if (!forked)
		pthread_mutex_destroy(&queue->lock);
	free(queue);
}

static const struct stele_queue_ops queue_ops = {
	.start = queue_start,
	.wait = queue_wait,
	.event_fd = queue_event_fd,
	.close = queue_close,
};

int stele_rbd_queue_open(struct stele_device *dev, unsigned int depth,
			 void *arena, size_t arena_size,
			 struct stele_queue **out)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	struct rbd_queue *queue = calloc(1, sizeof(*queue) +
						    depth * sizeof(queue->slots[0]));
	int rc;

	(void)arena, (void)arena_size; /* librbd copies into any memory */
	if (!queue)
		return -ENOMEM;
	queue->base.ops = &queue_ops;
	queue->rbd = rbd;
	rc = stele_rbd_queue_image(rbd, &queue->image);
	if (!rc)
		rc = stele_done_init(&queue->done);
	if (rc) {
		free(queue);
		return rc;
	}
	queue->done.ticks_max = stele_rbd_ticks(rbd->settings.timeout);
	pthread_mutex_init(&queue->lock, NULL);
	for (unsigned int i = 0; i < depth; i++) {
		queue->slots[i].queue = queue;
		put_idle(queue, &queue->slots[i]);
	}
	*out = &queue->base;
	return 0;
}
