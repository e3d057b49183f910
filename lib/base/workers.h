/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.h - threads of the library: how many, how they start, run and join
 *
 * Every thread starts with all signals blocked, so handlers run where the program
 * expects them, and carries a name that top(1) and gdb(1) show. A job that is done
 * in parallel is stele_workers_run(); whoever keeps threads between jobs (checkers,
 * a loader's transform, the threads backend) starts them here and owns its queue.
 */
#ifndef STELE_BASE_WORKERS_H
#define STELE_BASE_WORKERS_H

#include <pthread.h>

/* How often a scan or another long step asks whether to go on. */
#define STELE_PROGRESS_MS 50

/*
 * Processors that this process may run on: its affinity mask, as set by a cpuset or
 * taskset(1). At least 1.
 */
unsigned int stele_processors(void);

/* `name`: at most 15 bytes. Return: 0; -EAGAIN; -EPERM. */
int stele_thread_start(pthread_t *thread, const char *name,
		       void *(*main)(void *), void *arg);

/* `index`: 0 to count - 1. Returns 0 or a negative errno. */
typedef int (*stele_workers_fn)(void *user, unsigned int index);
typedef void (*stele_workers_tick_fn)(void *user);

/*
 * Run work() `count` (at least 1) times in parallel, and return when all have; it is
 * their business to stop one another. If the system refuses threads, fewer run.
 * With `tick`, the calling thread only waits and calls it every STELE_PROGRESS_MS;
 * without, it is one of the workers.
 * Return: 0; the first error of a worker; -EAGAIN (no thread at all); -ENOMEM.
 */
int stele_workers_run(const char *name, unsigned int count,
		      stele_workers_fn work, stele_workers_tick_fn tick,
		      void *user);

#endif
