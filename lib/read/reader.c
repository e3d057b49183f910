/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - many samples in flight, for one thread: open, submit, close
 *
 * Submit takes a ticket and an extent of the arena for each sample; collect.c
 * hands it out; release gives the extent back. There are twice as many tickets
 * about as device reads may be in flight, so that the device has work while checksums
 * are computed, and no more: what waits in memory grows old. All memory is there
 * from the start, but for a sample that is larger than the arena: it gets
 * its own, and until that is released no other such sample is taken.
 */
#include "lib/read/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/base/workers.h"

#define ARENA_SIZE_DEFAULT (UINT64_C(64) << 20)
#define ARENA_SIZE_MAX	   (UINT64_C(1) << 30) /* unless asked for */
#define DEPTH_MAX_DEFAULT  1024u /* unless asked for */
/* Where a thread has several readers. */
#define DEPTH_MIN_SHARED 4u
#define RING_SHARE (1.0 / 16)
/* Where neighbours are read together: bytes of one read, samples outstanding. */
#define MERGE_SIZE_MAX (256u << 10)
#define MERGE_TICKETS  16384u
/* Open at once, whose samples know when they are closed. */
#define READERS_MAX 4096u
/* Tickets that a thread has beside what is in flight: one in hand, one to come. */
#define TICKETS_PER_THREAD 2u

bool stele_reader_is_forked(const struct stele_reader *r)
{
	return r->fork_count != stele_fork_count();
}

/* ---- serials ------------------------------------------------------------- */

/*
 * Samples can outlive their reader, and must not look at it then. A serial is an index into
 * this table and what stands there while the reader is open: odd. Index 0 is not used.
 */
static _Atomic uint32_t open_readers[READERS_MAX];

static uint64_t take_serial(void)
{
	static _Atomic uint32_t next;

	for (uint32_t i = 0; i < READERS_MAX; i++) {
		const uint32_t index = next++ % READERS_MAX;
		uint32_t turn = open_readers[index];

		if (index && !(turn & 1) &&
		    atomic_compare_exchange_strong(&open_readers[index], &turn,
						   turn + 1))
			return (uint64_t)(turn + 1) << 32 | index;
	}
	return 0;
}

bool stele_reader_is_open(uint64_t serial)
{
	return !serial || open_readers[(uint32_t)serial % READERS_MAX] == serial >> 32;
}

static void drop_serial(uint64_t serial)
{
	if (serial)
		open_readers[(uint32_t)serial]++;
}

/* ---- open and close ------------------------------------------------------ */

static uint64_t arena_size(const struct stele_dataset *ds, uint64_t wanted)
{
	uint64_t largest;

	if (wanted)
		return wanted;
	/* Blocks at both ends may be shared with neighbours. */
	if (!checked_add(ds->slot_size_max,
			 2 * (uint64_t)ds->image.dev->limits.logical_block,
			 &largest) ||
	    largest < ARENA_SIZE_DEFAULT || largest > ARENA_SIZE_MAX)
		return ARENA_SIZE_DEFAULT;
	return largest;
}

static uint32_t page_size(const struct stele_limits *limits)
{
	uint32_t size = STELE_ARENA_PAGE_SIZE;

	if (limits->logical_block > size)
		size = limits->logical_block;
	return limits->memory_align > size ? limits->memory_align : size;
}

static struct stele_depth_config depth_config(const struct stele_reader *r,
					      uint32_t wanted)
{
	uint32_t most = r->ds->image.dev->limits.depth_max;
	double start;

	if (!most || most > DEPTH_MAX_DEFAULT)
		most = DEPTH_MAX_DEFAULT;
	if (most * r->share > DEPTH_MIN_SHARED)
		most = (uint32_t)(most * r->share);
	else if (most > DEPTH_MIN_SHARED)
		most = DEPTH_MIN_SHARED;
	start = STELE_DEPTH_DEFAULT * r->share;
	return (struct stele_depth_config){
		.start = start > 1 ? (uint32_t)start : 1,
		.pinned = wanted,
		.depth_max = wanted ? wanted : most,
		.bytes_max = r->arena.size / 2,
		.now = stele_fetch_clock(),
	};
}

/* Unless they were asked for, the reader's thread can do without. */
static int open_checkers(struct stele_reader *r, enum stele_verify verify,
			 uint32_t wanted)
{
	unsigned int count = wanted;
	int err;

	if (!count && verify == STELE_VERIFY_DIGEST)
		count = stele_processors();
	if (!count || verify == STELE_VERIFY_NONE)
		return 0;
	err = stele_checkers_open(r->ds, verify, count, &r->checkers);
	return wanted ? err : 0;
}

