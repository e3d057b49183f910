/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge.h - blocks that two writers share
 *
 * Slots are as small as 32 bytes, so where the work of one thread ends and
 * that of another begins, both have bytes in one block. Each brings its own;
 * who completes the block writes it. Units of work are handed out in order, so
 * at most two blocks for each thread, and one more, wait for their other side.
 */
#ifndef STELE_SEGMENT_EDGE_H
#define STELE_SEGMENT_EDGE_H

#include <pthread.h>

#include "lib/device/device.h"

struct stele_edge;

struct stele_edges {
	struct stele_device *dev;
	pthread_mutex_t lock;
	struct stele_edge *list;
	unsigned int count;
	uint8_t *blocks;
};

/* For so many threads. Return: 0; -ENOMEM. */
int stele_edges_init(struct stele_edges *edges, struct stele_device *dev,
		     unsigned int jobs);
/* Nobody puts any more. Idempotent on a zeroed struct. */
void stele_edges_release(struct stele_edges *edges);
/*
 * Bytes for [offset, offset + size), within one block, put by nobody else.
 * `present`: the device has them already; a block of which that is true of all
 * parts is not written.
 * Return: 0; -ENOBUFS (more waiting than jobs explain); errno of the device.
 */
int stele_edges_put(struct stele_edges *edges, uint64_t offset,
		    const void *data, size_t size, bool present);

#endif
