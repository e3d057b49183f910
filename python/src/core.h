/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h - what lies below the Python objects: plain C with reference counts of its own
 *
 * A *core* is an open dataset, a *block* the memory of samples that were read together, a
 * *service* the thread that reads for all others, a *lender* a loader whose batches are
 * out. They can be released by any thread, with or without the GIL, and in any order: a
 * sample keeps its block, a block its core. Nothing here includes Python.h.
 *
 * Locks. py_lock guards all that threads of a process share: the services' queues and the
 * pool of memory. It is held for a few instructions only, never while waiting or while
 * calling into Python, and across fork(), so that the child finds it free.
 */
#ifndef STELE_PY_CORE_H
#define STELE_PY_CORE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include <stele.h>

/* ---- what the library says: log.c ------------------------------------------ */

struct py_line {
	struct py_line *next;
	enum stele_log_level level;
	char text[];
};

/* Of one handle of the library. Zeroed: nothing was said. */
struct py_log {
	struct py_line *first, *last; /* under py_log_lock */
	atomic_uint count;
};

extern pthread_mutex_t py_log_lock;

/* A callback for the library; `user` is the log. */
void py_log_add(void *user, enum stele_log_level level, const char *line);
/* All that waits, in order, to be freed. */
struct py_line *py_log_take(struct py_log *log);
void py_lines_free(struct py_line *lines);

/* ---- what is open: core.c ------------------------------------------------- */

struct py_service;
struct py_state;

struct py_core {
	atomic_size_t refs;    /* of objects, blocks, loaders */
	atomic_size_t handles; /* of Datasets that are not closed */
	struct py_state *state;
	struct py_log log;
	struct stele_dataset *ds;
	struct stele_view *view; /* NULL: samples are read by the service */
	struct stele_dataset_info info;
	int direct_pays; /* reads are short, and need not be interrupted */
	uint32_t field_count;
	struct stele_field *fields;
	char *target, *backend; /* as given; backend may be NULL */
	uint32_t verify;
	struct py_service *service; /* under py_lock; NULL: not started */
	atomic_uint callers;	    /* threads that are reading now */
	atomic_size_t direct;	    /* samples that the service was not needed for */
	atomic_size_t held;	    /* bytes of blocks */
	atomic_size_t blocks;
};

extern pthread_mutex_t py_lock;
extern unsigned int py_generation; /* of this process: how many forks ago it began */

void py_fork_watch(void);
/*
 * Return: 0; negative errno of the library. The core, with one reference, is there even if it
 * is not open, for its log; NULL: no memory.
 */
int py_core_open(const char *target, uint32_t verify, const char *backend,
		 int mmap, struct py_core **out);
struct py_core *py_core_ref(struct py_core *core);
void py_core_unref(struct py_core *core);
/* The last one stops the service. May wait for reads in flight. */
void py_core_handle_close(struct py_core *core);

/* ---- memory: block.c ------------------------------------------------------- */

struct py_block;

/* One sample of a block. */
struct py_entry {
	struct stele_sample sample;
	struct py_block *block;
	struct py_core *core; /* kept by the block */
};

struct py_block {
	atomic_size_t refs;
	struct py_core *core; /* whose service read it, kept; NULL: a loader's */
	void *memory;	      /* of the pool; NULL: not ours */
	size_t memory_size;
	void (*release)(struct py_block *block); /* of what is not ours; or NULL */
	void *owner;				 /* for release */
	unsigned int generation; /* where the memory exists; 0: in any process */
	int readonly;
	/* While it is read: the service's. */
	struct py_block *next;
	size_t submitted, missing;
	sem_t done;
	size_t count;
	struct py_entry entries[];
};

/* Zeroed, one reference; NULL: no memory. */
struct py_block *py_block_new(struct py_core *core, size_t count);
/* Memory for its samples from the pool. Return: 0; -ENOMEM. */
int py_block_allocate(struct py_block *block, size_t size);
void py_block_ref(struct py_block *block, size_t count);
void py_block_unref(struct py_block *block);
/* Whether the caller's reference is the only one. */
int py_block_is_last(const struct py_block *block);

/* ---- reading: service.c ------------------------------------------------------ */

/* How long anything is waited for before looking for a KeyboardInterrupt. */
#define PY_WAIT_NS 100000000L

/*
 * Have the samples of a block read, each into the place that it has; the block's `done` is
 * posted when all have a status. Return: 0; negative errno: the thread did not start.
 */
int py_service_queue(struct py_core *core, struct py_block *block);
/* Waits for what it reads. */
void py_service_stop(struct py_core *core);
/* Return: whether there is one, and its figures. */
int py_service_stats(struct py_core *core, struct stele_reader_stats *stats,
		     uint64_t *rounds);

/* ---- loaders: lender.c --------------------------------------------------------- */

/* A loader, until it is closed and the last view of its last batch is gone. */
struct py_lender {
	atomic_size_t refs; /* of the object, and of batches that are out */
	pthread_mutex_t lock; /* for the loader */
	struct stele_loader *loader;
	struct py_log log; /* of the loader; datasets have their own */
	struct py_state *state;
	struct py_core **cores; /* by source, kept */
	uint32_t core_count;
	unsigned int generation;
	int fd;
	uint64_t steps; /* of an epoch */
	uint64_t step_size; /* in positions */
	uint32_t worker;
	int fresh; /* with the lock: nothing was taken since it was placed */
	uint64_t turn; /* with the lock: of the iterator that began last, from 1 */
	/* Under py_lock: */
	uint64_t taken, counted; /* numbers of the newest batches */
	uint8_t place[STELE_LOADER_STATE_SIZE]; /* behind what was counted */
	uint8_t before[STELE_LOADER_STATE_SIZE]; /* without the newest of it */
	_Atomic(struct py_lent *) returned;
	atomic_size_t lent; /* batches */
};

/* Room for so many cores; NULL: no memory. */
struct py_lender *py_lender_new(size_t core_count);
void py_lender_ref(struct py_lender *lender);
/* May wait for reads in flight. */
void py_lender_unref(struct py_lender *lender);
/* With the lock: give back to the loader what nobody looks at any more. */
void py_lender_collect(struct py_lender *lender);
/*
 * Batches are *taken* from the library, and *counted* once the caller has them: the state is
 * that behind the newest one that was counted, so what fails in between comes again.
 */
struct py_taken {
	uint64_t number;
	uint8_t place[STELE_LOADER_STATE_SIZE]; /* behind it */
};
/* With the lock: it is taken. */
void py_lender_take(struct py_lender *lender, struct py_taken *taken);
/* Under py_lock: it is counted, with those before it, unless the loader was placed since. */
void py_lender_count(struct py_lender *lender, const struct py_taken *taken);
/* A batch was lost by who should have got it: if it is the newest, it does not count. */
void py_lender_uncount(const struct py_block *block, uint64_t number);
/* With the lock: all is counted, the loader is where it should be. */
void py_lender_place(struct py_lender *lender);
/* With the lock: place it there. Return: 0; negative errno of the library. */
int py_lender_restore(struct py_lender *lender, const uint8_t *state);
/* With the lock: a batch as a block, which keeps the lender. NULL: no memory; given back. */
struct py_block *py_lender_lend(struct py_lender *lender, struct stele_batch *batch);

/* ---- time ---------------------------------------------------------------------- */

/* When PY_WAIT_NS from now are over, by CLOCK_MONOTONIC. */
struct timespec py_wait_end(void);

#endif