static int allocate(struct stele_reader *r, struct stele_queue_group *group,
		    uint64_t arena, uint32_t depth)
{
	struct stele_device *dev = r->ds->image.dev;
	struct stele_depth_config config;
	unsigned int threads;
	int err;

	err = stele_arena_init(&r->arena, arena, page_size(&dev->limits));
	if (err)
		return err;
	threads = r->checkers ? stele_checkers_count(r->checkers) : 0;
	config = depth_config(r, depth);
	r->ticket_count = 2 * config.depth_max + TICKETS_PER_THREAD * threads;
	if (r->merge_gap && r->ticket_count < MERGE_TICKETS)
		r->ticket_count = MERGE_TICKETS;
	r->tickets = calloc(r->ticket_count, sizeof(*r->tickets));
	r->latency = stele_histogram_new();
	if (!r->tickets || !r->latency)
		return -ENOMEM;
	/* Of many small ones each would pin pages that it hardly uses. */
	return stele_fetch_init(&r->fetch, dev, &config,
				r->share < RING_SHARE ? group : NULL,
				r->arena.memory, r->arena.size);
}

static int check_options(const struct stele_reader_opts *opts,
			 const struct stele_log *log)
{
	const struct stele_option limits[] = {
		{"arena_size", opts->arena_size, STELE_ARENA_SIZE_MAX},
		{"verify", opts->verify, STELE_VERIFY_DIGEST},
		{"depth", opts->depth, STELE_QUEUE_DEPTH_MAX},
		{"check_threads", opts->check_threads, STELE_CHECKERS_MAX},
		{"merge_gap", opts->merge_gap, MERGE_SIZE_MAX},
		{"reserved", opts->reserved, 0},
	};

	return stele_options_check(limits, sizeof(limits) / sizeof(*limits),
				   log);
}

int stele_reader_open_share(struct stele_dataset *ds,
			    const struct stele_reader_opts *opts, double share,
			    struct stele_queue_group *group,
			    struct stele_reader **out)
{
	struct stele_reader_opts known;
	enum stele_verify verify;
	struct stele_reader *r;
	int err;

	err = stele_options_copy(opts, &known, sizeof(known), &ds->image.log);
	if (!err)
		err = check_options(&known, &ds->image.log);
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->ds = ds;
	r->merge_gap = known.merge_gap;
	r->share = share;
	stele_dataset_enter(ds);
	r->poll_fd = r->event_fd = -1;
	r->fork_count = stele_fork_count();
	r->serial = take_serial();
	verify = stele_dataset_verify(ds, known.verify);
	err = open_checkers(r, verify, known.check_threads);
	r->shares = r->checkers && verify != STELE_VERIFY_DIGEST;
	if (!err && (!r->checkers || r->shares))
		err = stele_checker_init(&r->checker, ds, verify, 1);
	if (!err)
		err = allocate(r, group, arena_size(ds, known.arena_size),
			       known.depth);
	r->fetch.trace = known.trace;
	r->fetch.trace_user = known.trace_user;
	if (err) {
		stele_reader_close(r);
		return err;
	}
	*out = r;
	return 0;
}

static int reader_open(struct stele_dataset *ds,
		       const struct stele_reader_opts *opts,
		       struct stele_reader **out)
{
	return stele_reader_open_share(ds, opts, 1, NULL, out);
}

int stele_reader_open(struct stele_dataset *ds,
		      const struct stele_reader_opts *opts,
		      struct stele_reader **out)
{
	return STELE_CALL(reader_open(ds, opts, out),
			  "cannot open a reader");
}

/* What may be written to yet, if nobody can tell when that ends, leaks. */
static void release_memory(struct stele_reader *r, bool forked)
{
	/* A child can't know how far a checker had come with it. */
	for (unsigned int i = 0; !forked && i < r->tickets_used; i++)
		if (r->tickets[i].verdict.first) /* being read again */
			free(r->tickets[i].memory);
	stele_pages_unmap(&r->large, forked);
	stele_arena_release(&r->arena, forked);
	free(r->tickets);
}

void stele_reader_close(struct stele_reader *r)
{
	bool forked, drained = true;

	if (!r)
		return;
	forked = stele_reader_is_forked(r);
	/* First of all: until it is drained, the kernel writes to the rest. */
	if (r->fetch.queue)
		drained = stele_fetch_release(&r->fetch);
	stele_checkers_close(r->checkers, forked);
	if (r->poll_fd >= 0)
		close(r->poll_fd);
	if (r->event_fd >= 0)
		close(r->event_fd);
	stele_checker_release(&r->checker);
	stele_histogram_free(r->latency);
	if (drained)
		release_memory(r, forked);
	stele_dataset_leave(r->ds);
	drop_serial(r->serial);
	free(r);
}

