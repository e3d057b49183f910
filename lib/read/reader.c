/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - many samples in flight, for one thread
 *
 * Submit takes a ticket and an extent of the arena for each sample; collect
 * checks what arrived and hands it out; release gives the extent back. There
 * are twice as many tickets as device reads in flight, so that the device has
 * work while checksums are computed. All memory is there from the start, but
 * for one thing: a sample whose checksum does not match is read once more, into
 * memory of its own. Only what arrives intact there is copied back. One that the
 * device could not read (EIO) is read once more, too, by itself.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/image/digest.h"
#include "lib/options.h"
#include "lib/read/arena.h"
#include "lib/read/fetch.h"

#define ARENA_SIZE_DEFAULT (UINT64_C(64) << 20)
#define ARENA_SIZE_MAX	   (UINT64_C(1) << 30) /* unless asked for */
#define DEPTH_MAX_DEFAULT  1024u /* unless asked for */
#define PAGE_SIZE_MIN	   4096u

struct stele_reader {
	struct stele_dataset *ds;
	struct stele_arena arena;
	struct stele_fetch fetch;
	struct stele_ticket *tickets;
	unsigned int ticket_count;
	struct stele_ticket_list idle;
	unsigned int outstanding;
	enum stele_verify verify;
	struct stele_hash *hash; /* for DIGEST */
	unsigned int fork_count; /* of the process that opened it */
	int broken;		 /* the queue's last word */
	int poll_fd;  /* -1 until asked for: epoll of the queue and ... */
	int event_fd; /* ... this one: samples that wait for collect */
	bool signalled;
	struct stele_reader_stats stats;
};

static bool forked(const struct stele_reader *r)
{
	return r->fork_count != stele_fork_count();
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
	uint32_t size = PAGE_SIZE_MIN;

	if (limits->logical_block > size)
		size = limits->logical_block;
	return limits->memory_align > size ? limits->memory_align : size;
}

static struct stele_depth_config depth_config(const struct stele_reader *r,
					      uint32_t wanted)
{
	const struct stele_dataset *ds = r->ds;
	uint32_t most = ds->image.dev->limits.depth_max;

	if (!most || most > DEPTH_MAX_DEFAULT)
		most = DEPTH_MAX_DEFAULT;
	return (struct stele_depth_config){
		.model = ds->has_profile ? &ds->model : NULL,
		.pinned = wanted,
		.depth_max = wanted ? wanted : most,
		.bytes_max = r->arena.size / 2,
		.now = stele_fetch_clock(),
	};
}

static int allocate(struct stele_reader *r, uint64_t arena, uint32_t depth)
{
	struct stele_device *dev = r->ds->image.dev;
	struct stele_depth_config config;
	int err;

	if (depth > STELE_QUEUE_DEPTH_MAX)
		return -EINVAL;
	config = depth_config(r, depth);
	r->ticket_count = 2 * config.depth_max;
	r->tickets = calloc(r->ticket_count, sizeof(*r->tickets));
	if (!r->tickets)
		return -ENOMEM;
	for (unsigned int i = 0; i < r->ticket_count; i++)
		stele_ticket_push(&r->idle, &r->tickets[i]);
	err = stele_arena_init(&r->arena, arena, page_size(&dev->limits));
	config.bytes_max = r->arena.size / 2;
	if (!err && r->verify == STELE_VERIFY_DIGEST)
		err = stele_hash_new(&r->hash);
	if (!err)
		err = stele_fetch_init(&r->fetch, dev, &config, r->arena.memory,
				       r->arena.size);
	return err;
}

int stele_reader_open(struct stele_dataset *ds,
		      const struct stele_reader_opts *opts,
		      struct stele_reader **out)
{
	struct stele_reader_opts known;
	struct stele_reader *r;
	int err;

	err = stele_options_get(opts, &known, sizeof(known));
	if (err)
		return err;
	if (known.verify > 1 + STELE_VERIFY_DIGEST)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->ds = ds;
	r->verify = stele_dataset_verify(
		ds->image.dev, known.verify ? known.verify - 1 : ds->verify);
	r->poll_fd = r->event_fd = -1;
	r->fork_count = stele_fork_count();
	err = allocate(r, arena_size(ds, known.arena_size), known.depth);
	if (err) {
		stele_reader_close(r);
		return err;
	}
	*out = r;
	return 0;
}

void stele_reader_close(struct stele_reader *r)
{
	if (!r)
		return;
	/* First of all: until it is drained, the kernel writes to the rest. */
	if (r->fetch.queue)
		stele_fetch_release(&r->fetch);
	for (unsigned int i = 0; r->tickets && i < r->ticket_count; i++)
		if (r->tickets[i].first) /* being read again */
			free(r->tickets[i].memory);
	if (r->poll_fd >= 0)
		close(r->poll_fd);
	if (r->event_fd >= 0)
		close(r->event_fd);
	stele_hash_free(r->hash);
	stele_arena_release(&r->arena, forked(r));
	free(r->tickets);
	free(r);
}

