/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h - what the threads of a loader share
 *
 *	caller			I/O thread			transform threads
 *	next, release	<->	plan, submit, collect	->	loader_pool.c
 *	loader.c		loader_io.c, loader_plan.c
 *
 * The I/O thread alone knows the readers, plans batches in order of position, and is the
 * only one to give memory back. A batch goes
 *
 *	free -> queue (planned, then filled; ready when no item is missing) ->
 *	with the caller -> released -> free
 *
 * and from the queue straight to released when a restore drops it. `lock` guards the
 * lists and flags below it; it is taken for batches, not for samples. Lock order: a
 * pool's lock is never held together with it.
 */
#ifndef STELE_READ_LOADER_LOADER_H
#define STELE_READ_LOADER_LOADER_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/fifo.h"
#include "lib/base/log.h"
#include "lib/device/device.h"
#include "lib/read/loader/loader_order.h"

#define STELE_LOADER_CHUNK	 64u /* ids that are submitted at once, at most */
#define STELE_LOADER_CHUNK_MIN	 4u  /* of a source with a small share */
#define STELE_LOADER_CHUNKS	 1024u /* of all sources, about */
#define STELE_LOADER_ATTEMPTS	 8u  /* of SUBSTITUTE for one position */

struct stele_loader_batch;

/* One place of a batch. */
struct stele_loader_item {
	struct stele_sample sample;
	struct stele_loader_batch *batch;
	struct stele_loader_item *next; /* of the one list that it is in */
	uint64_t id;
	uint64_t size; /* bytes that count for it until its batch is released */
	void *buffer;  /* of its reader's arena */
	void *own;     /* memory outside the arena */
	uint32_t source;
	uint32_t attempt; /* of a stand-in */
	int status;
};

struct stele_loader_item_list STELE_FIFO(stele_loader_item);

struct stele_loader_batch {
	const struct stele_loader *loader;
	struct stele_loader_item *items; /* batch_size of them, by position */
	struct stele_loader_batch *next; /* of the one list that it is in */
	struct stele_loader_batch *next_of_all;
	uint64_t epoch, index;
	uint64_t first;	  /* position of the step's first sample */
	uint32_t planned; /* items */
	atomic_uint missing; /* items that are not finished */
	atomic_bool dropped;
	bool ready;
	bool lent; /* to the caller */
	/* For the caller, when nothing is missing. */
	uint32_t *order; /* items as they were finished */
	atomic_uint ordered;
	struct stele_sample *samples;
	uint32_t *sources;
	uint32_t count, padded, left_out, replaced;
	int error, skip_error;
	const struct stele_loader_item *failed; /* that the error is of */
};

struct stele_loader_batch_list STELE_FIFO(stele_loader_batch);

/*
 * Where in an epoch; steps are counted from where it began or was restored. They are those of
 * this worker: one of each round of all workers.
 */
struct stele_loader_cursor {
	uint64_t epoch;
	uint64_t start; /* position */
	uint64_t step, steps;
};

/* Of the readers, to their thread. */
struct stele_loader_question {
	struct stele_reader_stats *stats; /* set, unless NULL */
	struct stele_histogram *latency;  /* added to, unless NULL */
	enum stele_latency which;
};

struct stele_loader_pool {
	struct stele_loader *loader;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct stele_loader_item_list items;
	bool stop;
	uint32_t count;
	pthread_t threads[STELE_LOADER_THREADS_MAX];
};

/* The I/O thread's, of one source. */
struct stele_loader_lane {
	struct stele_dataset *ds;
	struct stele_reader *reader;
	int fd; /* to poll, of several lanes, maybe the same; -1: there is none */
	uint64_t arena_size;
	/* Planned, and not yet taken by the reader. */
	uint64_t ids[STELE_LOADER_CHUNK], tags[STELE_LOADER_CHUNK];
	uint32_t first, count, chunk;
};