/* ---- submit --------------------------------------------------------------- */

void stele_reader_pump(struct stele_reader *r, unsigned int wait)
{
	int err = r->broken ? 0 : stele_fetch_pump(&r->fetch, wait);

	if (err)
		r->broken = err;
}

static void issue(struct stele_reader *r)
{
	int err = r->broken ? 0 : stele_fetch_issue(&r->fetch);

	if (err)
		r->broken = err;
}

/* How many samples may be submitted beside those that are outstanding. */
static unsigned int room(const struct stele_reader *r)
{
	unsigned int most = 2 * stele_depth_window(&r->fetch.depth);

	if (r->checkers)
		most += TICKETS_PER_THREAD * stele_checkers_count(r->checkers);
	if (most > r->ticket_count || r->merge_gap)
		most = r->ticket_count;
	return r->outstanding < most ? most - r->outstanding : 0;
}

/* One that was used before, if there is: its memory has been touched. */
static struct stele_ticket *idle_ticket(struct stele_reader *r)
{
	struct stele_ticket *ticket = stele_fifo_pop(&r->idle);

	return ticket ? ticket : &r->tickets[r->tickets_used++];
}

/* The idle ticket, for this sample. */
static struct stele_ticket *take_ticket(struct stele_reader *r,
					const struct stele_slot *slot,
					uint64_t tag)
{
	struct stele_ticket *ticket = idle_ticket(r);

	ticket->slot = *slot;
	ticket->size = slot->read_size;
	ticket->memory = NULL;
	ticket->extent = NULL;
	ticket->shared = false;
	ticket->rider = NULL;
	ticket->tag = tag;
	ticket->submitted = r->fetch.now;
	ticket->verdict = (struct stele_verdict){0};
	ticket->requests = ticket->bytes = 0;
	r->outstanding++;
	return ticket;
}

/* Return: 0; -EAGAIN (no room now); -ENOMEM. */
static int take_memory(struct stele_reader *r, uint64_t size, char **memory)
{
	int err;

	if (size <= r->arena.size) {
		*memory = stele_arena_take(&r->arena, size);
		return *memory ? 0 : -EAGAIN;
	}
	if (r->large.memory)
		return -EAGAIN;
	err = stele_pages_map(&r->large, size);
	*memory = r->large.memory;
	return err;
}

void stele_reader_give(struct stele_reader *r, const void *memory)
{
	if (memory && memory == r->large.memory)
		stele_pages_unmap(&r->large, false);
	else
		stele_arena_give(&r->arena, memory);
}

/*
 * May the slot be read together with those that lie in [begin, *end)? Then that
 * becomes the end of all.
 */
static bool is_neighbour(const struct stele_reader *r, uint64_t begin,
			 const struct stele_slot *slot, uint64_t *end)
{
	const uint64_t slot_end = slot->read_offset + slot->read_size;
	uint64_t most = r->fetch.transfer_max;

	if (most > MERGE_SIZE_MAX)
		most = MERGE_SIZE_MAX;
	if (most > r->arena.size)
		most = r->arena.size;
	if (slot->read_offset < begin || slot_end - begin > most)
		return false;
	if (slot->read_offset > *end && slot->read_offset - *end > r->merge_gap)
		return false;
	if (slot_end > *end)
		*end = slot_end;
	return true;
}

/* How many of these one read brings, at least 1. `end`: of that read. */
static unsigned int count_neighbours(const struct stele_reader *r,
				     const struct stele_slot *first,
				     const uint64_t *ids, unsigned int count,
				     uint64_t *end)
{
	struct stele_slot slot;
	unsigned int n = 1;

	*end = first->read_offset + first->read_size;
	while (r->merge_gap && n < count &&
	       stele_slot_locate(r->ds, ids[n], &slot) == 0 &&
	       is_neighbour(r, first->read_offset, &slot, end))
		n++;
	return n;
}

/* All that ride with a ticket have their part of its memory. */
static void add_riders(struct stele_reader *r, struct stele_ticket *first,
		       const uint64_t *ids, const uint64_t *tags,
		       unsigned int count)
{
	struct stele_ticket *last = first;
	struct stele_slot slot;

	first->shared = count > 0;
	if (count)
		stele_arena_share(&r->arena, first->extent, count);
	for (unsigned int i = 0; i < count; i++) {
		stele_slot_locate(r->ds, ids[i], &slot);
		last->rider = take_ticket(r, &slot, tags ? tags[i] : 0);
		last = last->rider;
		last->memory = first->memory +
			       (slot.read_offset - first->slot.read_offset);
		last->extent = first->extent;
		last->shared = true;
		last->issued = last->in_flight = 0;
		last->waiting = false;
	}
}

