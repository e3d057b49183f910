/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.c - start, watch, join
 */
#include "lib/base/crew.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/error.h"

struct crew {
	pthread_mutex_t lock;
	pthread_cond_t ended; /* by CLOCK_MONOTONIC */
	unsigned int running;
	int error; /* the first, and what it left */
	struct stele_error_line line;
	stele_crew_work work;
	void *user;
};

struct member {
	struct crew *crew;
	pthread_t thread;
	unsigned int index;
};

static void *member_main(void *data)
{
	struct member *member = data;
	struct crew *crew = member->crew;
	int ret = crew->work(crew->user, member->index);

	pthread_mutex_lock(&crew->lock);
	if (ret < 0 && !crew->error) {
		crew->error = ret;
		stele_error_take(&crew->line);
	}
	if (--crew->running == 0)
		pthread_cond_signal(&crew->ended);
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

/* How many were started. */
static unsigned int start_all(struct crew *crew, struct member *members,
			      unsigned int jobs)
{
	sigset_t all, old;
	unsigned int count;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&crew->lock);
	for (count = 0; count < jobs; count++) {
		struct member *member = &members[count];

		member->crew = crew;
		member->index = count;
		if (pthread_create(&member->thread, NULL, member_main, member))
			break;
		crew->running++;
	}
	pthread_mutex_unlock(&crew->lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return count;
}

static void time_after(struct timespec *when, unsigned int ms)
{
	clock_gettime(CLOCK_MONOTONIC, when);
	when->tv_nsec += (long)ms * 1000000;
	when->tv_sec += when->tv_nsec / 1000000000;
	when->tv_nsec %= 1000000000;
}

static void watch(struct crew *crew, stele_crew_tick tick)
{
	struct timespec next;

	time_after(&next, STELE_TICK_MS);
	pthread_mutex_lock(&crew->lock);
	while (crew->running) {
		if (pthread_cond_timedwait(&crew->ended, &crew->lock, &next) !=
		    ETIMEDOUT)
			continue;
		pthread_mutex_unlock(&crew->lock);
		tick(crew->user);
		time_after(&next, STELE_TICK_MS);
		pthread_mutex_lock(&crew->lock);
	}
	pthread_mutex_unlock(&crew->lock);
}

int stele_crew_run(unsigned int jobs, stele_crew_work work,
		   stele_crew_tick tick, void *user)
{
	struct crew crew = {.work = work, .user = user};
	struct member *members = calloc(jobs, sizeof(*members));
	pthread_condattr_t attr;
	unsigned int count;

	if (!members)
		return -ENOMEM;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&crew.ended, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&crew.lock, NULL);

	count = start_all(&crew, members, jobs);
	watch(&crew, tick);
	for (unsigned int i = 0; i < count; i++)
		pthread_join(members[i].thread, NULL);

	pthread_mutex_destroy(&crew.lock);
	pthread_cond_destroy(&crew.ended);
	free(members);
	stele_error_give(&crew.line);
	return count ? crew.error : -EAGAIN;
}
