/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_stream.h - one record after the other, read piece by piece
 *
 * For samples that are not to be in memory as a whole. The slot's last bytes
 * are read first: they say how large the parts are, and are not read again.
 * Of one that is larger than a transfer several pieces are on their way while one is
 * looked at. Pieces are handed out before the checksum is known: only the end says
 * whether they were right.
 *
 *	stele_record_stream_open(&stream, dev, memory);
 *	err = stele_record_stream_begin(&stream, segment, number, 0, NULL);
 *	while (!err && (got = stele_record_stream_next(&stream, &data, &size)) > 0)
 *		...
 *	stele_record_stream_close(&stream);
 *
 * Belongs to the thread that opened it.
 */
#ifndef STELE_IMAGE_RECORD_STREAM_H
#define STELE_IMAGE_RECORD_STREAM_H

#include "lib/image/record.h"

#define STELE_RECORD_PIECES_MAX 16u
#define STELE_RECORD_MEMORY_MIN 65536u

struct stele_record_stream {
	/* The record at hand, until the next begin: its parts, and what is wrong. */
	struct stele_record_check check;
	uint64_t slot_offset; /* on the target */

	/* The stream's own. */
	struct stele_device *dev;
	struct stele_queue *queue; /* since the first slot that needs it */
	uint8_t *memory;	/* pieces, then the tail */
	uint32_t piece_size, piece_count;
	uint64_t stride;	/* from piece to piece in memory */
	uint64_t tail_room;	/* bytes after the pieces */
	const uint8_t *tail;	/* the slot's bytes from tail_at on */
	uint64_t tail_at;	/* positions in the slot */
	uint64_t body_offset, body_end; /* on the target: read in pieces */
	uint64_t issued, taken; /* pieces */
	unsigned int in_flight;
	struct stele_request requests[STELE_RECORD_PIECES_MAX];
	bool arrived[STELE_RECORD_PIECES_MAX];
};

/*
 * `memory`: bytes that it may use, at least STELE_RECORD_MEMORY_MIN. Return: 0;
 * -EINVAL; -ENOMEM. Close in any case.
 */
int stele_record_stream_open(struct stele_record_stream *stream,
			     struct stele_device *dev, uint64_t memory);
/* Waits for what is in flight. Idempotent on a zeroed struct. */
void stele_record_stream_close(struct stele_record_stream *stream);

/*
 * Go to a record; `flags` and `hash` (may be NULL; the caller's until the end) are
 * those of stele_record_check. What was left of the record before is dropped.
 * Return: 0; as stele_record_check_end() when the tail is impossible; -ENOMEM;
 * errno of the device (check.why is empty).
 */
int stele_record_stream_begin(struct stele_record_stream *stream,
			      const struct stele_segment *segment,
			      uint64_t number, unsigned int flags,
			      struct stele_hash *hash);
/*
 * The same of a slot that has been read, and its digest checked: its bytes, the caller's
 * until the end.
 * Return: 0; as stele_record_check_end() when the tail is impossible; errno of the device.
 */
int stele_record_stream_begin_at(struct stele_record_stream *stream,
				 const struct stele_segment *segment,
				 uint64_t number, const uint8_t *slot);
/*
 * The next piece of the payload, valid until the next call.
 * Return: 1; 0 at the end, if it was a valid record; as stele_record_check_end();
 * errno of the device (check.why is empty).
 */
int stele_record_stream_next(struct stele_record_stream *stream,
			     const void **data, size_t *size);

#endif
