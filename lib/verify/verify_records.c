/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_records.c - the slots of one pass, read from front to back
 *
 * Threads take pieces of consecutive slots; each has two buffers: while it
 * checks the one, the other is being read. A slot larger than a buffer is
 * streamed through both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/workers.h"
#include "lib/verify/check_record.h"

#define BUFFER_SIZE   (UINT64_C(4) << 20)
#define PIECE_SAMPLES (32u * STELE_DIGESTS_PER_BLOCK)
#define JOBS_MAX      64u

struct scan {
	struct stele_segment_check *sc;
	uint64_t next; /* number; under check->lock */
};

/* Consecutive slots; `size` to the end of the last one. */
struct piece {
	uint64_t first, count;
	uint64_t offset, size;
};

/* A buffer, and the range of the target that it holds or is to hold. */
struct buffer {
	uint8_t *data;
	uint64_t start, size; /* whole blocks */
	struct stele_request *requests;
	unsigned int count, pending;
};

struct worker {
	struct scan *scan;
	struct stele_device *dev;
	struct stele_queue *queue;
	struct buffer buffers[2];
	struct stele_verify_record record;
	uint8_t *tail; /* of a slot that is streamed */
};

/* ---- pieces ------------------------------------------------------------------ */

static uint64_t slot_of(const struct scan *scan, uint64_t number,
			uint64_t *slot_size)
{
	uint64_t offset;

	stele_segment_slot(&scan->sc->segment, number, &offset, slot_size);
	return offset;
}

/* The next piece; false: none is left. */
static bool take_piece(struct scan *scan, struct piece *piece)
{
	const uint64_t end = scan->sc->first + scan->sc->count;
	pthread_mutex_t *lock = &scan->sc->check->lock;
	bool taken;

	pthread_mutex_lock(lock);
	taken = scan->next < end;
	piece->first = scan->next;
	piece->count = piece->size = 0;
	while (taken && scan->next < end && piece->count < PIECE_SAMPLES) {
		uint64_t slot_size;
		uint64_t offset = slot_of(scan, scan->next, &slot_size);

		if (piece->count == 0)
			piece->offset = offset;
		else if (offset - piece->offset + slot_size >
			 BUFFER_SIZE - 2 * STELE_BLOCK_SIZE)
			break;
		piece->size = offset - piece->offset + slot_size;
		piece->count++;
		scan->next++;
	}
	pthread_mutex_unlock(lock);
	return taken;
}

static void stop_scan(struct scan *scan)
{
	pthread_mutex_lock(&scan->sc->check->lock);
	scan->next = scan->sc->first + scan->sc->count;
	pthread_mutex_unlock(&scan->sc->check->lock);
}

/* The gap between a slot and the next must be zero. */
static int check_gap_behind(const struct scan *scan, uint64_t number)
{
	uint64_t slot_size, end, next;

	if (number + 1 >= scan->sc->segment.descriptor.sample_count)
		return 0;
	end = slot_of(scan, number, &slot_size);
	end += slot_size;
	next = slot_of(scan, number + 1, &slot_size);
	return stele_check_zero(scan->sc->check, end, next - end);
}

/* ---- buffers ------------------------------------------------------------------ */

/* Begin to read [offset, offset + size), widened to blocks. */
static int start_buffer(struct worker *w, struct buffer *b, uint64_t offset,
			uint64_t size)
{
	const uint64_t most = w->dev->limits.transfer_max;
	uint64_t done = 0;
	int ret = 0;

	b->start = round_down(offset, STELE_BLOCK_SIZE);
	b->size = round_up(offset + size, STELE_BLOCK_SIZE) - b->start;
	b->count = 0;
	while (done < b->size && ret == 0) {
		struct stele_request *request = &b->requests[b->count];
		uint64_t left = b->size - done;

		*request = (struct stele_request){
			.op = STELE_OP_READ, .data = b->data + done,
			.offset = b->start + done,
			.size = (uint32_t)(left < most ? left : most),
			.user = b,
		};
		ret = stele_queue_submit(w->queue, request);
		if (ret < 0)
			break;
		done += request->size;
		b->count++;
		b->pending++;
	}
	return ret;
}

/* Wait for a whole buffer. Read errors are handled later. */
static int await_buffer(struct worker *w, struct buffer *b)
{
	while (b->pending > 0) {
		struct stele_request *done[16];
		int count = stele_queue_reap(w->queue, done, 16, 1);

		if (count < 0)
			return count;
		for (int i = 0; i < count; i++)
			((struct buffer *)done[i]->user)->pending--;
	}
	return 0;
}

