/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - one thread per dataset and process that reads for all others
 *
 * Threads that want samples queue a block and wait for it. The service takes all blocks
 * that are queued, submits as many of their samples as there is room for, collects, and
 * wakes those whose blocks are complete: so reads of many threads go out together, and a
 * reader never moves between threads.
 *
 * A block that is queued has a reference of the service's. Where that is the last one, who
 * waited has left (an interrupt): what is not submitted is not read any more. Statuses and
 * samples are written by the service alone until it posts `done`.
 */
#include "core.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#define SUBMIT_MAX   256u
#define COLLECT_MAX  256u
/* Share of what is in flight to wait for, while others may come. */
#define WAIT_SHARE   4u
/* Bounds what may be in flight (half of it); samples do not go there. */
#define ARENA_SIZE   (32u << 20)

struct py_service {
	struct py_core *core; /* no reference: it stops the service first */
	struct stele_reader *reader;
	pthread_t thread;
	unsigned int generation;
	int broken; /* only the service's own thread */
	struct py_block *active, **active_end; /* being read, its own */
	struct py_block *submitting;	       /* the first not wholly submitted */
	/* Under py_lock: */
	pthread_cond_t news;
	struct py_block *queue, **queue_end;
	int stopping, sleeping;
	struct stele_reader_stats *question; /* to be answered, then `answered` */
	pthread_cond_t answered;
	uint64_t rounds; /* times that something was taken from the queue */
};

/* ---- the service's thread: blocks ------------------------------------------------ */

static void finish(struct py_entry *entry, int status)
{
	if (status) {
		uint64_t id = entry->sample.id;

		entry->sample = (struct stele_sample){.id = id, .status = status};
	}
	entry->block->missing--;
}

/* Wake whose block is complete. */
static void finish_blocks(struct py_service *s)
{
	struct py_block **at = &s->active;

	while (*at) {
		struct py_block *block = *at;

		if (block->missing) {
			at = &block->next;
			continue;
		}
		*at = block->next;
		sem_post(&block->done);
		py_block_unref(block);
	}
	s->active_end = at;
}

/* What the kernel may still write to stays, for good. */
static void fail_all(struct py_service *s, int error)
{
	s->broken = error;
	s->submitting = NULL;
	for (struct py_block *block = s->active; block; block = block->next) {
		if (!block->missing)
			continue;
		if (block->submitted)
			py_block_ref(block, 1);
		for (size_t i = 0; i < block->count; i++)
			block->entries[i].sample = (struct stele_sample){
				.id = block->entries[i].sample.id,
				.status = error,
			};
		block->missing = 0;
	}
	finish_blocks(s);
}

/* The next samples that are not submitted, of as many blocks as it takes. */
static unsigned int gather(const struct py_service *s, struct stele_destination *to)
{
	unsigned int count = 0;

	for (struct py_block *block = s->submitting; block; block = block->next)
		for (size_t i = block->submitted; i < block->count; i++) {
			struct py_entry *entry = &block->entries[i];

			if (count == SUBMIT_MAX)
				return count;
			to[count++] = (struct stele_destination){
				.id = entry->sample.id,
				.tag = (uintptr_t)entry,
				.memory = (void *)entry->sample.data,
				.memory_size = entry->sample.size,
			};
		}
	return count;
}

/* So many of them are submitted. */
static void advance(struct py_service *s, unsigned int count)
{
	while (s->submitting) {
		struct py_block *block = s->submitting;
		size_t left = block->count - block->submitted;

		if (count < left) {
			block->submitted += count;
			return;
		}
		count -= (unsigned int)left;
		block->submitted = block->count;
		s->submitting = block->next;
	}
}

/* What nobody waits for any more is complete with what is in flight. */
static void drop_left(struct py_service *s)
{
	for (struct py_block *block = s->submitting; block; block = block->next) {
		if (!py_block_is_last(block))
			continue;
		block->missing -= block->count - block->submitted;
		block->submitted = block->count;
	}
	advance(s, 0);
}

static void submit(struct py_service *s)
{
	struct stele_destination to[SUBMIT_MAX];
	unsigned int count;
	int ret = 1;

	drop_left(s);
	while (ret && (count = gather(s, to))) {
		ret = stele_reader_submit_into(s->reader, to, count);
		if (ret < 0)
			finish((struct py_entry *)(uintptr_t)to[0].tag, ret);
		advance(s, ret < 0 ? 1 : (unsigned int)ret);
	}
}

/*
 * How many to wait for: a block that is alone is waited for as a whole, which takes the
 * fewest system calls; else some, so that none waits for the others.
 */