/* ---- submit --------------------------------------------------------------- */

/* After anything that may have changed what collect would return. */
static void update_event(struct stele_reader *r)
{
	bool wanted = r->fetch.arrived.head || r->broken;
	uint64_t value = 1;
	ssize_t n;

	if (r->event_fd < 0 || wanted == r->signalled)
		return;
	n = wanted ? write(r->event_fd, &value, sizeof(value))
		   : read(r->event_fd, &value, sizeof(value));
	if (n == sizeof(value))
		r->signalled = wanted;
}

static void pump(struct stele_reader *r, unsigned int wait)
{
	int err = r->broken ? 0 : stele_fetch_pump(&r->fetch, wait);

	if (err)
		r->broken = err;
}

/* Takes the first idle ticket: on its way, or arrived with a status. */
static void start(struct stele_reader *r, uint64_t tag, int status)
{
	struct stele_ticket *ticket = stele_ticket_pop(&r->idle);

	ticket->tag = tag;
	ticket->first = NULL;
	r->outstanding++;
	stele_fetch_add(&r->fetch, ticket, status);
}

static bool submit_one(struct stele_reader *r, uint64_t id, uint64_t tag)
{
	struct stele_ticket *ticket = r->idle.head;
	int status;

	if (!ticket)
		return false;
	status = stele_slot_locate(r->ds, id, &ticket->slot);
	if (!status && ticket->slot.read_size > r->arena.size)
		status = -ENOBUFS;
	ticket->memory = NULL;
	ticket->from_arena = !status;
	if (!status) {
		ticket->memory = stele_arena_take(&r->arena,
						  ticket->slot.read_size);
		if (!ticket->memory)
			return false;
	}
	start(r, tag, status);
	return true;
}

int stele_reader_submit(struct stele_reader *r, const uint64_t *ids,
			const uint64_t *tags, unsigned int count)
{
	unsigned int taken = 0;

	if (forked(r))
		return -EOWNERDEAD;
	if (count > INT_MAX)
		count = INT_MAX;
	while (taken < count &&
	       submit_one(r, ids[taken], tags ? tags[taken] : 0))
		taken++;
	if (taken)
		pump(r, 0);
	update_event(r);
	return (int)taken;
}

int stele_reader_submit_into(struct stele_reader *r, uint64_t id, uint64_t tag,
			     void *memory, uint64_t memory_size)
{
	struct stele_ticket *ticket;
	struct stele_slot slot;
	int err;

	if (forked(r))
		return -EOWNERDEAD;
	err = stele_slot_locate(r->ds, id, &slot);
	if (err)
		return err;
	if (!memory ||
	    !is_aligned((uintptr_t)memory, page_size(&r->ds->image.dev->limits)))
		return -EINVAL;
	if (memory_size < slot.read_size)
		return -ENOBUFS;
	ticket = r->idle.head;
	if (!ticket)
		return 0;
	ticket->slot = slot;
	ticket->memory = memory;
	ticket->from_arena = false;
	start(r, tag, 0);
	pump(r, 0);
	update_event(r);
	return 1;
}

uint64_t stele_reader_buffer_size(const struct stele_reader *r, uint64_t id)
{
	struct stele_slot slot;

	return stele_slot_locate(r->ds, id, &slot) ? 0 : slot.read_size;
}

/* ---- collect ---------------------------------------------------------------- */

static int decode(struct stele_reader *r, const struct stele_ticket *ticket,
		  struct stele_sample *sample)
{
	const struct stele_slot *slot = &ticket->slot;

	return stele_sample_decode(
		r->ds, slot, ticket->memory + (slot->offset - slot->read_offset),
		r->verify, r->hash,
		ticket->first ? STELE_LOG_ERROR : STELE_LOG_WARNING, sample);
}

/* Not into the same memory: that may be what is bad. */
static bool read_again(struct stele_reader *r, struct stele_ticket *ticket)
{
	void *memory = stele_device_alloc(r->ds->image.dev,
					  ticket->slot.read_size);

	if (!memory)
		return false;
	ticket->first = ticket->memory;
	ticket->memory = memory;
	r->stats.reread++;
	stele_fetch_add(&r->fetch, ticket, 0);
	return true;
}

/* Back to where the caller expects it, and checked there. */
static int bring_back(struct stele_reader *r, struct stele_ticket *ticket,
		      int status, struct stele_sample *sample)
{
	char *second = ticket->memory;

	ticket->memory = ticket->first;
	if (!status) {
		memcpy(ticket->memory, second, ticket->slot.read_size);
		status = decode(r, ticket, sample);
	}
	ticket->first = NULL;
	free(second);
	return status;
}

/*
 * The kernel joins what is asked of neighbouring blocks into one command, and a
 * block that cannot be read fails all of it. Alone, the others are good.
 */
