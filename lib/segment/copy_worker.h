/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_worker.h - what one thread of a segment's copy has, and does with a unit
 *
 * Private to copy_*.c and segment_copy.c.
 */
#ifndef STELE_SEGMENT_COPY_WORKER_H
#define STELE_SEGMENT_COPY_WORKER_H

#include <stdatomic.h>

#include "lib/image/record_stream.h"
#include "lib/image/section.h"
#include "lib/segment/copy_unit.h"
#include "lib/segment/edge.h"
#include "lib/segment/segment_copy.h"

#define STELE_COPY_DEPTH 16u /* transfers of a worker in flight */

/* Where the segment lies: here or there. */
struct stele_copy_side {
	struct stele_device *dev;
	struct stele_queue *queue;
	uint64_t base;	  /* of the segment on the target */
	bool is_source;	  /* what is wrong there is an error, and logged */
};

struct stele_copy_worker {
	struct stele_segment_copy *copy;
	struct stele_edges *edges;
	atomic_bool *failed; /* of all workers, one says why */
	const atomic_bool *stop; /* looked at within large samples, too */
	_Atomic uint64_t passed; /* bytes of large samples of the unit at hand that were sent */
	struct stele_copy_side from, to;
	uint64_t unit; /* at hand; UINT64_MAX: none; under the lock */
	uint64_t damaged; /* number of the last sample that was, on the target */
	struct stele_hash *hash;
	uint8_t *buffer; /* a unit, and the blocks that it has parts of */
	uint8_t *tail;	 /* of a slot that comes in pieces */
	uint8_t ends[2][STELE_BLOCK_SIZE]; /* a unit's blocks that others share */
	struct stele_disk_block *digests;
	struct stele_disk_block *parent; /* of the tree */
	uint64_t parent_index;		 /* UINT64_MAX: none */
	struct stele_request requests[STELE_COPY_DEPTH];
};

/* Return: 0; -ENOMEM; errno of a queue. Release in any case. */
int stele_copy_worker_init(struct stele_copy_worker *w);
void stele_copy_worker_release(struct stele_copy_worker *w);

/*
 * Read or write a range, several transfers at a time; -> whole or failed.
 * Return: 0; errno of the device (logged).
 */
int stele_copy_transfer(struct stele_copy_worker *w,
			const struct stele_copy_side *side, enum stele_op op,
			void *data, uint64_t offset, uint64_t size);
/*
 * Say what is wrong with the source. Return: `error`, or -ESTALE (the segment is there no
 * more; logged).
 */
int stele_copy_complain(const struct stele_copy_worker *w,
			const struct stele_copy_side *side, int error,
			uint64_t offset, const char *what, const char *why);

/*
 * Is this unit whole on the target? Return: 1; 0; -ECANCELED (*stop); errno of the device. Of a
 * unit of slots that is, its part of shared blocks is settled.
 */
int stele_copy_find_slots(struct stele_copy_worker *w,
			  const struct stele_copy_unit *unit);
int stele_copy_find_blocks(struct stele_copy_worker *w,
			   const struct stele_copy_unit *unit);
int stele_copy_find_zeros(struct stele_copy_worker *w,
			  const struct stele_copy_unit *unit);
/* Send it. Return: 0; -EBADMSG, -EUCLEAN (logged); -ECANCELED (*stop); errno. */
int stele_copy_send_slots(struct stele_copy_worker *w,
			  const struct stele_copy_unit *unit);
int stele_copy_send_blocks(struct stele_copy_worker *w,
			   const struct stele_copy_unit *unit);
int stele_copy_send_zeros(struct stele_copy_worker *w,
			  const struct stele_copy_unit *unit);

#endif
