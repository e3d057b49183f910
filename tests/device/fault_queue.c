/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_queue.c - queued operations of a fault device
 *
 * An operation goes on to a queue of the device below as a changed copy, its
 * shadow, which a slot ties to the request; or it is answered here. Life of
 * a slot: free -> below -> (delayed ->) free, and then its request is in
 * `done`, raw result in its status, until wait() hands it out.
 */
#include "tests/device/fault_queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "format/checked.h"
#include "lib/device/backend.h"

#define COLLECT_BATCH 64

struct slot {
	struct stele_request shadow; /* its user is the slot */
	struct stele_request *request;
	struct stele_passage passage;
};

struct fault_queue {
	struct stele_queue base;
	struct stele_device *inner;
	struct stele_queue *below;
	struct stele_fault_plan *plan;
	struct slot *slots;
	struct stele_request_list free, delayed; /* shadows */
	struct stele_request_list done;          /* requests */
	unsigned int below_count;
	int poll_fd, event_fd; /* -1 until asked for */
	bool signalled;
	bool broken;
};

static struct slot *slot_of(struct stele_request *shadow)
{
	return shadow->user;
}

/* ---- event descriptor ---------------------------------------------------- */

/* Readable: what is done, or delayed with nothing else to wait for. */
static void update_event(struct fault_queue *queue)
{
	bool wanted = queue->done.count ||
		      (queue->delayed.count && !queue->below_count);
	eventfd_t events;

	if (queue->event_fd < 0 || wanted == queue->signalled)
		return;
	if (wanted)
		eventfd_write(queue->event_fd, 1);
	else
		eventfd_read(queue->event_fd, &events);
	queue->signalled = wanted;
}

