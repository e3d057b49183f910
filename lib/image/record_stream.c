/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_stream.c - a slot in pieces: read ahead, check, hand out
 *
 * Positions count from the slot's start. The blocks from the one with the slot's
 * first byte up to the tail are the body: piece i lies in memory i mod
 * piece_count, and is read again only when the caller has come back for the
 * next one. Without a body the tail holds the whole slot.
 */
#include "lib/image/record_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECES_MIN  2u
#define PIECE_ALIGN 4096u /* enough for any device's memory_align */

/* ---- open and close -------------------------------------------------------- */

int stele_record_stream_open(struct stele_record_stream *s,
			     struct stele_device *dev, uint64_t memory)
{
	uint64_t piece, tail;

	*s = (struct stele_record_stream){.dev = dev};
	if (memory < STELE_RECORD_MEMORY_MIN)
		return -EINVAL;
	piece = dev->limits.transfer_max;
	tail = round_up(STELE_RECORD_TAIL_MAX, STELE_BLOCK_SIZE) +
	       STELE_BLOCK_SIZE;
	if (piece > (memory - tail) / (PIECES_MIN + 1))
		piece = (memory - tail) / (PIECES_MIN + 1);
	if (piece > PIECE_ALIGN)
		piece = round_down(piece, PIECE_ALIGN);
	s->piece_size = (uint32_t)piece;
	s->stride = round_up(piece, PIECE_ALIGN);
	/* The tail has room for whatever one transfer brings. */
	s->tail_room = piece > tail ? piece : tail;
	s->piece_count = STELE_RECORD_PIECES_MAX;
	if (s->piece_count > (memory - s->tail_room) / s->stride)
		s->piece_count = (uint32_t)((memory - s->tail_room) / s->stride);
	s->memory = stele_device_alloc(dev, s->piece_count * s->stride +
						    s->tail_room);
	return s->memory ? 0 : -ENOMEM;
}

void stele_record_stream_close(struct stele_record_stream *s)
{
	/* Leak what a broken queue may still write to. */
	if (!stele_queue_close(s->queue))
		free(s->memory);
	*s = (struct stele_record_stream){0};
}

/* ---- reading ahead --------------------------------------------------------- */

static int reap(struct stele_record_stream *s)
{
	struct stele_request *done[STELE_RECORD_PIECES_MAX];
	int count = stele_queue_reap(s->queue, done, STELE_RECORD_PIECES_MAX,
				     1);

	for (int i = 0; i < count; i++) {
		*(bool *)done[i]->user = true;
		s->in_flight--;
	}
	return count < 0 ? count : 0;
}

/* No read may be in flight into memory that is reused. */
static int drain(struct stele_record_stream *s)
{
	int ret = 0;

	while (s->in_flight && ret == 0)
		ret = reap(s);
	return ret;
}

static uint64_t piece_offset(const struct stele_record_stream *s,
			     uint64_t piece)
{
	return s->body_offset + piece * s->piece_size;
}

/* Request all pieces that there is memory for. */
static int issue(struct stele_record_stream *s)
{
	int ret = 0;

	while (ret == 0 && s->issued - s->taken < s->piece_count &&
	       piece_offset(s, s->issued) < s->body_end) {
		const unsigned int i = s->issued % s->piece_count;
		const uint64_t offset = piece_offset(s, s->issued);
		uint64_t size = s->body_end - offset;

		s->arrived[i] = false;
		s->requests[i] = (struct stele_request){
			.op = STELE_OP_READ,
			.data = s->memory + i * s->stride,
			.offset = offset,
			.size = size < s->piece_size ? (uint32_t)size :
						       s->piece_size,
			.user = &s->arrived[i],
		};
		ret = stele_queue_submit(s->queue, &s->requests[i]);
		if (ret == 0) {
			s->issued++;
			s->in_flight++;
		}
	}
	return ret;
}