static bool touches(const struct stele_request *request, uint64_t offset,
		    uint64_t size)
{
	return request->offset < offset + size &&
	       offset < request->offset + request->size;
}

/*
 * Where these bytes are in a buffer. A failed request covered many slots: reread
 * this one by itself. NULL: that failed, too; *error says why.
 */
static const uint8_t *bytes_of(struct worker *w, struct buffer *b,
			       uint64_t offset, uint64_t size, int *error)
{
	const uint64_t start = round_down(offset, STELE_BLOCK_SIZE);
	const uint64_t end = round_up(offset + size, STELE_BLOCK_SIZE);
	bool failed = false;

	for (unsigned int i = 0; i < b->count; i++)
		failed |= b->requests[i].status < 0 &&
			  touches(&b->requests[i], start, end - start);
	*error = 0;
	if (failed)
		*error = stele_check_read(w->scan->sc->check,
					  b->data + (start - b->start), start,
					  end - start);
	return *error ? NULL : b->data + (offset - b->start);
}

/* ---- slots ---------------------------------------------------------------------- */

static int check_piece(struct worker *w, struct buffer *b,
		       const struct piece *piece)
{
	int ret = 0;

	for (uint64_t i = 0; i < piece->count && ret == 0; i++) {
		uint64_t number = piece->first + i;
		uint64_t slot_size;
		uint64_t offset = slot_of(w->scan, number, &slot_size);
		const uint8_t *slot;
		int error;

		slot = bytes_of(w, b, offset, slot_size, &error);
		if (slot) {
			stele_verify_record_begin(&w->record, number, slot_size,
						 slot, slot_size);
			stele_record_check_add(&w->record.check, slot, slot_size);
			stele_verify_record_end(&w->record);
		} else {
			stele_verify_record_unreadable(&w->record, number, error);
		}
		ret = check_gap_behind(w->scan, number);
	}
	if (ret == 0)
		ret = stele_check_progress(w->record.sc->check, piece->size, 0,
					   piece->count);
	return ret;
}

/* The tail of a slot that no buffer holds. */
static int read_tail(struct worker *w, uint64_t offset, uint64_t slot_size,
		     const uint8_t **tail)
{
	const uint64_t end = offset + slot_size;
	const uint64_t start = round_down(end - STELE_RECORD_TAIL_MAX,
					  STELE_BLOCK_SIZE);
	const uint64_t stop = round_up(end, STELE_BLOCK_SIZE);

	*tail = w->tail + (end - STELE_RECORD_TAIL_MAX - start);
	return stele_check_read(w->scan->sc->check, w->tail, start,
				stop - start);
}

/* Check a slot in pieces, reading one buffer while checking the other. */
static int stream(struct worker *w, const struct piece *piece, int *error)
{
	const uint64_t step = BUFFER_SIZE - 2 * STELE_BLOCK_SIZE;
	uint64_t left, ahead = 0;
	unsigned int turn = 0;
	int ret = 0;

	for (uint64_t done = 0; done < piece->size && ret == 0 && !*error;
	     done += step) {
		struct buffer *b = &w->buffers[turn];
		const uint8_t *data = NULL;

		for (; ahead < piece->size && ahead <= done + step && ret == 0;
		     ahead += step) {
			left = piece->size - ahead;
			ret = start_buffer(w, ahead == done ? b :
						&w->buffers[!turn],
					   piece->offset + ahead,
					   left < step ? left : step);
		}
		left = piece->size - done;
		if (ret == 0)
			ret = await_buffer(w, b);
		if (ret == 0)
			data = bytes_of(w, b, piece->offset + done,
					left < step ? left : step, error);
		if (data)
			stele_record_check_add(&w->record.check, data,
					       left < step ? left : step);
		if (data)
			ret = stele_check_progress(w->record.sc->check,
						   left < step ? left : step, 0,
						   0);
		turn = !turn;
	}
	if (ret == 0)
		ret = await_buffer(w, &w->buffers[0]);
	if (ret == 0)
		ret = await_buffer(w, &w->buffers[1]);
	return ret;
}

