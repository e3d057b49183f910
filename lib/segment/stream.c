/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - chunks in turn, each written as a few requests
 */
#include "lib/segment/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/block.h"

#define REAP_MAX 32u
/* More in flight for one thread would only wait in the block layer. */
#define DEPTH_MAX 64u

struct stele_chunk {
	uint8_t *data;
	struct stele_request *requests;
	unsigned int pending; /* of them, in flight */
};

static void link_chunks(struct stele_stream *stream, unsigned int pieces)
{
	for (unsigned int i = 0; i < stream->chunk_count; i++) {
		struct stele_chunk *chunk = &stream->chunks[i];

		chunk->data = stream->arena + i * stream->chunk_size;
		chunk->requests = stream->requests + i * pieces;
		for (unsigned int j = 0; j < pieces; j++)
			chunk->requests[j].user = chunk;
	}
}

int stele_stream_open(struct stele_stream *stream, struct stele_device *dev,
		      struct stele_edges *edges, size_t chunk_size,
		      unsigned int chunk_count)
{
	const uint32_t piece = dev->limits.transfer_max;
	const unsigned int pieces =
		(unsigned int)((chunk_size + piece - 1) / piece);
	int ret = -ENOMEM;

	memset(stream, 0, sizeof(*stream));
	stream->dev = dev;
	stream->edges = edges;
	stream->chunk_size = chunk_size;
	stream->chunk_count = chunk_count;
	stream->depth = chunk_count * pieces < DEPTH_MAX ?
				chunk_count * pieces :
				DEPTH_MAX;
	stream->arena = stele_device_alloc(dev, chunk_size * chunk_count);
	stream->chunks = calloc(chunk_count, sizeof(*stream->chunks));
	stream->requests = calloc((size_t)chunk_count * pieces,
				  sizeof(*stream->requests));
	if (stream->arena && stream->chunks && stream->requests)
		ret = stele_queue_open(dev, stream->depth, stream->arena,
				       chunk_size * chunk_count,
				       &stream->queue);
	if (ret < 0)
		stele_stream_close(stream);
	else
		link_chunks(stream, pieces);
	return ret;
}

void stele_stream_close(struct stele_stream *stream)
{
	/* Waits for what is in flight; what a queue that broke may still read stays. */
	if (!stele_queue_close(stream->queue))
		free(stream->arena);
	free(stream->requests);
	free(stream->chunks);
	memset(stream, 0, sizeof(*stream));
}

static void fail(struct stele_stream *stream, int error)
{
	if (!stream->error)
		stream->error = error;
}

/* Collect what is done; wait for one if told to. */
static void reap(struct stele_stream *stream, bool wait)
{
	struct stele_request *done[REAP_MAX];
	int count = stele_queue_reap(stream->queue, done, REAP_MAX, wait);

	if (count < 0) {
		/* The queue broke; closing it is all that is left. */
		fail(stream, count);
		return;
	}
	for (int i = 0; i < count; i++) {
		struct stele_chunk *chunk = done[i]->user;

		chunk->pending--;
		stream->in_flight--;
		if (done[i]->status)
			fail(stream, done[i]->status);
	}
}

static int take_chunk(struct stele_stream *stream)
{
	reap(stream, false);
	while (!stream->error) {
		for (unsigned int i = 0; i < stream->chunk_count; i++) {
			if (stream->chunks[i].pending)
				continue;
			stream->current = &stream->chunks[i];
			return 0;
		}
		reap(stream, true);
	}
	return stream->error;
}

static void submit(struct stele_stream *stream, struct stele_chunk *chunk,
		   size_t from, size_t to)
{
	const size_t piece = stream->dev->limits.transfer_max;

	for (unsigned int i = 0; from < to && !stream->error; i++) {
		struct stele_request *request = &chunk->requests[i];
		size_t size = to - from < piece ? to - from : piece;
		int ret;

		while (stream->in_flight == stream->depth && !stream->error)
			reap(stream, true);
		if (stream->error)
			return;
		request->op = STELE_OP_WRITE;
		request->data = chunk->data + from;
		request->offset = stream->base + from;
		request->size = (uint32_t)size;
		ret = stele_queue_submit(stream->queue, request);
		if (ret < 0) {
			fail(stream, ret);
			return;
		}
		chunk->pending++;
		stream->in_flight++;
		from += size;
	}
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Give the current chunk away: whole blocks to the device, the rest to the
 * edges. Only the last chunk of a piece has a rest behind.
 */
static void flush(struct stele_stream *stream)
{
	struct stele_chunk *chunk = stream->current;
	const size_t from = round_up(stream->first, STELE_BLOCK_SIZE);
	const size_t to = round_down(stream->fill, STELE_BLOCK_SIZE);
	const size_t head = smaller(from, stream->fill);
	int ret;

	stream->current = NULL;
	ret = stele_edges_put(stream->edges, stream->base + stream->first,
			      chunk->data + stream->first,
			      head - stream->first, false);
	if (!ret && to >= from)
		ret = stele_edges_put(stream->edges, stream->base + to,
				      chunk->data + to, stream->fill - to,
				      false);
	if (ret < 0)
		fail(stream, ret);
	submit(stream, chunk, from, to);
	stream->base += stream->fill;
	stream->first = 0;
	stream->fill = 0;
}

void stele_stream_begin(struct stele_stream *stream, uint64_t offset)
{
	stream->base = round_down(offset, STELE_BLOCK_SIZE);
	stream->first = (size_t)(offset - stream->base);
	stream->fill = stream->first;
}

int stele_stream_room(struct stele_stream *stream, uint8_t **data, size_t *size)
{
	int ret = stream->error;

	if (!ret && !stream->current)
		ret = take_chunk(stream);
	if (ret < 0)
		return ret;
	*data = stream->current->data + stream->fill;
	*size = stream->chunk_size - stream->fill;
	return 0;
}

int stele_stream_advance(struct stele_stream *stream, size_t size)
{
	stream->fill += size;
	if (stream->fill == stream->chunk_size)
		flush(stream);
	return stream->error;
}

int stele_stream_end(struct stele_stream *stream)
{
	if (stream->current && !stream->error)
		flush(stream);
	stream->current = NULL;
	return stream->error;
}

int stele_stream_drain(struct stele_stream *stream)
{
	int count = 1;

	while (stream->in_flight && count) {
		unsigned int before = stream->in_flight;

		reap(stream, true);
		count = (int)(before - stream->in_flight);
	}
	return stream->error;
}
