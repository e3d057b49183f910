/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_plan.c - what the I/O thread of a loader reads next, and when not
 *
 * Samples are planned in order of position, as far as the prefetch size goes: bytes of
 * buffers count from here until their batch is released. The batch that is due is planned
 * whatever it takes, so that the caller never waits for what it holds itself. It gets
 * memory of its own, too, when the arena has no extent for it and nothing is under way
 * that would make one.
 */
#include <errno.h>
#include <stdlib.h>

#include "format/checked.h"
#include "lib/read/arena.h"
#include "lib/read/loader/loader.h"

/* ---- bytes ---------------------------------------------------------------------- */

static uint64_t held(const struct stele_loader *l)
{
	return atomic_load_explicit(&l->held, memory_order_relaxed);
}

/* Only this thread writes. */
static void set_held(struct stele_loader *l, uint64_t size)
{
	atomic_store_explicit(&l->held, size, memory_order_relaxed);
}

/* Count `size` bytes for an item, if there is room for it. */
static bool admit(struct stele_loader *l, struct stele_loader_item *item,
		  uint64_t size)
{
	uint64_t others = held(l) - item->size;

	if (item->batch != l->head &&
	    !range_ok(others, size, l->opts.prefetch_size))
		return false;
	item->size = size;
	set_held(l, others + size);
	return true;
}

static void release_memory(struct stele_loader *l,
			   struct stele_loader_item *item)
{
	struct stele_sample sample = {
		.buffer = item->buffer,
		.reader = l->lanes[item->source].reader,
	};

	stele_sample_release(&sample);
	free(item->own);
	item->buffer = NULL;
	item->own = NULL;
}

void stele_loader_item_release(struct stele_loader *l,
			       struct stele_loader_item *item)
{
	release_memory(l, item);
	set_held(l, held(l) - item->size);
	item->size = 0;
}

/* ---- to the readers ----------------------------------------------------------------- */

static struct stele_loader_item *item_of(uint64_t tag)
{
	return (struct stele_loader_item *)(uintptr_t)tag;
}

static void finish(struct stele_loader *l, struct stele_loader_item *item,
		   int status)
{
	item->status = status;
	stele_loader_item_finish(l, item);
}

/* Its memory is none of the arena's. False: not now. */
static bool submit_own(struct stele_loader *l, struct stele_loader_lane *lane,
		       struct stele_loader_item *item)
{
	struct stele_destination to = {.id = item->id,
				       .tag = (uintptr_t)item,
				       .memory_size = item->size};
	int n;

	if (!item->own)
		item->own = stele_device_alloc(lane->ds->image.dev, item->size);
	to.memory = item->own;
	n = item->own ? stele_reader_submit_into(lane->reader, &to, 1) : -ENOMEM;
	if (n < 0)
		finish(l, item, n);
	l->outstanding += n > 0;
	return n != 0;
}

static bool is_large(const struct stele_loader_lane *lane, uint32_t place)
{
	const struct stele_loader_item *item = item_of(lane->tags[place]);

	return item->own || item->size > lane->arena_size;
}

/* As many as go to the arena. Return: how many were taken; errno. */
static int submit_some(struct stele_loader *l, struct stele_loader_lane *lane)
{
	uint32_t end = lane->first;
	int n;

	while (end < lane->count && !is_large(lane, end))
		end++;
	if (end == lane->first)
		return 0;
	n = stele_reader_submit(lane->reader, lane->ids + lane->first,
				lane->tags + lane->first, end - lane->first);
	if (n > 0) {
		lane->first += (uint32_t)n;
		l->outstanding += (uint32_t)n;
	}
	return n;
}

/*
 * Which one cannot wait for an extent of the arena: it is larger, or its batch is due and
 * nothing is under way that would make room. Return: its place; lane->count: none.
 */
static uint32_t urgent(const struct stele_loader *l,
		       const struct stele_loader_lane *lane)
{
	uint32_t place = lane->first;

	if (is_large(lane, place))
		return place;
	if (stele_reader_in_flight(lane->reader))
		return lane->count;
	while (place < lane->count && item_of(lane->tags[place])->batch != l->head)
		place++;
	return place;
}

/* The others keep their order. */
static void remove_place(struct stele_loader_lane *lane, uint32_t place)
{
	for (; place > lane->first; place--) {
		lane->ids[place] = lane->ids[place - 1];
		lane->tags[place] = lane->tags[place - 1];
	}
	lane->first++;
}

/* False: some have to wait. */
static bool flush(struct stele_loader *l, struct stele_loader_lane *lane)
{
	while (lane->first < lane->count) {
		uint32_t place = lane->first;
		int n = submit_some(l, lane);

		if (n > 0)
			continue;
		if (n < 0) {
			finish(l, item_of(lane->tags[place]), n);
		} else {
			place = urgent(l, lane);
			if (place == lane->count ||
			    !submit_own(l, lane, item_of(lane->tags[place])))
				return false;
		}
		remove_place(lane, place);
	}
	lane->first = lane->count = 0;
	return true;
}

static bool flush_all(struct stele_loader *l)
{
	bool all = true;

	for (uint32_t i = 0; i < l->source_count; i++)
		all &= flush(l, &l->lanes[i]);
	return all;
}

/* Is it due, and behind samples that wait for room which nothing under way will make? */
static bool is_stuck(const struct stele_loader *l,
		     const struct stele_loader_lane *lane,
		     const struct stele_loader_item *item)
{
	return item->batch == l->head &&
	       !stele_reader_in_flight(lane->reader);
}

