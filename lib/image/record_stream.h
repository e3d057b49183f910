/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_stream.h - one record after the other, read piece by piece
 *
 * For samples that are not to be in memory as a whole. The slot's last bytes
 * are read first: they say how large the parts are, and are not read again.
 * Slots that lie one after the other are read together, many small ones at once; of
 * one that is larger than a transfer several pieces are on their way while one is
 * looked at. Pieces are handed out before the
 * checksum is known: only the end says whether they were right.
 *
 *	stele_record_stream_open(&stream, dev, memory);
 *	err = stele_record_stream_begin(&stream, segment, number, NULL, &why);
 *	while (!err && (got = stele_record_stream_next(&stream, &data, &size)) > 0)
 *		...
 *	stele_record_stream_close(&stream);
 *
 * Belongs to the thread that opened it.
 */
#ifndef STELE_IMAGE_RECORD_STREAM_H
#define STELE_IMAGE_RECORD_STREAM_H

#include "lib/image/digest.h"

#define STELE_RECORD_PIECES_MAX 16u
#define STELE_RECORD_MEMORY_MIN 65536u
/* The largest tail: a key, the ends and scalars of all fields, a trailer. */
#define STELE_RECORD_TAIL_MAX                                         \
	(STELE_RECORD_KEY_MAX + 8 * (uint64_t)STELE_FIELD_COUNT_MAX + \
	 STELE_TRAILER_SIZE)

/* Blocks of the target that hold slots, the next ones too if those are asked for. */
struct stele_record_window {
	uint64_t start, end;
	uint64_t ahead; /* bytes that the next read of what follows asks for */
	uint64_t used;	/* by the stream's clock */
};

struct stele_record_stream {
	/* The record at hand, since begin; payload is NULL, key stays until the next begin. */
	struct stele_record record;
	uint64_t slot_offset, slot_size; /* on the target */
	uint32_t crc;	   /* at the end: computed; record.crc is as stored */
	uint8_t digest[STELE_DIGEST_SIZE]; /* at the end, with a hash */

	/* The stream's own. */
	struct stele_device *dev;
	struct stele_queue *queue; /* since the first slot that needs it */
	struct stele_hash *hash;
	uint8_t *memory;	/* pieces, then the tail */
	uint32_t piece_size, piece_count;
	uint64_t stride;	/* from piece to piece in memory */
	uint64_t tail_room;	/* bytes behind the pieces */
	const uint8_t *tail;	/* the slot's bytes from tail_at on */
	uint64_t tail_at;	/* positions in the slot */
	uint64_t position;	/* looked at so far */
	uint64_t body_offset, body_end; /* on the target: read in pieces */
	uint64_t issued, taken; /* pieces */
	unsigned int in_flight;
	bool ended;
	uint64_t clock;
	struct stele_record_window windows[STELE_RECORD_PIECES_MAX];
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
 * Go to a record, which need not be live. With `hash` (may be NULL; the
 * caller's until the end) its digest is computed. `why` gets a static text when
 * the record is impossible. What was left of the record before is dropped.
 * Return: 0; -EBADMSG (checksum); -EUCLEAN (right, yet impossible); -ENOMEM;
 * errno of the device.
 */
int stele_record_stream_begin(struct stele_record_stream *stream,
			      const struct stele_segment *segment,
			      uint64_t number, struct stele_hash *hash,
			      const char **why);
/*
 * The next piece of the payload, valid until the next call.
 * Return: 1; 0 at the end: it was what its checksum says; -EBADMSG (it was
 * not); errno of the device.
 */
int stele_record_stream_next(struct stele_record_stream *stream,
			     const void **data, size_t *size);

#endif
