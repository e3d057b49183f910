/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.c - see workers.h
 */
#include "lib/base/workers.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/error.h"

#define PROCESSORS_MAX 8192

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t ended; /* by CLOCK_MONOTONIC */
	unsigned int running; /* threads */
	int error; /* the first, and what it left */
	struct stele_error_line line;
	stele_workers_fn work;
	void *user;
};

struct worker {
	struct workers *workers;
	pthread_t thread;
	unsigned int index;
};

/* sysconf() counts processors of the machine that a cpuset keeps from us. */
unsigned int stele_processors(void)
{
	cpu_set_t allowed[PROCESSORS_MAX / CPU_SETSIZE];

	if (sched_getaffinity(0, sizeof(allowed), allowed))
		return 1;
	return (unsigned int)CPU_COUNT_S(sizeof(allowed), allowed);
}

int stele_thread_start(pthread_t *thread, const char *name,
		       void *(*main)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(*thread, name);
	return -err;
}

static void work(struct workers *workers, unsigned int index)
{
	int ret = workers->work(workers->user, index);

	pthread_mutex_lock(&workers->lock);
	/* Of several that fail for the same reason any one may be the one that says so. */
	if (ret < 0 && (!workers->error ||
			(ret == workers->error && !workers->line.text[0]))) {
		workers->error = ret;
		stele_error_take(&workers->line);
	}
	pthread_mutex_unlock(&workers->lock);
}

static void *worker_main(void *data)
{
	struct worker *worker = data;
	struct workers *workers = worker->workers;

	work(workers, worker->index);
	pthread_mutex_lock(&workers->lock);
	if (--workers->running == 0)
		pthread_cond_signal(&workers->ended);
	pthread_mutex_unlock(&workers->lock);
	return NULL;
}

/* How many were started. */
static unsigned int start_all(struct workers *workers, const char *name,
			      struct worker *each, unsigned int count)
{
	unsigned int started;

	pthread_mutex_lock(&workers->lock);
	for (started = 0; started < count; started++) {
		struct worker *worker = &each[started];

		worker->workers = workers;
		worker->index = started;
		if (stele_thread_start(&worker->thread, name, worker_main,
				       worker))
			break;
		workers->running++;
	}
	pthread_mutex_unlock(&workers->lock);
	return started;
}

static void time_after(struct timespec *when, unsigned int ms)
{
	clock_gettime(CLOCK_MONOTONIC, when);
	when->tv_nsec += (long)ms * 1000000;
	when->tv_sec += when->tv_nsec / 1000000000;
	when->tv_nsec %= 1000000000;
}

static void watch(struct workers *workers, stele_workers_tick_fn tick)
{
	struct timespec next;

	time_after(&next, STELE_PROGRESS_MS);
	pthread_mutex_lock(&workers->lock);
	while (workers->running) {
		if (pthread_cond_timedwait(&workers->ended, &workers->lock,
					   &next) != ETIMEDOUT)
			continue;
		pthread_mutex_unlock(&workers->lock);
		tick(workers->user);
		time_after(&next, STELE_PROGRESS_MS);
		pthread_mutex_lock(&workers->lock);
	}
	pthread_mutex_unlock(&workers->lock);
}

int stele_workers_run(const char *name, unsigned int count,
		      stele_workers_fn fn, stele_workers_tick_fn tick,
		      void *user)
{
	struct workers workers = {.work = fn, .user = user};
	struct worker *each = calloc(count, sizeof(*each));
	pthread_condattr_t attr;
	unsigned int started;

	if (!each)
		return -ENOMEM;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&workers.ended, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&workers.lock, NULL);

	started = start_all(&workers, name, each, tick ? count : count - 1);
	if (tick)
		watch(&workers, tick);
	else
		work(&workers, started);
	for (unsigned int i = 0; i < started; i++)
		pthread_join(each[i].thread, NULL);

	pthread_mutex_destroy(&workers.lock);
	pthread_cond_destroy(&workers.ended);
	free(each);
	stele_error_give(&workers.line);
	return started || !tick ? workers.error : -EAGAIN;
}
