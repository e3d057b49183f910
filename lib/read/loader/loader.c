/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - what the caller of a loader sees: batches, in order of step
 *
 * `at` is where the caller is: the step that next returns. The I/O thread plans ahead of
 * it by the same arithmetic (cursor), so neither has to tell the other. A restore drops
 * what is in the queue, and lets the I/O thread begin again there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/base/error.h"
#include "lib/base/options.h"

#include "lib/read/fetch.h"
#include "lib/read/loader/loader.h"

static bool forked(const struct stele_loader *l)
{
	return l->fork_count != stele_fork_count();
}

/* ---- steps of an epoch ------------------------------------------------------------ */

void stele_loader_cursor_set(const struct stele_loader *l, uint64_t epoch,
			     uint64_t start, struct stele_loader_cursor *cursor)
{
	const uint64_t left = l->size - start;
	const bool pads = l->opts.last == STELE_LAST_PAD && left % l->step_size;
	const uint64_t steps = left / l->step_size + pads; /* of all workers */

	*cursor = (struct stele_loader_cursor){
		.epoch = epoch,
		.start = start,
		.steps = steps / l->opts.workers + (steps % l->opts.workers > l->opts.worker),
	};
}

/* Behind the rounds that were done; at most the epoch's size. */
static uint64_t cursor_position(const struct stele_loader *l,
				const struct stele_loader_cursor *cursor)
{
	const uint64_t steps = cursor->step * l->opts.workers;

	/* The last step may reach over the end, where it pads, and so may the last round. */
	if (steps > (l->size - cursor->start) / l->step_size)
		return l->size;
	return cursor->start + steps * l->step_size;
}

/* ---- under the lock ----------------------------------------------------------------- */

void stele_loader_tell(struct stele_loader *l)
{
	l->news = true;
	if (l->sleeping) {
		l->sleeping = false;
		eventfd_write(l->wake_fd, 1);
	}
}

static bool would_wait(const struct stele_loader *l)
{
	return !l->at_end && !l->broken &&
	       !(l->queue.head && l->queue.head->ready);
}

void stele_loader_update_event(struct stele_loader *l)
{
	bool wanted = !would_wait(l);
	eventfd_t value;

	if (l->event_fd < 0 || wanted == l->signalled)
		return;
	if (wanted)
		eventfd_write(l->event_fd, 1);
	else
		eventfd_read(l->event_fd, &value);
	l->signalled = wanted;
}

/* ---- batches -------------------------------------------------------------------------- */

/* The caller's place, and what follows from it. */
static void set_place(struct stele_loader *l,
		      const struct stele_loader_cursor *at)
{
	l->at = *at;
	l->at_end = at->step == at->steps;
	stele_loader_update_event(l);
}

static void end_epoch(struct stele_loader *l)
{
	struct stele_loader_cursor at;

	stele_loader_cursor_set(l, l->at.epoch + 1, 0, &at);
	pthread_mutex_lock(&l->lock);
	set_place(l, &at);
	pthread_mutex_unlock(&l->lock);
}

/* With the lock held. */
static void give_back(struct stele_loader *l, struct stele_loader_batch *batch)
{
	batch->lent = false;
	stele_fifo_push(&l->released, batch);
	stele_loader_tell(l);
}

/* Unless it is a copy of what was given back: then another batch may have its memory. */
static void take_back(struct stele_loader *l, const struct stele_batch *batch)
{
	struct stele_loader_batch *b = batch->buffer;

	pthread_mutex_lock(&l->lock);
	if (b->loader == l && b->lent && b->epoch == batch->epoch && b->index == batch->index)
		give_back(l, b);
	pthread_mutex_unlock(&l->lock);
}

static int wait_for_batch(struct stele_loader *l,
			  struct stele_loader_batch **batch)
{
	struct stele_loader_cursor at = l->at;
	uint64_t begin = 0;
	int err;

	pthread_mutex_lock(&l->lock);
	if (would_wait(l))
		begin = stele_fetch_clock();
	while (would_wait(l))
		pthread_cond_wait(&l->changed, &l->lock);
	*batch = NULL;
	err = l->broken;
	if (l->queue.head && l->queue.head->ready) {
		*batch = stele_fifo_pop(&l->queue);
		(*batch)->lent = true;
		at.step++;
		set_place(l, &at);
		/* Another one is due, which may need room that none else gets. */
		stele_loader_tell(l);
	}
	pthread_mutex_unlock(&l->lock);
	if (begin)
		l->stats.wait_ns += stele_fetch_clock() - begin;
	return *batch ? 0 : err;
}

/* The batch is lost, but not which sample is to blame. */
static int fail_batch(struct stele_loader *l, struct stele_loader_batch *b,
		      struct stele_batch *batch)
{
	const struct stele_batch known = {
		.failed_id = b->failed->id,
		.failed_source = b->failed->source,
	};
	const int err = b->error;
	char line[STELE_LOG_LINE_MAX];

	snprintf(line, sizeof(line),
		 "cannot read sample %" PRIu64 " of source %" PRIu32 ": %s",
		 known.failed_id, known.failed_source, stele_strerror(err));
	stele_error_note(line);
	stele_output_fill(batch, &known, sizeof(known));
	pthread_mutex_lock(&l->lock);
	give_back(l, b);
	pthread_mutex_unlock(&l->lock);
	return err;
}