static int read_alone(struct stele_reader *r, struct stele_ticket *ticket)
{
	r->stats.reread++;
	return stele_device_read(r->ds->image.dev, ticket->memory,
				 ticket->slot.read_offset,
				 ticket->slot.read_size);
}

/* False: the sample is not finished, it is read again. */
static bool finish(struct stele_reader *r, struct stele_ticket *ticket,
		   struct stele_sample *sample)
{
	int status = ticket->status;

	*sample = (struct stele_sample){0};
	if (status == -EIO)
		status = read_alone(r, ticket);
	if (!status) {
		status = decode(r, ticket, sample);
		if (status == -EBADMSG && !ticket->first &&
		    read_again(r, ticket))
			return false;
	}
	if (ticket->first)
		status = bring_back(r, ticket, status, sample);
	if (status) {
		status = stele_slot_judge(r->ds, &ticket->slot, status);
		*sample = (struct stele_sample){.status = status};
		if (ticket->from_arena)
			stele_arena_give(&r->arena, ticket->memory);
		r->stats.failed++;
	} else if (ticket->from_arena) {
		sample->buffer = ticket->memory;
	}
	sample->id = ticket->slot.id;
	sample->tag = ticket->tag;
	r->stats.samples++;
	r->stats.bytes += sample->size;
	r->outstanding--;
	stele_ticket_push(&r->idle, ticket);
	return true;
}

int stele_reader_collect(struct stele_reader *r, struct stele_sample *samples,
			 unsigned int max, unsigned int min)
{
	unsigned int count = 0;

	if (forked(r))
		return -EOWNERDEAD;
	if (max > INT_MAX)
		max = INT_MAX;
	if (min > max)
		min = max;
	if (min > r->outstanding)
		min = r->outstanding;
	do {
		struct stele_ticket *ticket;

		pump(r, r->fetch.arrived.head ? 0 : min - count);
		while (count < max &&
		       (ticket = stele_ticket_pop(&r->fetch.arrived)))
			count += finish(r, ticket, &samples[count]);
	} while (!r->broken && count < min);
	update_event(r);
	return count ? (int)count : r->broken;
}

void stele_reader_release(struct stele_reader *r, struct stele_sample *sample)
{
	if (!forked(r))
		stele_arena_give(&r->arena, sample->buffer);
	*sample = (struct stele_sample){
		.id = sample->id,
		.tag = sample->tag,
		.status = sample->status,
	};
}

unsigned int stele_reader_outstanding(const struct stele_reader *r)
{
	return forked(r) ? 0 : r->outstanding;
}

void stele_reader_stats(const struct stele_reader *r,
			struct stele_reader_stats *stats)
{
	*stats = r->stats;
	stats->device_reads = r->fetch.requests;
	stats->device_bytes = r->fetch.bytes;
	stats->depth = r->fetch.in_flight;
	stats->window = stele_depth_window(&r->fetch.depth);
	stats->workers = stele_device_workers();
	if (!forked(r))
		stele_queue_describe(r->fetch.queue, stats->tier,
				     sizeof(stats->tier));
}

unsigned int stele_reader_history(const struct stele_reader *r,
				  struct stele_depth_round *rounds,
				  unsigned int max)
{
	return stele_depth_history(&r->fetch.depth, rounds, max);
}

const struct stele_histogram *
stele_reader_latency(const struct stele_reader *r, enum stele_latency which)
{
	return which == STELE_LATENCY_DEVICE ? r->fetch.latency : NULL;
}

int stele_reader_register(struct stele_reader *r, void *memory,
			  uint64_t memory_size)
{
	if (forked(r))
		return -EOWNERDEAD;
	if (!memory || !memory_size || memory_size > SIZE_MAX ||
	    !is_aligned((uintptr_t)memory, page_size(&r->ds->image.dev->limits)))
		return -EINVAL;
	return stele_queue_register(r->fetch.queue, memory, memory_size);
}

/* ---- descriptor -------------------------------------------------------------- */

static int watch(int poll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int stele_reader_fd(struct stele_reader *r)
{
	int queue_fd, poll_fd, event_fd, err;

	if (forked(r))
		return -EOWNERDEAD;
	if (r->poll_fd >= 0)
		return r->poll_fd;
	queue_fd = stele_queue_fd(r->fetch.queue);
	if (queue_fd < 0)
		return queue_fd;
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = poll_fd < 0 || event_fd < 0 ? -errno : watch(poll_fd, event_fd);
	if (!err)
		err = watch(poll_fd, queue_fd);
	if (err) {
		if (poll_fd >= 0)
			close(poll_fd);
		if (event_fd >= 0)
			close(event_fd);
		return err;
	}
	r->poll_fd = poll_fd;
	r->event_fd = event_fd;
	update_event(r);
	return poll_fd;
}