/* The oldest piece not taken yet, as part of the slot. */
static int take_piece(struct stele_record_stream *s, const uint8_t **data,
		      uint64_t *size)
{
	const unsigned int i = s->taken % s->piece_count;
	const struct stele_request *request = &s->requests[i];
	uint64_t skip = 0;
	int ret = 0;

	while (!s->arrived[i] && ret == 0)
		ret = reap(s);
	if (ret == 0)
		ret = request->status;
	if (ret < 0)
		return ret;
	if (request->offset < s->slot_offset)
		skip = s->slot_offset - request->offset;
	*data = (const uint8_t *)request->data + skip;
	*size = request->size - skip;
	s->taken++;
	return 0;
}

/* ---- a record -------------------------------------------------------------- */

/* Read the tail, with all of the slot if that fits. */
static int read_tail(struct stele_record_stream *s)
{
	const uint32_t block = s->dev->limits.logical_block;
	uint8_t *memory = s->memory + s->piece_count * s->stride;
	uint64_t end = s->slot_offset + s->check.slot_size;
	uint64_t start = round_down(s->slot_offset, block);

	if (round_up(end, block) - start > s->tail_room)
		start = round_down(end - STELE_RECORD_TAIL_MAX, block);
	s->body_offset = round_down(s->slot_offset, block);
	s->body_end = start;
	s->tail_at = start > s->slot_offset ? start - s->slot_offset : 0;
	s->tail = memory + (s->slot_offset + s->tail_at - start);
	return stele_device_read(s->dev, memory, start,
				 round_up(end, block) - start);
}

/* The next bytes of the slot, and which of them are payload. */
static void look_at(struct stele_record_stream *s, const uint8_t *data,
		    uint64_t size, const void **payload, size_t *payload_size)
{
	uint64_t n;

	*payload = stele_record_part(data, s->check.position, size, 0,
				     s->check.record.payload_size, &n);
	*payload_size = n;
	stele_record_check_add(&s->check, data, size);
}

int stele_record_stream_next(struct stele_record_stream *s, const void **data,
			     size_t *size)
{
	const uint64_t slot_size = s->check.slot_size;

	*size = 0;
	while (*size == 0 && s->check.position < slot_size) {
		const uint8_t *piece = s->tail;
		uint64_t piece_size = slot_size - s->tail_at;
		int ret = 0;

		if (s->check.position < s->tail_at)
			ret = issue(s);
		if (s->check.position < s->tail_at && ret == 0)
			ret = take_piece(s, &piece, &piece_size);
		if (ret < 0)
			return ret;
		look_at(s, piece, piece_size, data, size);
	}
	return *size ? 1 : stele_record_check_end(&s->check);
}

/* An impossible tail: damaged, or written so? All of the slot tells. */
static int begin_check(struct stele_record_stream *s)
{
	const void *data;
	size_t size;

	if (stele_record_check_begin(&s->check, s->tail,
				     s->check.slot_size - s->tail_at) == 0)
		return 0;
	return stele_record_stream_next(s, &data, &size);
}

/* What was in flight for the record before is waited for. */
static int begin(struct stele_record_stream *s, const struct stele_segment *segment,
		 uint64_t number, unsigned int flags, struct stele_hash *hash)
{
	int ret = drain(s);

	if (ret < 0)
		return ret;
	s->check = (struct stele_record_check){
		.segment = segment, .number = number, .flags = flags,
		.hash = hash, .why = ""};
	stele_segment_slot(segment, number, &s->slot_offset,
			   &s->check.slot_size);
	s->issued = s->taken = 0;
	return s->check.slot_size < STELE_TRAILER_SIZE ? -EUCLEAN : 0;
}

int stele_record_stream_begin(struct stele_record_stream *s,
			      const struct stele_segment *segment,
			      uint64_t number, unsigned int flags,
			      struct stele_hash *hash)
{
	int ret = begin(s, segment, number, flags, hash);

	if (ret == 0)
		ret = read_tail(s);
	if (ret == 0 && s->tail_at && !s->queue)
		ret = stele_queue_open(s->dev, s->piece_count, s->memory,
				       s->piece_count * s->stride,
				       &s->queue);
	return ret == 0 ? begin_check(s) : ret;
}

int stele_record_stream_begin_at(struct stele_record_stream *s,
				 const struct stele_segment *segment,
				 uint64_t number, const uint8_t *slot)
{
	int ret = begin(s, segment, number, 0, NULL);

	s->tail = slot;
	s->tail_at = 0;
	return ret == 0 ? begin_check(s) : ret;
}