static int loader_next(struct stele_loader *l, struct stele_batch *batch)
{
	struct stele_batch known = {.failed_id = UINT64_MAX};
	struct stele_loader_batch *b;
	int err;

	err = stele_output_set(batch, &known, buffer, &l->log);
	if (err)
		return err;
	if (forked(l))
		return -EOWNERDEAD;
	if (l->at.step == l->at.steps) {
		end_epoch(l);
		return 0;
	}
	err = wait_for_batch(l, &b);
	if (err)
		return err;
	if (b->error)
		return fail_batch(l, b, batch);
	known = (struct stele_batch){
		.samples = b->samples,
		.count = b->count,
		.padded = b->padded,
		.skipped = b->left_out + b->replaced,
		.skip_error = b->skip_error,
		.source_count = l->source_count,
		.sources = b->sources,
		.epoch = b->epoch,
		.index = b->index,
		.buffer = b,
		.failed_id = UINT64_MAX,
	};
	stele_output_fill(batch, &known, sizeof(known));
	l->stats.batches++;
	l->stats.skipped += b->left_out;
	l->stats.substituted += b->replaced;
	l->stats.padded += b->padded;
	return 1;
}

int stele_loader_next(struct stele_loader *l, struct stele_batch *batch)
{
	return STELE_CALL(loader_next(l, batch),
			  "cannot read the next batch");
}

void stele_loader_release(struct stele_loader *l, struct stele_batch *batch)
{
	const struct stele_batch none = {0};

	if (batch->buffer && !forked(l))
		take_back(l, batch);
	stele_output_fill(batch, &none, sizeof(none));
}

uint64_t stele_loader_remaining(const struct stele_loader *l)
{
	return l->at.steps - l->at.step;
}

static int loader_fd(struct stele_loader *l)
{
	int fd;

	if (forked(l))
		return -EOWNERDEAD;
	pthread_mutex_lock(&l->lock);
	if (l->event_fd < 0)
		l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = l->event_fd < 0 ? -errno : l->event_fd;
	stele_loader_update_event(l);
	pthread_mutex_unlock(&l->lock);
	return fd;
}

int stele_loader_fd(struct stele_loader *l)
{
	return STELE_CALL(loader_fd(l),
			  "no descriptor to wait for the loader");
}

/* ---- state ------------------------------------------------------------------------------ */

void stele_loader_save(const struct stele_loader *l,
		       uint8_t state[STELE_LOADER_STATE_SIZE])
{
	const struct stele_loader_place place = {
		.seed = l->seed,
		.epoch = l->at.epoch,
		.position = cursor_position(l, &l->at),
	};

	stele_loader_place_encode(&l->order, &place, state);
}

/* What was read ahead is of no use any more. */
static void drop_queue(struct stele_loader *l)
{
	struct stele_loader_batch *batch;

	while ((batch = stele_fifo_pop(&l->queue))) {
		atomic_store(&batch->dropped, true);
		if (batch->ready)
			stele_fifo_push(&l->released, batch);
	}
}

static int loader_restore(struct stele_loader *l,
			  const uint8_t state[STELE_LOADER_STATE_SIZE])
{
	struct stele_loader_place place;
	struct stele_loader_cursor at;
	int err;

	if (forked(l))
		return -EOWNERDEAD;
	err = stele_loader_place_decode(&l->order, state, &place);
	if (err)
		return err;
	stele_loader_cursor_set(l, place.epoch, place.position, &at);
	l->seed = place.seed;
	pthread_mutex_lock(&l->lock);
	drop_queue(l);
	l->restart = at;
	l->restart_seed = place.seed;
	l->restarting = true;
	stele_loader_tell(l);
	set_place(l, &at);
	pthread_mutex_unlock(&l->lock);
	return 0;
}

int stele_loader_restore(struct stele_loader *l,
			 const uint8_t state[STELE_LOADER_STATE_SIZE])
{
	return STELE_CALL(loader_restore(l, state),
			  "cannot restore the loader");
}

/* ---- statistics ---------------------------------------------------------------------------- */

/* Of the readers: their thread fills them in, when it comes by. */
static void ask_readers(const struct stele_loader *loader,
			const struct stele_loader_question *question)
{
	struct stele_loader *l = (struct stele_loader *)loader;

	if (forked(l))
		return;
	pthread_mutex_lock(&l->lock);
	l->question = question;
	stele_loader_tell(l);
	while (l->question)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
}

static int loader_stats(const struct stele_loader *l,
			struct stele_loader_stats *stats)
{
	const struct stele_loader_question question = {0};
	struct stele_loader_stats known = l->stats;

	/* By then what was released is given back. */
	ask_readers(l, &question);
	known.held_size = atomic_load_explicit(&l->held, memory_order_relaxed);
	return stele_output_set(stats, &known, held_size, &l->log);
}

int stele_loader_stats(const struct stele_loader *l,
		       struct stele_loader_stats *stats)
{
	return STELE_CALL(loader_stats(l, stats), "no statistics of the loader");
}

static int loader_reader_stats(const struct stele_loader *l,
			       struct stele_reader_stats *stats)
{
	struct stele_reader_stats known = {.size = sizeof(known)};
	const struct stele_loader_question question = {.stats = &known};

	ask_readers(l, &question);
	return stele_output_set(stats, &known, tier, &l->log);
}

int stele_loader_reader_stats(const struct stele_loader *l,
			      struct stele_reader_stats *stats)
{
	return STELE_CALL(loader_reader_stats(l, stats),
			  "no statistics of the loader's readers");
}

void stele_loader_latency(const struct stele_loader *l,
			  enum stele_latency which, struct stele_histogram *sum)
{
	const struct stele_loader_question question = {.latency = sum,
						       .which = which};

	ask_readers(l, &question);
}
