/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_worker.c - a worker's memory, its transfers, and zeros
 */
#include "lib/segment/copy_worker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/decode.h"
#include "lib/image/stale.h"

/* Any part of a unit, widened to whole blocks at both ends. */
#define BUFFER_SIZE   (STELE_COPY_UNIT_SIZE + 2 * STELE_BLOCK_SIZE)
#define TAIL_SIZE     (2 * STELE_BLOCK_SIZE + STELE_RECORD_TAIL_MAX)
#define DIGEST_BLOCKS (STELE_COPY_UNIT_SAMPLES / STELE_DIGESTS_PER_BLOCK + 2)

int stele_copy_worker_init(struct stele_copy_worker *w)
{
	struct stele_device *dev = w->from.dev;
	int ret;

	w->parent_index = UINT64_MAX;
	w->buffer = stele_device_alloc(dev, BUFFER_SIZE);
	w->tail = stele_device_alloc(dev, round_up(TAIL_SIZE, STELE_BLOCK_SIZE));
	w->digests = stele_device_alloc(dev, DIGEST_BLOCKS * STELE_BLOCK_SIZE);
	w->parent = stele_device_alloc(dev, STELE_BLOCK_SIZE);
	if (!w->buffer || !w->tail || !w->digests || !w->parent)
		return -ENOMEM;
	ret = stele_hash_new(&w->hash);
	if (ret == 0)
		ret = stele_queue_open(dev, STELE_COPY_DEPTH, w->buffer,
				       BUFFER_SIZE, &w->from.queue);
	if (ret == 0)
		ret = stele_queue_open(w->to.dev, STELE_COPY_DEPTH, w->buffer,
				       BUFFER_SIZE, &w->to.queue);
	return ret;
}

void stele_copy_worker_release(struct stele_copy_worker *w)
{
	unsigned int broken = stele_queue_close(w->from.queue);

	broken += stele_queue_close(w->to.queue);
	/* What a queue that broke may still write to stays, for good. */
	if (!broken)
		free(w->buffer);
	stele_hash_free(w->hash);
	free(w->tail);
	free(w->digests);
	free(w->parent);
}

/* ---- transfers ------------------------------------------------------------- */

struct transfer {
	struct stele_request *idle[STELE_COPY_DEPTH];
	unsigned int idle_count;
	enum stele_op op;
	uint8_t *data;
	uint64_t offset, left; /* not yet submitted */
	int error;
};

static void submit(const struct stele_copy_side *side, struct transfer *t)
{
	const uint32_t most = side->dev->limits.transfer_max;

	while (t->left && t->idle_count && !t->error) {
		struct stele_request *request = t->idle[t->idle_count - 1];

		*request = (struct stele_request){
			.op = t->op,
			.data = t->data,
			.offset = t->offset,
			.size = t->left < most ? (uint32_t)t->left : most,
		};
		t->error = stele_queue_submit(side->queue, request);
		if (t->error)
			return;
		t->idle_count--;
		t->data += request->size;
		t->offset += request->size;
		t->left -= request->size;
	}
}

/* Return: errno of the queue, which is broken then. */
static int reap(const struct stele_copy_side *side, struct transfer *t)
{
	struct stele_request *done[STELE_COPY_DEPTH];
	int count = stele_queue_reap(side->queue, done, STELE_COPY_DEPTH, 1);

	for (int i = 0; i < count; i++) {
		if (done[i]->status && !t->error)
			t->error = done[i]->status;
		t->idle[t->idle_count++] = done[i];
	}
	return count < 0 ? count : 0;
}

int stele_copy_transfer(struct stele_copy_worker *w,
			const struct stele_copy_side *side, enum stele_op op,
			void *data, uint64_t offset, uint64_t size)
{
	struct transfer t = {.op = op, .data = data, .left = size,
			     .offset = side->base + offset};
	int ret = 0;

	for (unsigned int i = 0; i < STELE_COPY_DEPTH; i++)
		t.idle[t.idle_count++] = &w->requests[i];
	submit(side, &t);
	while (ret == 0 && t.idle_count < STELE_COPY_DEPTH) {
		ret = reap(side, &t);
		submit(side, &t);
	}
	if (ret == 0)
		ret = t.error;
	if (ret < 0 && (side->is_source || ret != -ESTALE) && /* logged */
	    !atomic_exchange(w->failed, true))
		stele_log_error(&w->copy->image->log,
				"cannot %s %" PRIu64 " bytes at %" PRIu64
				" of the %s: %s",
				op == STELE_OP_READ ? "read" : "write", size,
				side->base + offset,
				side->is_source ? "source" : "target",
				stele_device_strerror(side->dev, ret));
	return ret;
}

int stele_copy_complain(const struct stele_copy_worker *w,
			const struct stele_copy_side *side, int error,
			uint64_t offset, const char *what, const char *why)
{
	if (!side->is_source)
		return error;
	error = stele_image_judge(w->copy->image, w->copy->segment->descriptor.id,
				  w->copy->segment->descriptor.offset, error);
	if (error != -ESTALE && !atomic_exchange(w->failed, true))
		stele_log_error(&w->copy->image->log,
				"damaged source: %s of segment %016" PRIx64
				" at offset %" PRIu64 ": %s",
				what, w->copy->segment->descriptor.id,
				side->base + offset, why);
	return error;
}

/* ---- zeros ----------------------------------------------------------------- */

int stele_copy_find_zeros(struct stele_copy_worker *w,
			  const struct stele_copy_unit *unit)
{
	int ret = stele_copy_transfer(w, &w->to, STELE_OP_READ, w->buffer,
				      unit->offset, unit->size);

	return ret < 0 ? ret : bytes_zero(w->buffer, unit->size);
}

int stele_copy_send_zeros(struct stele_copy_worker *w,
			  const struct stele_copy_unit *unit)
{
	memset(w->buffer, 0, unit->size);
	return stele_copy_transfer(w, &w->to, STELE_OP_WRITE, w->buffer,
				   unit->offset, unit->size);
}
