/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spill.h - arrays that may outgrow memory
 *
 * A *pool* has a budget. An array of a pool lives in anonymous memory as long
 * as all arrays of the pool together fit the budget, and moves to an unlinked
 * temporary file, mapped shared, when its growth would not. Then the kernel
 * writes its pages out when memory is short: what stays resident is bounded,
 * whatever the size. Space of the file is allocated before it is touched, so
 * a full disk is an error of grow and never a SIGBUS.
 *
 * Growing may move an array: no pointer into it outlives a grow. One thread
 * at a time grows arrays of a pool; any may touch what is there.
 */
#ifndef STELE_SEGMENT_SPILL_H
#define STELE_SEGMENT_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/log.h"

struct stele_spill_pool {
	uint64_t budget;       /* bytes of anonymous memory */
	const char *directory; /* of files; NULL: see stele_temp_directory() */
	const struct stele_log *log; /* of files that cannot be written; NULL: none */
	uint64_t memory_used;  /* of that */
	uint64_t spilled_size; /* bytes in files now */
	uint64_t spilled_count; /* arrays that ever moved to a file */
};

struct stele_spill {
	void *data;	 /* page-aligned; NULL while empty */
	uint64_t size;	 /* bytes, all usable; new ones are zero */
	struct stele_spill_pool *pool;
	uint64_t mapped; /* bytes, whole pages */
	int fd;		 /* -1: anonymous memory */
};

void stele_spill_init(struct stele_spill *spill, struct stele_spill_pool *pool);
/*
 * Make an array `size` bytes long (never shorter than it is).
 * Return: 0; -ENOMEM; -ENOSPC and errno of the temporary directory (logged).
 */
int stele_spill_grow(struct stele_spill *spill, uint64_t size);
/* Idempotent, also on a zeroed struct. */
void stele_spill_release(struct stele_spill *spill);

#endif
