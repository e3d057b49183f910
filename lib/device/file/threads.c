/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - queued transfers by threads that block, for any device
 *
 * The queue of machines without io_uring. Each queue has its own threads, at
 * most THREADS_MAX: one at open, so that start() cannot fail for want of one, more
 * when requests wait and nobody is idle. The lock covers what is pending.
 */
#include "lib/device/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/workers.h"

#define THREADS_MAX 16u

struct threads_queue {
	struct stele_queue base;
	struct stele_device *served; /* base.dev may be one that wraps it */
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct stele_request_list pending;
	struct stele_done done;
	unsigned int idle;
	bool stop;
	unsigned int thread_count, thread_max;
	pthread_t threads[THREADS_MAX];
};

static void serve(struct threads_queue *queue, struct stele_request *request)
{
	char *data = request->data;
	struct stele_device *dev = queue->served;
	ssize_t res;

	pthread_mutex_unlock(&queue->lock);
	res = dev->ops->transfer(dev, request->op,
				 data ? data + request->done : NULL,
				 request->offset + request->done,
				 request->size - request->done);
	/* First: whoever starts the next one shall find this thread idle. */
	pthread_mutex_lock(&queue->lock);
	stele_done_put(&queue->done, request, res);
}

static void *work(void *arg)
{
	struct threads_queue *queue = arg;
	struct stele_request *request;

	pthread_mutex_lock(&queue->lock);
	while (!queue->stop) {
		request = stele_request_pop(&queue->pending);
		if (request) {
			serve(queue, request);
			continue;
		}
		queue->idle++;
		pthread_cond_wait(&queue->work, &queue->lock);
		queue->idle--;
	}
	pthread_mutex_unlock(&queue->lock);
	return NULL;
}

static int add_thread(struct threads_queue *queue)
{
	int rc = stele_thread_start(&queue->threads[queue->thread_count],
				    "stele-io", work, queue);

	queue->thread_count += !rc;
	return rc;
}

static int threads_start(struct stele_queue *base,
			 struct stele_request *request)
{
	struct threads_queue *queue = (struct threads_queue *)base;
	bool crowded;

	pthread_mutex_lock(&queue->lock);
	stele_request_push(&queue->pending, request);
	crowded = queue->pending.count > queue->idle &&
		  queue->thread_count < queue->thread_max;
	pthread_cond_signal(&queue->work);
	pthread_mutex_unlock(&queue->lock);
	if (crowded)
		add_thread(queue);
	return 0;
}

static int threads_wait(struct stele_queue *base, unsigned int min_wait,
			struct stele_request **done, ssize_t *res,
			unsigned int max)
{
	return stele_done_wait(&((struct threads_queue *)base)->done, min_wait,
			       done, res, max);
}

static int threads_event_fd(struct stele_queue *base)
{
	return ((struct threads_queue *)base)->done.event_fd;
}

/* A device may have come down to threads from something better. */
static void threads_describe(const struct stele_queue *base, char *text,
			     size_t size)
{
	(void)base;
	snprintf(text, size, STELE_BACKEND_THREADS);
}

/* A forked child has neither the threads nor a lock that it could take. */
static void threads_close(struct stele_queue *base, bool forked)
{
	struct threads_queue *queue = (struct threads_queue *)base;

	if (!forked) {
		pthread_mutex_lock(&queue->lock);
		queue->stop = true;
		pthread_cond_broadcast(&queue->work);
		pthread_mutex_unlock(&queue->lock);
		for (unsigned int i = 0; i < queue->thread_count; i++)
			pthread_join(queue->threads[i], NULL);
		pthread_cond_destroy(&queue->work);
		pthread_mutex_destroy(&queue->lock);
	}
	stele_done_release(&queue->done, forked);
	free(queue);
}

static const struct stele_queue_ops threads_queue_ops = {
	.start = threads_start,
	.wait = threads_wait,
	.event_fd = threads_event_fd,
	.close = threads_close,
	.describe = threads_describe,
};

int stele_threads_open_queue(struct stele_device *dev, unsigned int depth,
			     void *arena, size_t arena_size,
			     struct stele_queue **out)
{
	struct threads_queue *queue = calloc(1, sizeof(*queue));
	int rc;

	(void)arena, (void)arena_size;
	if (!queue)
		return -ENOMEM;
	queue->base.ops = &threads_queue_ops;
	queue->served = dev;
	queue->thread_max = depth < THREADS_MAX ? depth : THREADS_MAX;
	rc = stele_done_init(&queue->done);
	if (rc) {
		free(queue);
		return rc;
	}
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->work, NULL);
	rc = add_thread(queue);
	if (rc) {
		threads_close(&queue->base, false);
		return rc;
	}
	*out = &queue->base;
	return 0;
}
