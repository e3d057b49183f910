/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.h - bring slots into memory, as many requests at a time as depth.h admits
 *
 * A *ticket* is one slot on its way: the blocks that it touches are read into
 * its memory, in parts of at most transfer_max, all in flight together. It
 * arrives when all its parts are there, or one has failed and the others are
 * done with its memory. What is in the memory is not looked at here. Slots that lie
 * close together may be fetched by one of their tickets: the others ride with it.
 *
 *	idle -> waiting -> (parts in flight) -> arrived -> idle
 *
 * Tickets and memory are the caller's; nothing is allocated after init.
 */
#ifndef STELE_READ_FETCH_H
#define STELE_READ_FETCH_H

#include "lib/base/fifo.h"
#include "lib/device/device.h"
#include "lib/read/check.h"
#include "lib/read/depth.h"

struct stele_ticket {
	struct stele_slot slot;
	char *memory;	 /* of slot.read_size bytes */
	uint64_t size;	 /* bytes to fetch: those, and its riders' behind them */
	struct stele_ticket *rider; /* that arrives with this one, in its memory */
	int status;	 /* of the transfer */
	bool waiting;	 /* not all parts were issued */
	unsigned int in_flight; /* parts */
	uint64_t issued; /* bytes */
	uint64_t requests, bytes; /* issued, each time that it is fetched */
	struct stele_ticket *next;

	/* Nothing to fetch.c: the reader's. */
	uint64_t tag;
	uint64_t submitted; /* ns */
	void *extent;	    /* of the arena, that memory lies in; NULL: the caller's */
	bool shared;	    /* with others */
	struct stele_verdict verdict;
};

struct stele_ticket_list STELE_FIFO(stele_ticket);

struct stele_fetch_part;

struct stele_fetch {
	struct stele_queue *queue;
	uint32_t transfer_max;
	unsigned int parts_count; /* most requests that can be in flight */
	unsigned int parts_used;  /* of them that ever were */
	unsigned int in_flight, in_flight_peak; /* requests */
	unsigned int unpushed; /* of these: issued since the queue was last reaped */
	struct stele_depth depth;
	struct stele_histogram *latency; /* of requests */
	uint64_t now; /* ns, of the last pump */
	struct stele_fetch_part *parts, *idle_parts;
	struct stele_request **done; /* scratch of pump */
	struct stele_ticket_list waiting, arrived;
	uint64_t requests, bytes; /* issued so far */
	stele_trace_fn trace; /* may be NULL */
	void *trace_user;
};

/*
 * With a group (NULL: none), the queue joins it, and nothing is pushed but by pumps and
 * stele_queue_gather(). Return: 0; -ENOMEM; errors of stele_queue_open().
 */
int stele_fetch_init(struct stele_fetch *fetch, struct stele_device *dev,
		     const struct stele_depth_config *depth,
		     struct stele_queue_group *group, void *arena,
		     size_t arena_size);
/* Monotonic nanoseconds: the clock of all that a reader measures. */
uint64_t stele_fetch_clock(void);
/*
 * Waits for what is in flight. Idempotent. False: the queue broke with requests in
 * flight, or they are another thread's. What they write to must stay, for good: the queue
 * does (it leaks), and the caller has to see to the memory of its tickets.
 */
bool stele_fetch_release(struct stele_fetch *fetch);

/*
 * Slot and memory are set; it starts with the next pump. With a status it
 * arrives at once, and nothing is read.
 */
void stele_fetch_add(struct stele_fetch *fetch, struct stele_ticket *ticket,
		     int status);

/*
 * Issue what there is room for. The kernel hears of it at once, unless it has plenty
 * to do: then with the next pump, in the system call that waits.
 * Return: as pump.
 */
int stele_fetch_issue(struct stele_fetch *fetch);
/*
 * Issue what there is room for, and look for what has completed; wait until
 * `wait` requests have (at most those in flight; fewer while tickets wait).
 * Return: 0; -EIO, -EOWNERDEAD: the queue is broken.
 */
int stele_fetch_pump(struct stele_fetch *fetch, unsigned int wait);

#endif
