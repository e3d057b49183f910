/* SPDX-License-Identifier: Apache-2.0 */
/*
 * done.c - requests that are complete, until wait() hands them out
 *
 * The event descriptor is readable exactly while there are any. A request is
 * in the list before the lock is given up, so whoever has taken the last one
 * and then the lock has seen every thread out of here.
 */
#include "lib/device/backend.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int stele_done_init(struct stele_done *done)
{
	*done = (struct stele_done){
		.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	if (done->event_fd < 0)
		return -errno;
	pthread_mutex_init(&done->lock, NULL);
	pthread_cond_init(&done->changed, NULL);
	return 0;
}

void stele_done_release(struct stele_done *done, bool forked)
{
	if (!forked) {
		pthread_mutex_lock(&done->lock);
		pthread_mutex_unlock(&done->lock);
		pthread_cond_destroy(&done->changed);
		pthread_mutex_destroy(&done->lock);
	}
	close(done->event_fd);
}

void stele_done_put(struct stele_done *done, struct stele_request *request,
		    ssize_t res)
{
	request->status = (int)res;
	pthread_mutex_lock(&done->lock);
	if (!done->list.count)
		eventfd_write(done->event_fd, 1);
	stele_request_push(&done->list, request);
	pthread_cond_signal(&done->changed);
	pthread_mutex_unlock(&done->lock);
}

bool stele_wait_tick(pthread_cond_t *changed, pthread_mutex_t *lock)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += STELE_TICK_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return pthread_cond_clockwait(changed, lock, CLOCK_MONOTONIC, &until) !=
	       ETIMEDOUT;
}

/* With the lock. A process that is stopped does not wait: its ticks are few. */
static int wait_for(struct stele_done *done, unsigned int min_wait)
{
	unsigned int ticks = 0, count = done->list.count;

	while (done->list.count < min_wait && !done->broken) {
		if (!done->ticks_max)
			pthread_cond_wait(&done->changed, &done->lock);
		else if (!stele_wait_tick(&done->changed, &done->lock))
			ticks++;
		if (count != done->list.count)
			ticks = 0;
		count = done->list.count;
		done->broken = done->ticks_max && ticks >= done->ticks_max;
	}
	return done->list.count || !done->broken ? 0 : -ETIMEDOUT;
}

int stele_done_wait(struct stele_done *done, unsigned int min_wait,
		    struct stele_request **requests, ssize_t *res,
		    unsigned int max)
{
	eventfd_t events;
	int count;

	pthread_mutex_lock(&done->lock);
	count = wait_for(done, min_wait);
	if (!count)
		count = stele_request_drain(&done->list, requests, res, max);
	if (count > 0 && !done->list.count)
		eventfd_read(done->event_fd, &events);
	pthread_mutex_unlock(&done->lock);
	return count;
}
