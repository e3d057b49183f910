/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - see check.h
 *
 * The second memory of a ticket is freed here, when the ticket is done with it;
 * until then verdict.first says that it is there.
 */
#include "lib/read/check.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/read/fetch.h"

int stele_checker_init(struct stele_checker *c, const struct stele_dataset *ds,
		       enum stele_verify verify, unsigned int count)
{
	*c = (struct stele_checker){.ds = ds, .verify = verify};
	return verify == STELE_VERIFY_DIGEST ?
		       stele_proof_init(&c->proof, &ds->image,
					STELE_CHECKERS_MEMORY / count) :
		       0;
}

void stele_checker_release(struct stele_checker *c)
{
	stele_proof_release(&c->proof);
}

static int decode(struct stele_checker *c, struct stele_ticket *ticket)
{
	const struct stele_slot *slot = &ticket->slot;

	return stele_sample_decode(
		c->ds, slot, ticket->memory + (slot->offset - slot->read_offset),
		c->verify, &c->proof,
		ticket->verdict.first ? STELE_LOG_ERROR : STELE_LOG_INFO,
		&ticket->verdict.sample);
}

/* Not into the same memory: that may be what is bad. */
static bool ask_again(const struct stele_checker *c,
		      struct stele_ticket *ticket)
{
	void *memory = stele_device_alloc(c->ds->image.dev,
					  ticket->slot.read_size);

	if (!memory)
		return false;
	ticket->verdict.first = ticket->memory;
	ticket->memory = memory;
	ticket->size = ticket->slot.read_size;
	ticket->verdict.again = true;
	ticket->verdict.rereads++;
	return true;
}

/* Only the slot: its first and last block may hold others, that are in use. */
static void copy_slot(struct stele_ticket *ticket, const char *from)
{
	const struct stele_slot *slot = &ticket->slot;
	const uint64_t at = slot->offset - slot->read_offset;

	memcpy(ticket->memory + at, from + at, slot->size);
}

/* Back to where the caller expects it, and checked there. */
static int bring_back(struct stele_checker *c,
		      struct stele_ticket *ticket, int status)
{
	char *second = ticket->memory;

	ticket->memory = ticket->verdict.first;
	if (!status) {
		copy_slot(ticket, second);
		status = decode(c, ticket);
		if (!status)
			stele_slot_log_again(c->ds, &ticket->slot);
	}
	ticket->verdict.first = NULL;
	free(second);
	return status;
}

/*
 * The kernel joins what is asked of neighbouring blocks into one command, and a
 * block that cannot be read fails all of it. Alone, the others are good.
 */
static int read_alone(const struct stele_checker *c,
		      struct stele_ticket *ticket)
{
	struct stele_device *dev = c->ds->image.dev;
	const struct stele_slot *slot = &ticket->slot;
	char *memory = ticket->memory;
	int err;

	ticket->verdict.rereads++;
	if (ticket->shared)
		memory = stele_device_alloc(dev, slot->read_size);
	if (!memory)
		return -ENOMEM;
	err = stele_device_read(dev, memory, slot->read_offset, slot->read_size);
	if (ticket->shared) {
		if (!err)
			copy_slot(ticket, memory);
		free(memory);
	}
	return err;
}

static void check(struct stele_checker *c, struct stele_ticket *ticket)
{
	int status = ticket->status;

	if (status == -EIO)
		status = read_alone(c, ticket);
	if (!status) {
		status = decode(c, ticket);
		if (status == -EBADMSG && !ticket->verdict.first) {
			if (ask_again(c, ticket))
				return;
			status = stele_slot_judge(c->ds, &ticket->slot, status);
		}
	}
	if (ticket->verdict.first)
		status = bring_back(c, ticket, status);
	ticket->status = status;
}

/* ---- what it costs ---------------------------------------------------------- */

/* Nobody else writes it. */
static void add(_Atomic uint64_t *count, uint64_t more)
{
	uint64_t now = atomic_load_explicit(count, memory_order_relaxed);

	atomic_store_explicit(count, now + more, memory_order_relaxed);
}

void stele_ticket_check(struct stele_checker *c,
			struct stele_ticket *ticket)
{
	const struct stele_tally *now = stele_tally_of_thread();
	const struct stele_tally before = *now;

	check(c, ticket);
	if (now->reads == before.reads)
		return;
	add(&c->reads, now->reads - before.reads);
	add(&c->read_bytes, now->bytes - before.bytes);
	add(&c->retries, now->retries - before.retries);
}

void stele_checker_count_reads(const struct stele_checker *c,
			       struct stele_tally *sum)
{
	sum->reads += atomic_load_explicit(&c->reads, memory_order_relaxed);
	sum->bytes += atomic_load_explicit(&c->read_bytes, memory_order_relaxed);
	sum->retries += atomic_load_explicit(&c->retries, memory_order_relaxed);
}
