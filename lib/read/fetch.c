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

#include "lib/read/fetch.h"

struct stele_fetch_part {
	struct stele_request request;
	struct stele_ticket *ticket;
	struct stele_fetch_part *next; /* idle ones */
};

void stele_ticket_push(struct stele_ticket_list *list,
		       struct stele_ticket *ticket)
{
	ticket->next = NULL;
	if (list->head)
		list->tail->next = ticket;
	else
		list->head = ticket;
	list->tail = ticket;
}

struct stele_ticket *stele_ticket_pop(struct stele_ticket_list *list)
{
	struct stele_ticket *ticket = list->head;

	if (ticket)
		list->head = ticket->next;
	return ticket;
}

static void part_idle(struct stele_fetch *f, struct stele_fetch_part *part)
{
	part->next = f->idle_parts;
	f->idle_parts = part;
}

int stele_fetch_init(struct stele_fetch *f, struct stele_device *dev,
		     unsigned int depth, void *arena, size_t arena_size)
{
	int err = -ENOMEM;

	*f = (struct stele_fetch){
		.transfer_max = dev->limits.transfer_max,
		.depth = depth,
	};
	f->parts = calloc(depth, sizeof(*f->parts));
	f->done = calloc(depth, sizeof(struct stele_request *));
	if (f->parts && f->done)
		err = stele_queue_open(dev, depth, arena, arena_size,
				       &f->queue);
	if (err) {
		stele_fetch_release(f);
		return err;
	}
	for (unsigned int i = depth; i-- > 0;)
		part_idle(f, &f->parts[i]);
	return 0;
}

void stele_fetch_release(struct stele_fetch *f)
{
	stele_queue_close(f->queue);
	free(f->parts);
	free(f->done);
	*f = (struct stele_fetch){0};
}

void stele_fetch_add(struct stele_fetch *f, struct stele_ticket *ticket,
		     int status)
{
	ticket->status = status;
	ticket->issued = 0;
	ticket->in_flight = 0;
	ticket->waiting = !status;
	stele_ticket_push(status ? &f->arrived : &f->waiting, ticket);
}

/* Return: 0; -EAGAIN (no room now); or the ticket cannot be read. */
static int issue_part(struct stele_fetch *f, struct stele_ticket *ticket)
{
	struct stele_fetch_part *part = f->idle_parts;
	uint64_t size = ticket->slot.read_size - ticket->issued;
	int err;

	if (!part)
		return -EAGAIN;
	if (size > f->transfer_max)
		size = f->transfer_max;
	part->ticket = ticket;
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
	f->in_flight++;
	f->requests++;
	f->bytes += size;
	ticket->in_flight++;
	ticket->issued += size;
	return 0;
}

static void issue_waiting(struct stele_fetch *f)
{
	struct stele_ticket *ticket;

	while ((ticket = f->waiting.head)) {
		while (!ticket->status &&
		       ticket->issued < ticket->slot.read_size) {
			int err = issue_part(f, ticket);

			if (err == -EAGAIN)
				return;
			ticket->status = err;
		}
		stele_ticket_pop(&f->waiting);
		ticket->waiting = false;
		if (!ticket->in_flight)
			stele_ticket_push(&f->arrived, ticket);
	}
}

static void part_done(struct stele_fetch *f, struct stele_fetch_part *part)
{
	struct stele_ticket *ticket = part->ticket;

	if (part->request.status && !ticket->status)
		ticket->status = part->request.status;
	f->in_flight--;
	part_idle(f, part);
	if (!--ticket->in_flight && !ticket->waiting)
		stele_ticket_push(&f->arrived, ticket);
}

int stele_fetch_pump(struct stele_fetch *f, unsigned int wait)
{
	int count;

	issue_waiting(f);
	/* With others waiting the device must not run dry. */
	if (f->waiting.head && wait > f->depth / 4 + 1)
		wait = f->depth / 4 + 1;
	while (f->in_flight) {
		count = stele_queue_reap(f->queue, f->done, f->depth, wait);
		if (count < 0)
			return count;
		for (int i = 0; i < count; i++)
			part_done(f, f->done[i]->user);
		if (!count || !f->waiting.head)
			break;
		/* Once more: only a reap hands to the kernel what was issued. */
		issue_waiting(f);
		wait = 0;
	}
	return 0;
}
