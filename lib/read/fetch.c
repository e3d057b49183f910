/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.c - parts of tickets, first come first served
 *
 * There are as many parts as requests may be in flight, so an idle part is the
 * right to issue one. A ticket whose transfer failed stays until its last part
 * is reaped: until then the kernel may write to its memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "lib/read/fetch.h"

#define NS_PER_SECOND UINT64_C(1000000000)
/* This share of what is in flight may wait for a system call that is made anyway. */
#define UNPUSHED_SHARE 8u

struct stele_fetch_part {
	struct stele_request request;
	struct stele_ticket *ticket;
	struct stele_fetch_part *next; /* idle ones */
	uint64_t issued; /* ns */
};

/* One that was used before, if there is: its memory has been touched. */
static struct stele_fetch_part *idle_part(struct stele_fetch *f)
{
	if (!f->idle_parts && f->parts_used < f->parts_count)
		f->idle_parts = &f->parts[f->parts_used++];
	return f->idle_parts;
}

static void part_idle(struct stele_fetch *f, struct stele_fetch_part *part)
{
	part->next = f->idle_parts;
	f->idle_parts = part;
}

uint64_t stele_fetch_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

int stele_fetch_init(struct stele_fetch *f, struct stele_device *dev,
		     const struct stele_depth_config *config,
		     struct stele_queue_group *group, void *arena,
		     size_t arena_size)
{
	unsigned int depth = config->depth_max;
	int err = -ENOMEM;

	*f = (struct stele_fetch){
		.transfer_max = dev->limits.transfer_max,
		.parts_count = depth,
	};
	stele_depth_init(&f->depth, config);
	f->parts = calloc(depth, sizeof(*f->parts));
	f->done = calloc(depth, sizeof(struct stele_request *));
	f->latency = stele_histogram_new();
	if (f->parts && f->done && f->latency)
		err = group ? stele_queue_open_in(dev, depth, group, &f->queue)
			    : stele_queue_open(dev, depth, arena, arena_size,
					       &f->queue);
	if (err) {
		stele_fetch_release(f);
		return err;
	}
	return 0;
}

bool stele_fetch_release(struct stele_fetch *f)
{
	bool drained = stele_queue_close(f->queue) == 0;

	free(f->parts);
	stele_histogram_free(f->latency);
	free(f->done);
	*f = (struct stele_fetch){0};
	return drained;
}

/* With all that ride with it. */
static void arrive(struct stele_fetch *f, struct stele_ticket *ticket)
{
	const int status = ticket->status;

	while (ticket) {
		struct stele_ticket *rider = ticket->rider;

		ticket->rider = NULL;
		ticket->status = status;
		stele_fifo_push(&f->arrived, ticket);
		ticket = rider;
	}
}

void stele_fetch_add(struct stele_fetch *f, struct stele_ticket *ticket,
		     int status)
{
	ticket->status = status;
	ticket->issued = 0;
	ticket->in_flight = 0;
	ticket->waiting = !status;
	if (status)
		arrive(f, ticket);
	else
		stele_fifo_push(&f->waiting, ticket);
}

/* Return: 0; -EAGAIN (no room now); or the ticket cannot be read. */
static int issue_part(struct stele_fetch *f, struct stele_ticket *ticket)
{
	struct stele_fetch_part *part = idle_part(f);
	uint64_t size = ticket->size - ticket->issued;
	int err;

	if (size > f->transfer_max)
		size = f->transfer_max;
	if (!part || !stele_depth_admits(&f->depth, (uint32_t)size))
		return -EAGAIN;
	part->ticket = ticket;
	part->issued = f->now;
	part->request = (struct stele_request){
		.op = STELE_OP_READ,
		.data = ticket->memory + ticket->issued,
		.offset = ticket->slot.read_offset + ticket->issued,
		.size = (uint32_t)size,
		.user = part,
	};
	err = stele_queue_submit(f->queue, &part->request);
	if (err)
		return err;
	f->idle_parts = part->next;
	stele_depth_issued(&f->depth, (uint32_t)size, f->now);
	if (f->trace)
		f->trace(f->trace_user, f->now, part->request.offset, (uint32_t)size);
	if (++f->in_flight > f->in_flight_peak)
		f->in_flight_peak = f->in_flight;
	f->unpushed++;
	f->requests++;
	f->bytes += size;
	ticket->in_flight++;
	ticket->requests++;
	ticket->bytes += size;
	ticket->issued += size;
	return 0;
}

static void issue_waiting(struct stele_fetch *f)
{
	struct stele_ticket *ticket;

	while ((ticket = f->waiting.head)) {
		while (!ticket->status &&
		       ticket->issued < ticket->size) {
			int err = issue_part(f, ticket);

			if (err == -EAGAIN)
				return;
			ticket->status = err;
		}
		stele_fifo_pop(&f->waiting);
		ticket->waiting = false;
		if (!ticket->in_flight)
			arrive(f, ticket);
	}
}

static void part_done(struct stele_fetch *f, struct stele_fetch_part *part)
{
	struct stele_ticket *ticket = part->ticket;

	stele_depth_completed(&f->depth, part->request.size, part->issued,
			      f->now, part->request.status, !f->waiting.head);
	stele_histogram_record(f->latency, f->now - part->issued);
	if (part->request.status && !ticket->status)
		ticket->status = part->request.status;
	f->in_flight--;
	part_idle(f, part);
	if (!--ticket->in_flight && !ticket->waiting)
		arrive(f, ticket);
}

/* Only a reap hands to the kernel what was issued. Return: completions seen; -errno. */
static int reap(struct stele_fetch *f, unsigned int wait)
{
	int count = stele_queue_reap(f->queue, f->done, f->parts_count, wait);

	if (count < 0)
		return count;
	f->unpushed = 0;
	if (count)
		f->now = stele_fetch_clock();
	for (int i = 0; i < count; i++)
		part_done(f, f->done[i]->user);
	return count;
}

/* Whoever waits for the device waits for some of what is pushed. */
static bool must_push(const struct stele_fetch *f)
{
	return !f->queue->grouped && f->unpushed &&
	       f->unpushed * UNPUSHED_SHARE >= f->in_flight;
}

int stele_fetch_issue(struct stele_fetch *f)
{
	int count = 0;

	if (f->waiting.head) {
		f->now = stele_fetch_clock();
		issue_waiting(f);
	}
	/* What has completed by now may make room for more. */
	while (count >= 0 && must_push(f)) {
		count = reap(f, 0);
		issue_waiting(f);
	}
	return count < 0 ? count : 0;
}

int stele_fetch_pump(struct stele_fetch *f, unsigned int wait)
{
	int count;

	if (f->waiting.head) {
		f->now = stele_fetch_clock();
		issue_waiting(f);
	}
	/* The device must not run dry, nor the caller without work for long. */
	if (wait > f->in_flight / 4 + 1)
		wait = f->in_flight / 4 + 1;
	if (!f->in_flight)
		return 0;
	count = reap(f, wait);
	if (count < 0)
		return count;
	issue_waiting(f);
	return must_push(f) ? stele_fetch_issue(f) : 0;
}
