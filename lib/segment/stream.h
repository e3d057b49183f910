/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - one thread's bytes on their way to the device
 *
 * A stream writes pieces of the target front to back: begin at any offset,
 * fill the room that is offered, advance, end. What fills a chunk goes to the
 * device while the next one is filled; blocks that a piece shares with its
 * neighbours go through the edges. The first error stays: every later call
 * returns it, and nothing new is submitted.
 *
 * A chunk: free -> filled -> in flight -> free. The stream waits for all that
 * is in flight before it is closed, also when something failed.
 */
#ifndef STELE_SEGMENT_STREAM_H
#define STELE_SEGMENT_STREAM_H

#include "lib/device/device.h"
#include "lib/segment/edge.h"

struct stele_chunk;

struct stele_stream {
	struct stele_device *dev;
	struct stele_edges *edges;
	struct stele_queue *queue;
	uint8_t *arena;
	struct stele_chunk *chunks;
	struct stele_request *requests;
	size_t chunk_size;
	unsigned int chunk_count, depth, in_flight;
	int error;

	struct stele_chunk *current; /* NULL: none is being filled */
	uint64_t base;	/* of its first byte on the target, a block's */
	size_t first;	/* place of our first byte in it */
	size_t fill;	/* place behind our last byte in it */
};

/* Return: 0; -ENOMEM; errno of the queue. */
int stele_stream_open(struct stele_stream *stream, struct stele_device *dev,
		      struct stele_edges *edges, size_t chunk_size,
		      unsigned int chunk_count);
/* Idempotent on a zeroed struct. */
void stele_stream_close(struct stele_stream *stream);

void stele_stream_begin(struct stele_stream *stream, uint64_t offset);
/* Memory for the next bytes, at least one. Return: 0; errno of the device. */
int stele_stream_room(struct stele_stream *stream, uint8_t **data,
		      size_t *size);
/* So many bytes of the room are filled. Return: as room. */
int stele_stream_advance(struct stele_stream *stream, size_t size);
/* Hand over the rest of this piece. Return: as room. */
int stele_stream_end(struct stele_stream *stream);
/* Wait until all is written. Return: 0; the first error. */
int stele_stream_drain(struct stele_stream *stream);

#endif
