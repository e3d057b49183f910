/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c - see ahead.h
 *
 * IDLE -> ASKED by ask; -> DONE by the thread; -> IDLE by take. In ASKED the thread owns
 * the memory, else the caller.
 */
#include "lib/image/ahead.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/workers.h"

enum state { IDLE, ASKED, DONE };

struct stele_ahead {
	struct stele_device *dev;
	pthread_t thread;
	unsigned int fork_count; /* of the process that has the thread */
	pthread_mutex_t lock;	 /* of what follows */
	pthread_cond_t changed;
	enum state state;
	bool ended;
	uint64_t offset;
	size_t size;
	int result;
	void *memory; /* owned */
};

static void *serve(void *user)
{
	struct stele_ahead *a = user;

	pthread_mutex_lock(&a->lock);
	while (!a->ended) {
		if (a->state != ASKED) {
			pthread_cond_wait(&a->changed, &a->lock);
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		a->result = stele_device_read(a->dev, a->memory, a->offset, a->size);
		pthread_mutex_lock(&a->lock);
		a->state = DONE;
		pthread_cond_broadcast(&a->changed);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

struct stele_ahead *stele_ahead_open(struct stele_device *dev, size_t size_max)
{
	struct stele_ahead *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->dev = dev;
	a->fork_count = stele_fork_count();
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	a->memory = stele_device_alloc(dev, size_max);
	if (a->memory && !stele_thread_start(&a->thread, "stele-ahead", serve, a))
		return a;
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a->memory);
	free(a);
	return NULL;
}

/* The lock may have been held when the process was forked. */
static bool is_forked(const struct stele_ahead *a)
{
	return a->fork_count != stele_fork_count();
}

static void lock_idle(struct stele_ahead *a)
{
	pthread_mutex_lock(&a->lock);
	while (a->state == ASKED)
		pthread_cond_wait(&a->changed, &a->lock);
	a->state = IDLE;
}

void stele_ahead_ask(struct stele_ahead *a, uint64_t offset, size_t size)
{
	if (is_forked(a))
		return;
	lock_idle(a);
	a->offset = offset;
	a->size = size;
	a->state = ASKED;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

int stele_ahead_take(struct stele_ahead *a, uint64_t offset, size_t size, void **memory)
{
	void *used = *memory;
	int ret;

	/* Only the caller changes these, and the thread when it is done. */
	if (is_forked(a) || offset != a->offset || size != a->size)
		return -EAGAIN;
	lock_idle(a);
	ret = a->result;
	if (!ret) {
		*memory = a->memory;
		a->memory = used;
	}
	a->size = 0; /* taken */
	pthread_mutex_unlock(&a->lock);
	return ret;
}

void stele_ahead_close(struct stele_ahead *a)
{
	if (!a)
		return;
	if (!is_forked(a)) {
		pthread_mutex_lock(&a->lock);
		a->ended = true;
		pthread_cond_broadcast(&a->changed);
		pthread_mutex_unlock(&a->lock);
		pthread_join(a->thread, NULL);
		pthread_cond_destroy(&a->changed);
		pthread_mutex_destroy(&a->lock);
	}
	free(a->memory);
	free(a);
}
