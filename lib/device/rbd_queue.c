/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rbd_queue.c - queued transfers by librbd's completions
 *
 * librbd calls back in threads of its own, several at once; each callback puts
 * its request into the list of what is done. One lock covers that list; the
 * event descriptor is readable exactly while it holds something. A request is
 * in the list before the lock is given up, so whoever closes the queue has seen
 * the last callback out of it.
 */
#include "lib/device/rbd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "format/checked.h"

/* Of one request: what the callback has to know. */
struct rbd_slot {
	struct rbd_queue *queue;
	struct stele_request *request;
	size_t size;
	struct rbd_slot *next; /* idle ones */
};

struct rbd_queue {
	struct stele_queue base;
	struct stele_rbd *rbd; /* base.dev may be one that wraps it */
	rbd_image_t image;
	pthread_mutex_t lock;
	pthread_cond_t finished;
	struct stele_request_list done;
	struct rbd_slot *idle;
	int event_fd;
	struct rbd_slot slots[];
};

/* With the lock held. */
static void put_done(struct rbd_queue *queue, struct stele_request *request,
		     ssize_t res)
{
	request->status = (int)res;
	if (!queue->done.count)
		eventfd_write(queue->event_fd, 1);
	stele_request_push(&queue->done, request);
	pthread_cond_signal(&queue->finished);
}

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
	res = stele_rbd_result(slot->request->op, slot->size, res);
	pthread_mutex_lock(&queue->lock);
	put_done(queue, slot->request, res);
	put_idle(queue, slot);
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
	slot->size = size;
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
			     data ? data + request->done : NULL,
			     request->offset + request->done, slot->size,
			     completion);
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
		pthread_mutex_lock(&queue->lock);
		put_done(queue, request, room);
		pthread_mutex_unlock(&queue->lock);
		return 0;
	}
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
	eventfd_t events;
	int count;

	pthread_mutex_lock(&queue->lock);
	while (queue->done.count < min_wait)
		pthread_cond_wait(&queue->finished, &queue->lock);
	count = stele_request_drain(&queue->done, done, res, max);
	if (count && !queue->done.count)
		eventfd_read(queue->event_fd, &events);
	pthread_mutex_unlock(&queue->lock);
	return count;
}

static int queue_event_fd(struct stele_queue *base)
{
	return ((struct rbd_queue *)base)->event_fd;
}

/* In a forked child the lock may be held by a thread that is not there. */
static void queue_close(struct stele_queue *base, bool forked)
{
	struct rbd_queue *queue = (struct rbd_queue *)base;

	if (!forked) {
		/* The last callback may still be in its unlock. */
		pthread_mutex_lock(&queue->lock);
		pthread_mutex_unlock(&queue->lock);
		pthread_cond_destroy(&queue->finished);
		pthread_mutex_destroy(&queue->lock);
	}
	close(queue->event_fd);
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
	for (unsigned int i = 0; i < depth; i++) {
		queue->slots[i].queue = queue;
		put_idle(queue, &queue->slots[i]);
	}
	queue->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = queue->event_fd < 0 ? -errno :
				   stele_rbd_queue_image(rbd, &queue->image);
	if (rc) {
		if (queue->event_fd >= 0)
			close(queue->event_fd);
		free(queue);
		return rc;
	}
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->finished, NULL);
	*out = &queue->base;
	return 0;
}