static unsigned int wanted(const struct py_service *s)
{
	unsigned int some = 1 + stele_reader_in_flight(s->reader) / WAIT_SHARE;
	size_t missing = s->active ? s->active->missing : 1;

	if (missing > some && s->active && s->active->next)
		missing = some;
	return missing < COLLECT_MAX ? (unsigned int)missing : COLLECT_MAX;
}

static void collect(struct py_service *s)
{
	struct stele_sample samples[COLLECT_MAX];
	int count = stele_reader_collect(s->reader, samples, COLLECT_MAX,
					 wanted(s));

	if (count < 0) {
		fail_all(s, count);
		return;
	}
	for (int i = 0; i < count; i++) {
		struct py_entry *entry = (void *)(uintptr_t)samples[i].tag;

		if (!samples[i].status)
			entry->sample = samples[i];
		finish(entry, samples[i].status);
	}
}

/* ---- the service's thread: its life -------------------------------------------------- */

/* Take what is queued, waiting if there is nothing else to do. False: stop. */
static int take(struct py_service *s)
{
	int go_on;

	pthread_mutex_lock(&py_lock);
	while (!s->queue && !s->active && !s->stopping && !s->question) {
		s->sleeping = 1;
		pthread_cond_wait(&s->news, &py_lock);
	}
	s->sleeping = 0;
	if (s->question) {
		if (s->reader)
			stele_reader_stats(s->reader, s->question);
		s->question = NULL;
		pthread_cond_broadcast(&s->answered);
	}
	if (s->queue) {
		*s->active_end = s->queue;
		s->active_end = s->queue_end;
		if (!s->submitting)
			s->submitting = s->queue;
		s->queue = NULL;
		s->queue_end = &s->queue;
		s->rounds++;
	}
	go_on = s->active || !s->stopping;
	pthread_mutex_unlock(&py_lock);
	return go_on;
}

static void *serve(void *arg)
{
	struct py_service *s = arg;

	s->broken = stele_reader_open(
		s->core->ds,
		&STELE_OPTS(stele_reader_opts, .arena_size = ARENA_SIZE),
		&s->reader);
	while (take(s)) {
		if (s->broken) {
			fail_all(s, s->broken);
			continue;
		}
		submit(s);
		if (stele_reader_in_flight(s->reader))
			collect(s);
		finish_blocks(s);
	}
	stele_reader_close(s->reader);
	return NULL;
}

static int start_thread(struct py_service *s)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&s->thread, NULL, serve, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

/* The parent's, in a child: its thread does not exist here. */
static void abandon(struct py_service *s)
{
	stele_reader_close(s->reader);
	free(s);
}

/* Under py_lock. Return: 0; negative errno. */
static int start(struct py_core *core)
{
	struct py_service *s = core->service;
	int err;

	if (s && s->generation == py_generation)
		return 0;
	core->service = NULL;
	if (s)
		abandon(s);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->core = core;
	s->generation = py_generation;
	s->active_end = &s->active;
	s->queue_end = &s->queue;
	pthread_cond_init(&s->news, NULL);
	pthread_cond_init(&s->answered, NULL);
	err = start_thread(s);
	if (err) {
		free(s);
		return err;
	}
	core->service = s;
	return 0;
}

int py_service_queue(struct py_core *core, struct py_block *block)
{
	struct py_service *s;
	int err;

	pthread_mutex_lock(&py_lock);
	err = start(core);
	if (!err) {
		s = core->service;
		py_block_ref(block, 1);
		*s->queue_end = block;
		s->queue_end = &block->next;
		if (s->sleeping)
			pthread_cond_signal(&s->news);
	}
	pthread_mutex_unlock(&py_lock);
	return err;
}

void py_service_stop(struct py_core *core)
{
	struct py_service *s;

	pthread_mutex_lock(&py_lock);
	s = core->service;
	core->service = NULL;
	if (s && s->generation == py_generation) {
		s->stopping = 1;
		pthread_cond_signal(&s->news);
	}
	pthread_mutex_unlock(&py_lock);
	if (!s)
		return;
	if (s->generation != py_generation) {
		abandon(s);
		return;
	}
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->news);
	pthread_cond_destroy(&s->answered);
	free(s);
}

int py_service_stats(struct py_core *core, struct stele_reader_stats *stats,
		     uint64_t *rounds)
{
	struct py_service *s;
	int there;

	*rounds = 0;
	pthread_mutex_lock(&py_lock);
	s = core->service;
	there = s && s->generation == py_generation;
	if (there) {
		while (s->question)
			pthread_cond_wait(&s->answered, &py_lock);
		s->question = stats;
		pthread_cond_broadcast(&s->news);
		while (s->question == stats)
			pthread_cond_wait(&s->answered, &py_lock);
		*rounds = s->rounds;
	}
	pthread_mutex_unlock(&py_lock);
	return there;
}
