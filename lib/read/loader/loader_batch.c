/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_batch.c - batches of a loader: their memory, and when one is whole
 *
 * Memory of batches is kept for the next ones. Whoever finishes the last item of a
 * batch lays it out for the caller, alone with it, and only then takes the lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/read/loader/loader.h"

/* ---- memory ------------------------------------------------------------------- */

static void batch_free(struct stele_loader_batch *batch)
{
	free(batch->items);
	free(batch->order);
	free(batch->samples);
	free(batch->sources);
	free(batch);
}

static struct stele_loader_batch *batch_new(struct stele_loader *l)
{
	const size_t count = l->opts.batch_size;
	struct stele_loader_batch *batch = calloc(1, sizeof(*batch));

	if (!batch)
		return NULL;
	batch->items = calloc(count, sizeof(*batch->items));
	batch->order = calloc(count, sizeof(*batch->order));
	batch->samples = calloc(count, sizeof(*batch->samples));
	batch->sources = calloc(count, sizeof(*batch->sources));
	if (!batch->items || !batch->order || !batch->samples ||
	    !batch->sources) {
		batch_free(batch);
		return NULL;
	}
	batch->loader = l;
	batch->next_of_all = l->all;
	l->all = batch;
	return batch;
}

struct stele_loader_batch *stele_loader_batch_take(struct stele_loader *l)
{
	struct stele_loader_batch *batch = stele_fifo_pop(&l->free);

	if (!batch)
		batch = batch_new(l);
	if (!batch)
		return NULL;
	batch->planned = 0;
	batch->ready = false;
	batch->count = batch->padded = batch->left_out = batch->replaced = 0;
	batch->error = batch->skip_error = 0;
	batch->failed = NULL;
	atomic_store_explicit(&batch->dropped, false, memory_order_relaxed);
	atomic_store_explicit(&batch->ordered, 0, memory_order_relaxed);
	atomic_store_explicit(&batch->missing, l->opts.batch_size,
			      memory_order_relaxed);
	return batch;
}

void stele_loader_batch_free_all(struct stele_loader *l)
{
	struct stele_loader_batch *batch;

	while ((batch = l->all)) {
		l->all = batch->next_of_all;
		/* What a queue that broke may still write to stays, for good. */
		for (uint32_t i = 0; !l->broken && i < l->opts.batch_size; i++)
			free(batch->items[i].own);
		batch_free(batch);
	}
}

/* ---- when it is whole ------------------------------------------------------------ */

uint64_t stele_loader_item_position(const struct stele_loader *l,
				    const struct stele_loader_item *item,
				    bool *padded)
{
	const struct stele_loader_batch *batch = item->batch;
	uint64_t place = (uint64_t)(item - batch->items);
	uint64_t position = batch->first + l->opts.rank + place * l->opts.world;

	*padded = position >= l->size;
	return position % l->size;
}

static void lay_out_item(struct stele_loader_batch *batch,
			 const struct stele_loader_item *item, bool padded)
{
	if (item->status) {
		if (!batch->left_out++)
			batch->skip_error = item->status;
		return;
	}
	batch->replaced += item->attempt > 0;
	batch->padded += padded;
	batch->samples[batch->count] = item->sample;
	batch->sources[batch->count++] = item->source;
}

/* A loss of the snapshot is never skipped: all that follows would be. */
static int error_of(const struct stele_loader *l,
		    const struct stele_loader_item *item)
{
	if (l->opts.on_error == STELE_ON_ERROR_RAISE || item->status == -ESTALE)
		return item->status;
	return 0;
}

static void report(const struct stele_loader *l,
		   const struct stele_loader_item *item)
{
	const bool lost = error_of(l, item) != 0;

	if (item->status && l->log.fn)
		stele_log_emit(&l->log,
			       lost ? STELE_LOG_ERROR : STELE_LOG_WARNING,
			       "sample %" PRIu64 " of source %" PRIu32 ": %s",
			       item->id, item->source,
			       stele_strerror(item->status));
}

static void lay_out(struct stele_loader *l, struct stele_loader_batch *batch)
{
	const uint32_t size = l->opts.batch_size;
	bool padded;

	for (uint32_t i = 0; i < size; i++) {
		report(l, &batch->items[i]);
		if (batch->error)
			continue;
		batch->error = error_of(l, &batch->items[i]);
		batch->failed = &batch->items[i];
	}
	/* What pads comes last, in whatever order it arrived. */
	for (int pads = 0; pads < 2; pads++)
		for (uint32_t i = 0; i < size; i++) {
			uint32_t place = l->opts.as_completed ? batch->order[i]
							      : i;
			struct stele_loader_item *item = &batch->items[place];

			stele_loader_item_position(l, item, &padded);
			if (padded == pads)
				lay_out_item(batch, item, padded);
		}
}

void stele_loader_item_finish(struct stele_loader *l,
			      struct stele_loader_item *item)
{
	struct stele_loader_batch *batch = item->batch;
	bool dropped;

	if (l->opts.as_completed)
		batch->order[atomic_fetch_add(&batch->ordered, 1)] =
			(uint32_t)(item - batch->items);
	if (atomic_fetch_sub(&batch->missing, 1) > 1)
		return;
	dropped = atomic_load(&batch->dropped);
	if (!dropped)
		lay_out(l, batch);
	pthread_mutex_lock(&l->lock);
	batch->ready = true;
	if (atomic_load(&batch->dropped)) {
		stele_fifo_push(&l->released, batch);
		stele_loader_tell(l);
	} else if (batch == l->queue.head) {
		pthread_cond_signal(&l->changed);
		stele_loader_update_event(l);
	}
	pthread_mutex_unlock(&l->lock);
}
