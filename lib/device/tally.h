/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.h - what a thread has asked of devices by blocking reads
 *
 * For who counts the reads of a piece of work that passes many hands (sections, catalogs,
 * samples): the difference between before and after is exactly what it has issued. Each
 * thread has a tally of its own, so it costs no lock, and holds nobody else's reads.
 */
#ifndef STELE_DEVICE_TALLY_H
#define STELE_DEVICE_TALLY_H

#include <stdint.h>

struct stele_tally {
	uint64_t reads;	  /* requests, of at most transfer_max each */
	uint64_t bytes;	  /* of them */
	uint64_t retries; /* pieces of them that were started again */
};

/* Of the calling thread, over all devices, since it began. */
const struct stele_tally *stele_tally_of_thread(void);
/* For device.c: a request more. */
void stele_tally_add(uint32_t size, uint32_t retries);

#endif