/* As many as one read brings. Return: how many; 0: no room now. */
static unsigned int submit_some(struct stele_reader *r, const uint64_t *ids,
				const uint64_t *tags, unsigned int count)
{
	struct stele_ticket *ticket;
	struct stele_slot slot;
	char *memory = NULL;
	unsigned int n = 1;
	uint64_t end = 0;
	int status = stele_slot_locate(r->ds, ids[0], &slot);

	if (!status) {
		n = count_neighbours(r, &slot, ids, count, &end);
		status = take_memory(r, end - slot.read_offset, &memory);
	}
	if (status == -EAGAIN)
		return 0;
	ticket = take_ticket(r, &slot, tags ? tags[0] : 0);
	ticket->memory = ticket->extent = memory;
	if (status) {
		n = 1;
	} else {
		ticket->size = end - slot.read_offset;
		add_riders(r, ticket, ids + 1, tags ? tags + 1 : NULL, n - 1);
	}
	stele_fetch_add(&r->fetch, ticket, status);
	return n;
}

static int reader_submit(struct stele_reader *r, const uint64_t *ids,
			 const uint64_t *tags, unsigned int count)
{
	unsigned int taken = 0, more = 1, most;
	int err = stele_queue_claim(r->fetch.queue);

	if (err)
		return err;
	most = room(r);
	if (count > most)
		count = most;
	if (!count)
		return 0;
	r->fetch.now = stele_fetch_clock();
	for (; more && taken < count; taken += more)
		more = submit_some(r, ids + taken, tags ? tags + taken : NULL,
				   count - taken);
	if (taken)
		issue(r);
	stele_reader_update_event(r);
	return (int)taken;
}

int stele_reader_submit(struct stele_reader *r, const uint64_t *ids,
			const uint64_t *tags, unsigned int count)
{
	return STELE_CALL(reader_submit(r, ids, tags, count),
			  "cannot submit reads");
}

static int submit_one_into(struct stele_reader *r, const struct stele_destination *to)
{
	struct stele_ticket *ticket;
	struct stele_slot slot;
	int err = stele_slot_locate(r->ds, to->id, &slot);

	if (err)
		return err;
	if (!to->memory || !is_aligned((uintptr_t)to->memory,
				       page_size(&r->ds->image.dev->limits)))
		return -EINVAL;
	if (to->memory_size < slot.read_size)
		return -ENOBUFS;
	ticket = take_ticket(r, &slot, to->tag);
	ticket->memory = to->memory;
	stele_fetch_add(&r->fetch, ticket, 0);
	return 0;
}

static int reader_submit_into(struct stele_reader *r,
			      const struct stele_destination *to,
			      unsigned int count)
{
	unsigned int taken = 0, most;
	int err = stele_queue_claim(r->fetch.queue);

	if (err)
		return err;
	most = room(r);
	r->fetch.now = stele_fetch_clock();
	while (!err && taken < count && taken < most) {
		err = submit_one_into(r, &to[taken]);
		taken += !err;
	}
	if (taken)
		issue(r);
	stele_reader_update_event(r);
	return taken ? (int)taken : err;
}

int stele_reader_submit_into(struct stele_reader *r,
			     const struct stele_destination *to,
			     unsigned int count)
{
	return STELE_CALL(reader_submit_into(r, to, count),
			  "cannot submit reads into memory");
}

uint64_t stele_reader_buffer_size(const struct stele_reader *r, uint64_t id)
{
	struct stele_slot slot;

	return stele_slot_locate(r->ds, id, &slot) ? 0 : slot.read_size;
}

static int reader_register(struct stele_reader *r, void *memory,
			   uint64_t memory_size)
{
	int err = stele_queue_claim(r->fetch.queue);

	if (err)
		return err;
	if (!memory || !memory_size || memory_size > SIZE_MAX ||
	    !is_aligned((uintptr_t)memory, page_size(&r->ds->image.dev->limits)))
		return -EINVAL;
	err = stele_queue_register(r->fetch.queue, memory, memory_size);
	if (err == -ENOSPC)
		stele_error_explain(err, "as much memory is registered as can be");
	return err;
}

int stele_reader_register(struct stele_reader *r, void *memory,
			  uint64_t memory_size)
{
	return STELE_CALL(reader_register(r, memory, memory_size),
			  "cannot register memory");
}