struct stele_loader {
	/* Fixed once it is open. */
	struct stele_loader_opts opts; /* without zeros that stand for defaults */
	struct stele_log log;
	uint32_t source_count;
	uint64_t size;	    /* positions of an epoch */
	uint64_t step_size; /* positions of a step */
	unsigned int fork_count;
	pthread_t thread;
	int wake_fd;

	/* The I/O thread's. */
	struct stele_loader_order order;
	struct stele_loader_lane *lanes;
	struct stele_queue_group group; /* of lanes with a small share */
	struct stele_loader_cursor plan;
	struct stele_loader_batch *filling; /* not all of it is planned */
	const struct stele_loader_batch *head; /* the one that is due, as of late */
	struct stele_loader_batch_list free;
	struct stele_loader_batch *all;
	struct stele_loader_item_list retry; /* a stand-in is to be read */
	uint64_t outstanding; /* of all readers */
	_Atomic uint64_t held;	 /* bytes; written by that thread alone */

	/* The caller's. */
	struct stele_loader_cursor at;
	uint64_t seed;
	struct stele_loader_stats stats;

	struct stele_loader_pool pool;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* for the caller */
	struct stele_loader_batch_list queue, released;
	struct stele_loader_item_list failed; /* in a transform, for the I/O thread */
	struct stele_loader_cursor restart;
	uint64_t restart_seed;
	const struct stele_loader_question *question; /* that the caller waits for */
	bool opened, restarting, stop;
	bool news;     /* for the I/O thread, since it looked */
	bool sleeping; /* it has to be woken */
	bool at_end;   /* the caller: of its epoch */
	int refused; /* no readers: once opened, for the opener */
	int broken;  /* from then on, for the caller */
	int event_fd; /* -1 until asked for */
	bool signalled;
};

/* ---- loader_batch.c ------------------------------------------------------------- */

/* A free one, or a new one; only the I/O thread. NULL: no memory. */
struct stele_loader_batch *stele_loader_batch_take(struct stele_loader *loader);
/* When no thread is left. */
void stele_loader_batch_free_all(struct stele_loader *loader);
/* Positions are modulo the epoch: those behind its end pad. */
uint64_t stele_loader_item_position(const struct stele_loader *loader,
				    const struct stele_loader_item *item,
				    bool *padded);
/* item->status is what became of it. Any thread; the last one makes the batch ready. */
void stele_loader_item_finish(struct stele_loader *loader,
			      struct stele_loader_item *item);

/* ---- loader.c: under the lock ------------------------------------------------------ */

/* After anything that may change whether next() would wait. */
void stele_loader_update_event(struct stele_loader *loader);
/* Something is to be done by the I/O thread. */
void stele_loader_tell(struct stele_loader *loader);

/* ---- loader.c: arithmetic of epochs ------------------------------------------------ */

void stele_loader_cursor_set(const struct stele_loader *loader, uint64_t epoch,
			     uint64_t start, struct stele_loader_cursor *cursor);

/* ---- threads ---------------------------------------------------------------------------- */

/* loader_io.c */
void *stele_loader_io_main(void *loader);
/* loader_plan.c: all that may be submitted now is; restarts go through it. */
void stele_loader_plan(struct stele_loader *loader);
void stele_loader_plan_restart(struct stele_loader *loader,
			       const struct stele_loader_cursor *cursor,
			       uint64_t seed);
/* An item of a reader has failed; takes it. */
void stele_loader_plan_failed(struct stele_loader *loader,
			      struct stele_loader_item *item, int status);
/* Memory of an item goes back. */
void stele_loader_item_release(struct stele_loader *loader,
			       struct stele_loader_item *item);

/* loader_pool.c. Return: 0; errno. */
int stele_loader_pool_start(struct stele_loader *loader);
/* Takes all of the list. */
void stele_loader_pool_push(struct stele_loader_pool *pool,
			    struct stele_loader_item_list *items);
/* Once; waits for callbacks that run. What waits in the list stays there. */
void stele_loader_pool_stop(struct stele_loader_pool *pool);
/* When nobody can push any more. Idempotent. */
void stele_loader_pool_release(struct stele_loader_pool *pool);

#endif
