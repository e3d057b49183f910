/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - queued transfers, the same for every backend
 *
 * Counts what is in flight, so that a backend always has room; starts again
 * what came back short or was interrupted; and refuses to serve a forked
 * child, which shares the kernel's ring with its parent but none of the
 * memory that completions are written to. Whoever calls is told to the backend,
 * when it is another thread than before.
 */
#include "lib/base/error.h"
#include "lib/device/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "format/checked.h"
#include "lib/device/backend.h"

#define REAP_BATCH 64u
#define PAGE_BYTES 4096u

static atomic_uint fork_count;

static void count_fork(void)
{
	atomic_fetch_add(&fork_count, 1);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

unsigned int stele_fork_count(void)
{
	return atomic_load(&fork_count);
}

unsigned int stele_thread_number(void)
{
	static atomic_uint count;
	static _Thread_local unsigned int number;

	if (!number)
		number = atomic_fetch_add(&count, 1) + 1;
	return number;
}

static bool is_forked(const struct stele_queue *queue)
{
	return queue->fork_count != stele_fork_count();
}

static void begin(struct stele_queue *queue, struct stele_device *dev,
		  unsigned int depth)
{
	queue->dev = dev;
	queue->depth = depth;
	queue->in_flight = 0;
	queue->fork_count = stele_fork_count();
	queue->thread = 0;
	queue->grouped = false;
	queue->stats = (struct stele_queue_stats){0};
}

int stele_queue_open(struct stele_device *dev, unsigned int depth, void *arena,
		     size_t arena_size, struct stele_queue **out)
{
	struct stele_queue *queue;
	int rc;

	if (!depth || depth > STELE_QUEUE_DEPTH_MAX)
		return -EINVAL;
	rc = dev->ops->queue_open(dev, depth, arena, arena_size, &queue);
	if (rc)
		return rc;
	begin(queue, dev, depth);
	*out = queue;
	return 0;
}

int stele_queue_open_in(struct stele_device *dev, unsigned int depth,
			struct stele_queue_group *group,
			struct stele_queue **out)
{
	struct stele_queue *queue;

	if (!depth || depth > STELE_QUEUE_DEPTH_MAX)
		return -EINVAL;
	if (!dev->ops->queue_join ||
	    dev->ops->queue_join(dev, depth, group, &queue))
		return stele_queue_open(dev, depth, NULL, 0, out);
	begin(queue, dev, depth);
	queue->grouped = true;
	*out = queue;
	return 0;
}

int stele_queue_claim(struct stele_queue *queue)
{
	unsigned int thread = stele_thread_number();
	int rc = 0;

	if (is_forked(queue))
		return -EOWNERDEAD;
	if (queue->thread == thread)
		return 0;
	if (queue->ops->adopt)
		rc = queue->ops->adopt(queue);
	if (rc == -EBUSY)
		stele_error_explain(rc, "another thread uses it, and has reads in flight");
	if (!rc)
		queue->thread = thread;
	return rc;
}

int stele_queue_submit(struct stele_queue *queue,
		       struct stele_request *request)
{
	int rc = stele_queue_claim(queue);

	if (!rc)
		rc = stele_request_check(queue->dev, request);
	if (rc)
		return rc;
	if (queue->in_flight >= queue->depth)
		return -EAGAIN;
	if (request->op == STELE_OP_WRITE)
		rc = stele_device_may_write(queue->dev);
	else if (request->op == STELE_OP_DISCARD)
		rc = stele_device_may_erase(queue->dev);
	if (rc)
		return rc;
	request->status = 0;
	request->done = 0;
	request->retries = 0;
	request->next = NULL;
	rc = queue->ops->start(queue, request);
	if (!rc)
		queue->in_flight++;
	return rc;
}

/* Did this raw completion finish its request? If not, it is started again. */
static bool settle(struct stele_queue *queue, struct stele_request *request,
		   ssize_t res)
{
	int rc;

	if (stele_request_advance(queue->dev, request, res))
		return true;
	rc = queue->ops->start(queue, request);
	if (!rc) {
		queue->stats.retries++;
		return false; /* and the backend's again */
	}
	request->status = rc;
	return true;
}

/*
 * One round: wait for `wanted` raw completions, keep what is finished.
 * Return: whether another round would bring something at once, or push what was
 * started again; or -errno. *count grows by the finished ones.
 */
static int reap_round(struct stele_queue *queue, unsigned int wanted,
		      struct stele_request **done, unsigned int max,
		      unsigned int *count)
{
	unsigned int before = *count;
	struct stele_request *raw[REAP_BATCH];
	ssize_t res[REAP_BATCH];
	unsigned int room = max - *count;
	int n;

	if (room > REAP_BATCH)
		room = REAP_BATCH;
	if (wanted > room)
		wanted = room;
	n = queue->ops->wait(queue, wanted, raw, res, room);
	for (int i = 0; i < n; i++) {
		if (!settle(queue, raw[i], res[i]))
			continue;
		stele_request_count(queue->dev, raw[i]);
		done[(*count)++] = raw[i];
		queue->in_flight--;
	}
	if (n < 0)
		return n;
	return (unsigned int)n == room || *count - before < (unsigned int)n;
}

int stele_queue_reap(struct stele_queue *queue, struct stele_request **done,
		     unsigned int max, unsigned int min)
{
	unsigned int count = 0;
	int more = stele_queue_claim(queue);

	if (more)
		return more;
	if (min > queue->in_flight)
		min = queue->in_flight;
	if (min > max)
		min = max;
	/* Not until nothing comes any more: each look may be a call of the kernel. */
	do {
		more = reap_round(queue, min > count ? min - count : 0, done,
				  max, &count);
	} while (more >= 0 && (more || count < min) && count < max &&
		 queue->in_flight);
	if (more < 0 && !count)
		return -EIO;
	return (int)count;
}

int stele_queue_gather(struct stele_queue *queue, unsigned int min)
{
	struct stele_request *none[1];
	ssize_t res[1];
	int rc = stele_queue_claim(queue);

	if (rc)
		return rc;
	return queue->ops->wait(queue, min, none, res, 0) < 0 ? -EIO : 0;
}

int stele_queue_run(struct stele_queue *queue, struct stele_request *requests,
		    unsigned int count)
{
	struct stele_request *done[REAP_BATCH];
	unsigned int next = 0, finished = 0;

	while (finished < count) {
		int rc = 0;

		while (next < count && !rc) {
			rc = stele_queue_submit(queue, &requests[next]);
			next += !rc;
		}
		if (rc && rc != -EAGAIN)
			return rc;
		rc = stele_queue_reap(queue, done, REAP_BATCH, 1);
		if (rc < 0)
			return rc;
		finished += (unsigned int)rc;
	}
	return 0;
}

int stele_queue_register(struct stele_queue *queue, void *memory, size_t size)
{
	int rc = stele_queue_claim(queue);

	if (rc)
		return rc;
	if (!memory || !size || !is_aligned((uintptr_t)memory, PAGE_BYTES))
		return -EINVAL;
	return queue->ops->attach ? queue->ops->attach(queue, memory, size)
				  : -EOPNOTSUPP;
}

void stele_queue_describe(const struct stele_queue *queue, char *text,
			  size_t size)
{
	if (queue->ops->describe)
		queue->ops->describe(queue, text, size);
	else
		snprintf(text, size, "%s", stele_device_backend(queue->dev));
}

int stele_queue_fd(struct stele_queue *queue)
{
	int rc = stele_queue_claim(queue);

	return rc ? rc : queue->ops->event_fd(queue);
}

unsigned int stele_queue_close(struct stele_queue *queue)
{
	struct stele_request *raw[REAP_BATCH];
	ssize_t res[REAP_BATCH];
	unsigned int left;
	bool forked;
	int n = 0;

	if (!queue)
		return 0;
	forked = is_forked(queue);
	if (!forked && queue->in_flight)
		n = stele_queue_claim(queue);
	while (!forked && queue->in_flight && n >= 0) {
		n = queue->ops->wait(queue, 1, raw, res, REAP_BATCH);
		if (n > 0)
			queue->in_flight -= (unsigned int)n;
	}
	left = forked ? 0 : queue->in_flight;
	queue->ops->close(queue, forked);
	return left;
}