/* The item is on its way, or finished. False: no room now, and nothing is changed. */
static bool send(struct stele_loader *l, struct stele_loader_item *item,
		 uint32_t source, uint64_t id)
{
	struct stele_loader_lane *lane = &l->lanes[source];
	uint64_t size = round_up(stele_reader_buffer_size(lane->reader, id),
				 STELE_ARENA_PAGE_SIZE);
	bool full = lane->count == lane->chunk && !flush(l, lane);

	if ((full && !is_stuck(l, lane, item)) || !admit(l, item, size))
		return false;
	item->source = source;
	item->id = id;
	if (full)
		return submit_own(l, lane, item);
	lane->ids[lane->count] = id;
	lane->tags[lane->count++] = (uintptr_t)item;
	return true;
}

/* ---- stand-ins ------------------------------------------------------------------------ */

void stele_loader_plan_failed(struct stele_loader *l,
			      struct stele_loader_item *item, int status)
{
	item->status = status;
	if (l->opts.on_error == STELE_ON_ERROR_SUBSTITUTE &&
	    status != -ESTALE && !atomic_load(&item->batch->dropped))
		stele_fifo_push(&l->retry, item);
	else
		stele_loader_item_finish(l, item);
}

/* False: there is no room for it now. */
static bool send_stand_in(struct stele_loader *l, struct stele_loader_item *item)
{
	const int status = item->status;
	uint64_t position, id;
	uint32_t source;
	bool padded;

	release_memory(l, item);
	position = stele_loader_item_position(l, item, &padded);
	if (atomic_load(&item->batch->dropped) ||
	    item->attempt == STELE_LOADER_ATTEMPTS ||
	    !stele_loader_order_at(&l->order, item->batch->epoch, position,
				   item->attempt + 1, &source, &id)) {
		stele_loader_item_finish(l, item);
		return true;
	}
	item->attempt++;
	item->status = 0;
	if (send(l, item, source, id))
		return true;
	item->attempt--;
	item->status = status;
	return false;
}

/* False: some have to wait. They are in no order: each is tried. */
static bool send_stand_ins(struct stele_loader *l)
{
	struct stele_loader_item_list list = l->retry;
	struct stele_loader_item *item;

	l->retry.head = NULL;
	while ((item = stele_fifo_pop(&list)))
		if (!send_stand_in(l, item))
			stele_fifo_push(&l->retry, item);
	return !l->retry.head;
}

/* ---- what comes next ---------------------------------------------------------------------- */

/* The next step; of the next epoch when this one is done. False: there is none. */
static bool next_step(struct stele_loader *l)
{
	for (int epochs = 0; l->plan.step == l->plan.steps; epochs++) {
		if (epochs == 2)
			return false;
		stele_loader_cursor_set(l, l->plan.epoch + 1, 0, &l->plan);
	}
	return true;
}

static bool begin_batch(struct stele_loader *l)
{
	struct stele_loader_batch *batch;

	if (!next_step(l))
		return false;
	batch = stele_loader_batch_take(l);
	pthread_mutex_lock(&l->lock);
	if (l->restarting) { /* this plan is none any more */
		if (batch)
			stele_fifo_push(&l->free, batch);
		batch = NULL;
	} else if (batch) {
		batch->epoch = l->plan.epoch;
		batch->index = l->plan.step * l->opts.workers + l->opts.worker;
		batch->first = l->plan.start + batch->index * l->step_size;
		stele_fifo_push(&l->queue, batch);
		l->head = l->queue.head;
	} else if (!l->queue.head) {
		l->broken = -ENOMEM;
		pthread_cond_signal(&l->changed);
		stele_loader_update_event(l);
	}
	pthread_mutex_unlock(&l->lock);
	l->filling = batch;
	l->plan.step += batch != NULL;
	return batch != NULL;
}

/* False: no room for it now. */
static bool plan_item(struct stele_loader *l, struct stele_loader_batch *batch)
{
	struct stele_loader_item *item = &batch->items[batch->planned];
	uint64_t position, id;
	uint32_t source;
	bool padded;

	*item = (struct stele_loader_item){.batch = batch};
	position = stele_loader_item_position(l, item, &padded);
	stele_loader_order_at(&l->order, batch->epoch, position, 0, &source,
			      &id);
	if (!send(l, item, source, id))
		return false;
	if (++batch->planned == l->opts.batch_size)
		l->filling = NULL;
	return true;
}

void stele_loader_plan(struct stele_loader *l)
{
	bool room = flush_all(l);

	room &= send_stand_ins(l);
	/* Without room for a sample no batch begins, but the one that is due. */
	while (room) {
		if (!l->filling && (!l->head || held(l) < l->opts.prefetch_size))
			begin_batch(l);
		room = l->filling && plan_item(l, l->filling);
	}
	flush_all(l);
}

/* What was planned and not submitted; then the plan begins anew. */
static void cancel_planned(struct stele_loader *l)
{
	struct stele_loader_batch *batch = l->filling;
	struct stele_loader_item *item;

	for (uint32_t i = 0; i < l->source_count; i++) {
		struct stele_loader_lane *lane = &l->lanes[i];

		while (lane->first < lane->count)
			finish(l, item_of(lane->tags[lane->first++]),
			       -ECANCELED);
		lane->first = lane->count = 0;
	}
	while ((item = stele_fifo_pop(&l->retry)))
		finish(l, item, -ECANCELED);
	l->filling = NULL;
	for (; batch && batch->planned < l->opts.batch_size;) {
		item = &batch->items[batch->planned++];
		*item = (struct stele_loader_item){.batch = batch};
		finish(l, item, -ECANCELED);
	}
}

void stele_loader_plan_restart(struct stele_loader *l,
			       const struct stele_loader_cursor *cursor,
			       uint64_t seed)
{
	cancel_planned(l);
	l->plan = *cursor;
	l->order.seed = seed;
}
