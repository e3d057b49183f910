/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.h - many slots at once, in whatever order they are wanted
 *
 * They are read in the order of the device, neighbours with one read and no block
 * twice, and put into memory in the order in which they were added.
 *
 *	stele_gather_open(&gather, dev, memory);
 *	stele_gather_begin(&gather);
 *	while (stele_gather_add(&gather, id, offset, size))
 *		...
 *	err = stele_gather_run(&gather, &stop);
 *	data = stele_gather_next(&gather, size); // for each that was added
 *	stele_gather_close(&gather);
 *
 * Belongs to the thread that opened it.
 */
#ifndef STELE_IMAGE_GATHER_H
#define STELE_IMAGE_GATHER_H

#include "lib/device/device.h"

#define STELE_GATHER_MEMORY_MIN 65536u
#define STELE_GATHER_DEPTH	8u
/* What a slot takes of the memory beside its bytes. */
#define STELE_GATHER_ENTRY_SIZE 32u

struct stele_gather_piece {
	struct stele_request request;
	uint64_t first; /* entry that has bytes in it */
};

struct stele_gather {
	uint64_t slot_max; /* what is larger has to be read alone */
	uint64_t room;	   /* bytes for slots and their entries */

	/* The gather's own. */
	struct stele_device *dev;
	struct stele_queue *queue; /* since the first run */
	uint8_t *memory;	   /* pieces; then entries from the begin, slots from the end */
	uint32_t piece_size;
	uint64_t count, used; /* entries; bytes of slots */
	uint64_t next, to;    /* entry that is not read whole; end of what has been asked for */
	uint64_t taken;	      /* bytes of slots, by stele_gather_next() */
	uint32_t idle_count;
	struct stele_gather_piece pieces[STELE_GATHER_DEPTH];
	struct stele_gather_piece *idle[STELE_GATHER_DEPTH];
};

/*
 * `memory`: bytes that it may use, at least STELE_GATHER_MEMORY_MIN. Return: 0; -EINVAL;
 * -ENOMEM. Close in any case.
 */
int stele_gather_open(struct stele_gather *gather, struct stele_device *dev,
		      uint64_t memory);
/* Waits for what is in flight. Idempotent on a zeroed struct. */
void stele_gather_close(struct stele_gather *gather);

/* Forget what was gathered. */
void stele_gather_begin(struct stele_gather *gather);
/* A slot of at most slot_max bytes. False: there is no room for it. */
bool stele_gather_add(struct stele_gather *gather, uint64_t id, uint64_t offset,
		      uint64_t size);
/*
 * Read all that were added. Return: 0; errno of the device; -ECANCELED (*stop, atomic):
 * then none is there.
 */
int stele_gather_run(struct stele_gather *gather, const bool *stop);
/* All of them, in the order of the device, until one returns something else than 0. */
int stele_gather_each(const struct stele_gather *gather,
		      int (*fn)(void *user, uint64_t id, const uint8_t *slot, uint64_t size),
		      void *user);
/* The next slot, of `size` bytes, in the order of adding; until the next begin. */
const uint8_t *stele_gather_next(struct stele_gather *gather, uint64_t size);

#endif