static int watch(int poll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (fd < 0)
		return fd;
	return epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void close_events(struct fault_queue *queue)
{
	if (queue->event_fd >= 0)
		close(queue->event_fd);
	if (queue->poll_fd >= 0)
		close(queue->poll_fd);
	queue->event_fd = -1;
	queue->poll_fd = -1;
}

static int fault_event_fd(struct stele_queue *base)
{
	struct fault_queue *queue = (struct fault_queue *)base;
	int rc;

	if (queue->poll_fd >= 0)
		return queue->poll_fd;
	queue->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	queue->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = queue->poll_fd < 0 || queue->event_fd < 0 ? -errno : 0;
	if (!rc)
		rc = watch(queue->poll_fd, queue->event_fd);
	if (!rc)
		rc = watch(queue->poll_fd,
			   queue->below->ops->event_fd(queue->below));
	if (rc) {
		close_events(queue);
		return rc;
	}
	update_event(queue);
	return queue->poll_fd;
}

/* ---- start --------------------------------------------------------------- */

/* Can the device below do it itself, with another offset or size? */
static bool goes_below(const struct stele_passage *p, uint32_t block)
{
	switch (p->fault) {
	case STELE_FAULT_FAIL:
	case STELE_FAULT_LOSE:
	case STELE_FAULT_TEAR:
		return false;
	case STELE_FAULT_SHORTEN:
		return !p->data || (p->arg && is_aligned(p->arg, block));
	default:
		return true;
	}
}

static int start_below(struct fault_queue *queue, struct stele_request *request,
		       const struct stele_passage *passage)
{
	struct stele_request *shadow = stele_request_pop(&queue->free);
	struct slot *slot = slot_of(shadow);
	int rc;

	slot->request = request;
	slot->passage = *passage;
	*shadow = *request;
	shadow->user = slot;
	if (passage->fault == STELE_FAULT_BREAK)
		queue->broken = true;
	if (passage->fault == STELE_FAULT_MISDIRECT)
		shadow->offset += passage->arg;
	if (passage->fault == STELE_FAULT_SHORTEN && request->data &&
	    passage->arg < passage->size)
		shadow->size = request->done + (uint32_t)passage->arg;
	rc = queue->below->ops->start(queue->below, shadow);
	if (rc)
		stele_request_push(&queue->free, shadow);
	else
		queue->below_count++;
	return rc;
}

static int fault_start(struct stele_queue *base, struct stele_request *request)
{
	struct fault_queue *queue = (struct fault_queue *)base;
	char *data = request->data;
	struct stele_passage passage = {
		.op = request->op,
		.data = data ? data + request->done : NULL,
		.offset = request->offset + request->done,
		.size = request->size - request->done,
		.queued = true,
	};
	int rc;

	rc = stele_fault_plan_enter(queue->plan, &passage);
	if (rc)
		return rc;
	if (goes_below(&passage, queue->inner->limits.logical_block)) {
		rc = start_below(queue, request, &passage);
	} else {
		request->status =
			(int)stele_fault_perform(queue->inner, &passage);
		stele_request_push(&queue->done, request);
	}
	update_event(queue);
	return rc;
}

/* ---- wait ---------------------------------------------------------------- */

static void release_slot(struct fault_queue *queue,
			 struct stele_request *shadow)
{
	stele_request_push(&queue->done, slot_of(shadow)->request);
	stele_request_push(&queue->free, shadow);
}

/* Fetch what is complete below; the delayed do not count as done yet. */
static int collect(struct fault_queue *queue, unsigned int min_wait)
{
	struct stele_request *shadows[COLLECT_BATCH];
	ssize_t res[COLLECT_BATCH];
	int n;

	n = queue->below->ops->wait(queue->below, min_wait, shadows, res,
				    COLLECT_BATCH);
	for (int i = 0; i < n; i++) {
		struct slot *slot = slot_of(shadows[i]);

		queue->below_count--;
		slot->request->status =
			(int)stele_fault_finish(&slot->passage, res[i]);
		if (slot->passage.fault == STELE_FAULT_DELAY)
			stele_request_push(&queue->delayed, shadows[i]);
		else
			release_slot(queue, shadows[i]);
	}
	return n;
}

static void release_due(struct fault_queue *queue)
{
	uint64_t count = stele_fault_plan_count(queue->plan);

	for (unsigned int n = queue->delayed.count; n; n--) {
		struct stele_request *shadow =
			stele_request_pop(&queue->delayed);
		const struct stele_passage *p = &slot_of(shadow)->passage;

		if (count - p->number - 1 >= p->arg)
			release_slot(queue, shadow);
		else
			stele_request_push(&queue->delayed, shadow);
	}
}

static int gather(struct fault_queue *queue, unsigned int min_wait)
{
	int n;

	do {
		n = collect(queue, 0);
	} while (n == COLLECT_BATCH);
	release_due(queue);
	while (n >= 0 && queue->done.count < min_wait) {
		if (queue->below_count)
			n = collect(queue, 1);
		else
			release_slot(queue, stele_request_pop(&queue->delayed));
		release_due(queue);
	}
	if (queue->event_fd >= 0 && !queue->done.count && !queue->below_count &&
	    queue->delayed.count)
		release_slot(queue, stele_request_pop(&queue->delayed));
	return n < 0 ? n : 0;
}

static int fault_wait(struct stele_queue *base, unsigned int min_wait,
		      struct stele_request **done, ssize_t *res,
		      unsigned int max)
{
	struct fault_queue *queue = (struct fault_queue *)base;
	int rc, count;

	if (queue->broken)
		return -EIO;
	if (!max)
		return queue->below->ops->wait(queue->below, 0, NULL, NULL, 0);
	rc = gather(queue, min_wait);
	if (rc)
		return rc;
	count = stele_request_drain(&queue->done, done, res, max);
	update_event(queue);
	base->stats.enters = queue->below->stats.enters;
	base->stats.registered = queue->below->stats.registered;
	return count;
}

/* ---- open and close ------------------------------------------------------ */

/* What is in flight below is counted here. */
static int fault_adopt(struct stele_queue *base)
{
	struct fault_queue *queue = (struct fault_queue *)base;

	queue->below->in_flight = queue->below_count;
	return stele_queue_claim(queue->below);
}

static void fault_close(struct stele_queue *base, bool forked)
{
	struct fault_queue *queue = (struct fault_queue *)base;

	(void)forked; /* the queue below sees that itself */
	if (queue->below) {
		queue->below->in_flight = queue->below_count;
		if (stele_queue_close(queue->below))
			return;
	}
	close_events(queue);
	free(queue->slots);
	free(queue);
}

static int fault_attach(struct stele_queue *base, void *memory, size_t size)
{
	return stele_queue_register(((struct fault_queue *)base)->below, memory,
				    size);
}

static void fault_describe(const struct stele_queue *base, char *text,
			   size_t size)
{
	const struct fault_queue *queue = (const struct fault_queue *)base;
	int n = snprintf(text, size, "fault over ");

	if (n > 0 && (size_t)n < size)
		stele_queue_describe(queue->below, text + n, size - (size_t)n);
}

static const struct stele_queue_ops fault_queue_ops = {
	.start = fault_start,
	.wait = fault_wait,
	.event_fd = fault_event_fd,
	.close = fault_close,
	.adopt = fault_adopt,
	.attach = fault_attach,
	.describe = fault_describe,
};

int stele_fault_open_queue(struct stele_device *inner,
			   struct stele_fault_plan *plan, unsigned int depth,
			   void *arena, size_t arena_size,
			   struct stele_queue **out)
{
	struct fault_queue *queue = calloc(1, sizeof(*queue));
	int rc = -ENOMEM;

	if (!queue)
		return -ENOMEM;
	queue->base.ops = &fault_queue_ops;
	queue->inner = inner;
	queue->plan = plan;
	queue->event_fd = -1;
	queue->poll_fd = -1;
	queue->slots = calloc(depth, sizeof(*queue->slots));
	if (queue->slots)
		rc = stele_queue_open(inner, depth, arena, arena_size,
				      &queue->below);
	if (rc) {
		fault_close(&queue->base, false);
		return rc;
	}
	for (unsigned int i = 0; i < depth; i++) {
		queue->slots[i].shadow.user = &queue->slots[i];
		stele_request_push(&queue->free, &queue->slots[i].shadow);
	}
	*out = &queue->base;
	return 0;
}
