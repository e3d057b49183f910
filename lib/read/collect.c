/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect.c - what a reader hands out: samples that arrived and were checked
 *
 * Checks take as long as reads do on a fast device, so between them the queue is
 * looked after: what completed makes room for what waits. Where checkers do them,
 * the reader's thread sleeps with the device only while none of them has work, as
 * they are done sooner.
 */
#include <errno.h>
#include <limits.h>

#include "lib/base/error.h"

#include "lib/read/reader.h"

/* Bytes that are checked before the queue is looked at again. */
#define REFILL_SIZE (256u << 10)
/* Bytes of checksums that take no longer than to wake a thread, on a virtual machine. */
#define OWN_SIZE (512u << 10)

/* The first of what arrived, which is checked sooner than a thread that sleeps is awake. */
static struct stele_ticket_list own_share(struct stele_reader *r)
{
	struct stele_ticket_list own = {0};
	struct stele_ticket *ticket;
	uint64_t size = 0;

	while ((ticket = r->fetch.arrived.head)) {
		size += ticket->slot.read_size;
		if (size > OWN_SIZE)
			break;
		ticket = stele_fifo_pop(&r->fetch.arrived);
		stele_fifo_push(&own, ticket);
	}
	return own;
}

/* Have what arrived checked, where checkers do that; but for a share, rather than wait. */
static void exchange(struct stele_reader *r, bool wait)
{
	struct stele_ticket_list own = {0};

	if (!r->checkers)
		return;
	if (wait && !r->checked.head && r->shares)
		own = own_share(r);
	stele_checkers_exchange(r->checkers, &r->fetch.arrived, &r->checked,
				wait && !r->checked.head && !own.head);
	r->fetch.arrived = own;
}

/*
 * Wait until something can be handed out, and longer only for what is in the way of
 * `wanted` samples; 0: only look.
 */
static void gather(struct stele_reader *r, unsigned int wanted)
{
	bool ready = r->checked.head || r->fetch.arrived.head;

	if (r->checkers && stele_checkers_busy(r->checkers))
		ready = true;
	stele_reader_pump(r, ready ? 0 : wanted);
	exchange(r, wanted);
}

/* The next ticket that has been checked, or NULL. */
static struct stele_ticket *next_checked(struct stele_reader *r,
					 uint64_t *unattended)
{
	struct stele_ticket *ticket;

	ticket = stele_fifo_pop(&r->checked);
	if (ticket || (r->checkers && !r->shares))
		return ticket;
	ticket = stele_fifo_pop(&r->fetch.arrived);
	if (!ticket)
		return NULL;
	stele_ticket_check(&r->checker, ticket);
	*unattended += ticket->slot.read_size;
	if (!r->checkers && *unattended >= REFILL_SIZE && r->fetch.waiting.head) {
		stele_reader_pump(r, 0);
		*unattended = 0;
	}
	return ticket;
}

/* False: the sample is not finished, it is read again. */
static bool settle(struct stele_reader *r, struct stele_ticket *ticket,
		   struct stele_sample *sample)
{
	struct stele_verdict *verdict = &ticket->verdict;

	if (verdict->again) {
		verdict->again = false;
		stele_fetch_add(&r->fetch, ticket, 0);
		/* Now: the caller may wait for it with poll alone. */
		stele_reader_pump(r, 0);
		return false;
	}
	r->stats.reread += verdict->rereads;
	r->settled_reads += ticket->requests;
	r->settled_bytes += ticket->bytes;
	*sample = (struct stele_sample){.status = ticket->status};
	if (!ticket->status) {
		*sample = verdict->sample;
		sample->buffer = ticket->extent;
		sample->reader = ticket->extent ? r : NULL;
		sample->serial = r->serial;
	} else {
		stele_reader_give(r, ticket->extent);
		r->stats.failed++;
	}
	sample->id = ticket->slot.id;
	sample->tag = ticket->tag;
	r->stats.samples++;
	r->stats.bytes += sample->size;
	r->outstanding--;
	return true;
}

/* Up to `max` of what is there. Those tickets go to `settled`. */
static unsigned int hand_out(struct stele_reader *r,
			     struct stele_sample *samples, unsigned int max,
			     struct stele_ticket_list *settled)
{
	struct stele_ticket *ticket;
	uint64_t unattended = 0;
	unsigned int count = 0;

	while (count < max && (ticket = next_checked(r, &unattended))) {
		if (!settle(r, ticket, &samples[count]))
			continue;
		stele_fifo_push(settled, ticket);
		count++;
	}
	return count;
}

/* All are handed out at one time: when collect returns. */
static void finish(struct stele_reader *r, struct stele_ticket_list *settled)
{
	struct stele_ticket *ticket;
	uint64_t now;

	if (!settled->head)
		return;
	now = stele_fetch_clock();
	while ((ticket = stele_fifo_pop(settled))) {
		stele_histogram_record(r->latency, now - ticket->submitted);
		stele_fifo_push(&r->idle, ticket);
	}
}

static bool can_go_on(const struct stele_reader *r)
{
	return !r->broken ||
	       (r->checkers && stele_checkers_busy(r->checkers));
}

static int reader_collect(struct stele_reader *r, struct stele_sample *samples,
			  unsigned int max, unsigned int min)
{
	struct stele_ticket_list settled = {0};
	unsigned int count = 0;
	int err = stele_queue_claim(r->fetch.queue);

	if (err)
		return err;
	if (max > INT_MAX)
		max = INT_MAX;
	if (min > max)
		min = max;
	if (min > r->outstanding)
		min = r->outstanding;
	do {
		gather(r, min - count);
		count += hand_out(r, samples + count, max - count, &settled);
	} while (count < min && can_go_on(r));
	finish(r, &settled);
	stele_reader_update_event(r);
	return count ? (int)count : r->broken;
}

int stele_reader_collect(struct stele_reader *r, struct stele_sample *samples,
			 unsigned int max, unsigned int min)
{
	return STELE_CALL(reader_collect(r, samples, max, min),
			  "cannot collect samples");
}

void stele_reader_release(struct stele_reader *r, struct stele_sample *sample)
{
	if (sample->buffer &&
	    (sample->reader != r || !stele_reader_is_open(sample->serial)))
		return;
	if (!stele_reader_is_forked(r))
		stele_reader_give(r, sample->buffer);
	*sample = (struct stele_sample){
		.id = sample->id,
		.tag = sample->tag,
		.status = sample->status,
	};
}

unsigned int stele_reader_in_flight(const struct stele_reader *r)
{
	return stele_reader_is_forked(r) ? 0 : r->outstanding;
}
