/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - calls into the library that take long: their thread and their queue of events
 */
#include "call.h"
#include "core.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_MAX 1024u

void py_call_init(struct py_call *call)
{
	pthread_mutex_init(&call->lock, NULL);
	pthread_cond_init(&call->news, NULL);
	pthread_cond_init(&call->room, NULL);
	call->end = &call->events;
}

void py_events_free(struct py_event *event)
{
	while (event) {
		struct py_event *next = event->next;

		free(event);
		event = next;
	}
}

void py_call_destroy(struct py_call *call)
{
	py_events_free(call->events);
	free(call->progress);
	free(call->message);
	pthread_cond_destroy(&call->room);
	pthread_cond_destroy(&call->news);
	pthread_mutex_destroy(&call->lock);
}

/* ---- from the library --------------------------------------------------------------- */

/* One piece of memory, texts and all; NULL: there is none. */
static struct py_event *copy_event(const struct py_event *event)
{
	size_t size = sizeof(*event);
	struct py_event *copy;
	char *to;

	for (int i = 0; i < PY_TEXTS; i++)
		size += event->texts[i].size;
	copy = malloc(size);
	if (!copy)
		return NULL;
	*copy = *event;
	copy->next = NULL;
	to = (char *)(copy + 1);
	for (int i = 0; i < PY_TEXTS; i++) {
		if (!event->texts[i].data)
			continue;
		memcpy(to, event->texts[i].data, event->texts[i].size);
		copy->texts[i].data = to;
		to += event->texts[i].size;
	}
	return copy;
}

void py_call_add(struct py_call *call, const struct py_event *event)
{
	struct py_event *copy = copy_event(event);

	pthread_mutex_lock(&call->lock);
	while (call->count >= QUEUE_MAX && call->running && !call->stop)
		pthread_cond_wait(&call->room, &call->lock);
	if (copy && call->count < QUEUE_MAX) {
		*call->end = copy;
		call->end = &copy->next;
		copy = NULL;
		if (++call->count == QUEUE_MAX / 2)
			pthread_cond_signal(&call->news);
	}
	pthread_mutex_unlock(&call->lock);
	free(copy);
}

void py_call_log(void *user, enum stele_log_level level, const char *line)
{
	py_call_add(user, &(struct py_event){.kind = PY_EVENT_LOG,
					     .number = level,
					     .texts = {{line, strlen(line)}}});
}

void py_call_skip(void *user, enum stele_skip_reason reason, const char *key,
		  size_t key_size, int error)
{
	py_call_add(user, &(struct py_event){.kind = PY_EVENT_SKIP,
					     .number = reason,
					     .figures = {(uint64_t)-error},
					     .texts = {{key, key_size}}});
}

int py_call_progress(void *user, const struct stele_progress *progress)
{
	struct py_event *old, *event = copy_event(&(struct py_event){
		.kind = PY_EVENT_PROGRESS,
		.number = progress->phase,
		.figures = {progress->samples_done, progress->samples_total,
			    progress->bytes_done, progress->bytes_total},
	});
	struct py_call *call = user;
	int stop;

	pthread_mutex_lock(&call->lock);
	old = call->progress;
	call->progress = event;
	if (call->phase != progress->phase) { /* worth saying at once */
		call->phase = progress->phase;
		call->urgent = 1;
		pthread_cond_signal(&call->news);
	}
	stop = call->stop;
	pthread_mutex_unlock(&call->lock);
	free(old);
	return stop;
}

/* ---- the call ---------------------------------------------------------------------------- */

static void *work(void *arg)
{
	struct py_call *call = arg;
	int result = call->run(call->arg);
	char *message = result < 0 ? strdup(stele_errmsg()) : NULL;

	pthread_mutex_lock(&call->lock);
	call->result = result;
	call->message = message;
	call->running = 0;
	pthread_cond_signal(&call->news);
	pthread_mutex_unlock(&call->lock);
	return NULL;
}

int py_call_start(struct py_call *call, int (*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int err;

	call->run = run;
	call->arg = arg;
	free(call->message);
	call->message = NULL;
	call->stop = 0;
	call->phase = 0;
	call->running = 1;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&call->thread, NULL, work, call);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		call->running = 0;
	return -err;
}

int py_call_wait(struct py_call *call)
{
	const struct timespec until = py_wait_end();
	int running, err = 0;

	pthread_mutex_lock(&call->lock);
	while (call->running && call->count < QUEUE_MAX / 2 && !call->urgent &&
	       !err)
		err = pthread_cond_clockwait(&call->news, &call->lock,
					     CLOCK_MONOTONIC, &until);
	running = call->running;
	pthread_mutex_unlock(&call->lock);
	return running;
}

struct py_event *py_call_take(struct py_call *call)
{
	struct py_event *events;

	pthread_mutex_lock(&call->lock);
	*call->end = call->progress;
	events = call->events;
	call->events = call->progress = NULL;
	call->end = &call->events;
	call->count = 0;
	call->urgent = 0;
	pthread_cond_broadcast(&call->room);
	pthread_mutex_unlock(&call->lock);
	return events;
}

void py_call_stop(struct py_call *call)
{
	pthread_mutex_lock(&call->lock);
	call->stop = 1;
	pthread_cond_broadcast(&call->room);
	pthread_mutex_unlock(&call->lock);
}

int py_call_finish(struct py_call *call)
{
	pthread_join(call->thread, NULL);
	return call->result;
}