static int check_large(struct worker *w, const struct piece *piece)
{
	const uint8_t *tail;
	int error, ret = 0;

	error = read_tail(w, piece->offset, piece->size, &tail);
	if (error == 0) {
		stele_verify_record_begin(&w->record, piece->first, piece->size,
					 tail, STELE_RECORD_TAIL_MAX);
		ret = stream(w, piece, &error);
	}
	if (ret < 0)
		return ret;
	if (error)
		stele_verify_record_unreadable(&w->record, piece->first, error);
	else
		stele_verify_record_end(&w->record);
	ret = check_gap_behind(w->scan, piece->first);
	if (ret == 0)
		ret = stele_check_progress(w->record.sc->check, 0, 0, 1);
	return ret;
}

/* ---- threads ---------------------------------------------------------------------- */

static bool is_large(const struct piece *piece)
{
	return piece->size > BUFFER_SIZE - 2 * STELE_BLOCK_SIZE;
}

/* Two pieces at a time: `pieces[turn]` is checked, the other one in flight. */
static int run(struct worker *w)
{
	struct piece pieces[2];
	unsigned int turn = 0;
	bool more = take_piece(w->scan, &pieces[0]);
	int ret = 0;

	if (more && !is_large(&pieces[0]))
		ret = start_buffer(w, &w->buffers[0], pieces[0].offset,
				   pieces[0].size);
	while (more && ret == 0) {
		const struct piece piece = pieces[turn];
		struct piece *next = &pieces[!turn];

		if (is_large(&piece))
			ret = check_large(w, &piece);
		more = ret == 0 && take_piece(w->scan, next);
		if (more && !is_large(next))
			ret = start_buffer(w, &w->buffers[!turn], next->offset,
					   next->size);
		if (ret == 0 && !is_large(&piece))
			ret = await_buffer(w, &w->buffers[turn]);
		if (ret == 0 && !is_large(&piece))
			ret = check_piece(w, &w->buffers[turn], &piece);
		turn = !turn;
	}
	return ret;
}

/* A small segment needs no large buffers. */
static uint64_t buffer_size(const struct scan *scan)
{
	const uint64_t slots = scan->sc->segment.descriptor.slots_size;

	if (slots >= BUFFER_SIZE - 2 * STELE_BLOCK_SIZE)
		return BUFFER_SIZE;
	return round_up(slots, STELE_BLOCK_SIZE) + 2 * STELE_BLOCK_SIZE;
}

static int work(void *user, unsigned int index)
{
	struct scan *scan = user;
	struct worker worker = {
		.scan = scan, .dev = scan->sc->check->image->dev}, *w = &worker;
	const uint64_t size = buffer_size(scan);
	const unsigned int requests =
		(unsigned int)(size / w->dev->limits.transfer_max + 2);
	unsigned int broken;
	int ret;

	(void)index;
	ret = stele_verify_record_init(&w->record, scan->sc);
	w->tail = stele_device_alloc(w->dev,
				     STELE_RECORD_TAIL_MAX + 3 * STELE_BLOCK_SIZE);
	if (ret == 0 && !w->tail)
		ret = -ENOMEM;
	for (unsigned int i = 0; i < 2 && ret == 0; i++) {
		struct buffer *b = &w->buffers[i];

		b->data = stele_device_alloc(w->dev, size);
		b->requests = calloc(requests, sizeof(*b->requests));
		if (!b->data || !b->requests)
			ret = -ENOMEM;
	}
	if (ret == 0)
		ret = stele_queue_open(w->dev, 2 * requests, NULL, 0,
				       &w->queue);
	if (ret == 0)
		ret = run(w);
	if (ret < 0)
		stop_scan(scan);
	/* What a queue that broke may still write to stays, for good. */
	broken = stele_queue_close(w->queue);
	for (unsigned int i = 0; i < 2; i++) {
		if (!broken)
			free(w->buffers[i].data);
		free(w->buffers[i].requests);
	}
	free(w->tail);
	stele_verify_record_release(&w->record);
	return ret;
}

static unsigned int job_count(const struct stele_segment_check *sc)
{
	unsigned int count = sc->check->opts->jobs;
	uint64_t pieces;

	if (count == 0)
		count = stele_processors();
	if (count > JOBS_MAX)
		count = JOBS_MAX;
	pieces = sc->segment.descriptor.slots_size / BUFFER_SIZE +
		 sc->count / PIECE_SAMPLES + 1;
	return count < pieces ? count : (unsigned int)pieces;
}

int stele_verify_records(struct stele_segment_check *sc)
{
	struct scan scan = {.sc = sc, .next = sc->first};

	return stele_workers_run("stele-verify", job_count(sc), work, NULL,
				 &scan);
}
