/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - calls into the library that take long
 *
 * They run in a thread of their own, which never has the GIL; so any thread of the library
 * may report what it likes. Events wait in a short queue for the thread that called, which
 * hands them to Python, and looks for signals meanwhile. A progress callback is where the
 * library asks whether to go on: after an exception, a KeyboardInterrupt among them, the
 * answer is no, and the exception is raised once the library has returned.
 */
#include "py.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define QUEUE_MAX 1024u

void py_call_init(struct py_call *call)
{
	pthread_mutex_init(&call->lock, NULL);
	pthread_cond_init(&call->news, NULL);
	pthread_cond_init(&call->room, NULL);
	call->end = &call->events;
}

static void free_events(struct py_event *event)
{
	while (event) {
		struct py_event *next = event->next;

		free(event);
		event = next;
	}
}

void py_call_destroy(struct py_call *call)
{
	free_events(call->events);
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

/* ---- to Python ------------------------------------------------------------------------ */

static PyObject *texts_tuple(const struct py_event *event)
{
	PyObject *tuple = PyTuple_New(PY_TEXTS);

	for (int i = 0; tuple && i < PY_TEXTS; i++) {
		const struct py_text *text = &event->texts[i];
		PyObject *item = text->data ? py_key_str(text->data, text->size) :
					      Py_NewRef(Py_None);

		if (!item || PyTuple_SetItem(tuple, i, item))
			Py_CLEAR(tuple);
	}
	return tuple;
}

static int tell_event(const struct py_event *event, PyObject *tell)
{
	const uint64_t *f = event->figures;
	PyObject *texts = texts_tuple(event), *ret = NULL;

	if (texts)
		ret = PyObject_CallFunction(
			tell, "iL(KKKKK)N", (int)event->kind,
			(long long)event->number, (unsigned long long)f[0],
			(unsigned long long)f[1], (unsigned long long)f[2],
			(unsigned long long)f[3], (unsigned long long)f[4], texts);
	Py_XDECREF(ret);
	return ret ? 0 : -1;
}

/* Hand over what there is. Return: 0; -1 with an exception. */
static int tell_all(struct py_call *call, PyObject *tell)
{
	struct py_event *events, *progress;
	int err = 0;

	pthread_mutex_lock(&call->lock);
	events = call->events;
	progress = call->progress;
	call->events = call->progress = NULL;
	call->end = &call->events;
	call->count = 0;
	call->urgent = 0;
	pthread_cond_broadcast(&call->room);
	pthread_mutex_unlock(&call->lock);
	for (struct py_event *event = events; !err && event; event = event->next)
		err = tell_event(event, tell);
	if (!err && progress)
		err = tell_event(progress, tell);
	free_events(events);
	free(progress);
	return err;
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

static int start(struct py_call *call, pthread_t *thread)
{
	sigset_t all, before;
	int err;

	free(call->message);
	call->message = NULL;
	call->stop = 0;
	call->phase = 0;
	call->running = 1;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, NULL, work, call);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		call->running = 0;
	return -err;
}

/* Until the call is over, much is queued, or it is time to look for signals. */
static int wait_for_news(struct py_call *call)
{
	struct timespec until;
	int running, err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PY_WAIT_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	pthread_mutex_lock(&call->lock);
	while (call->running && call->count < QUEUE_MAX / 2 && !call->urgent &&
	       !err)
		err = pthread_cond_clockwait(&call->news, &call->lock,
					     CLOCK_MONOTONIC, &until);
	running = call->running;
	pthread_mutex_unlock(&call->lock);
	return running;
}

static void stop(struct py_call *call)
{
	pthread_mutex_lock(&call->lock);
	call->stop = 1;
	pthread_cond_broadcast(&call->room);
	pthread_mutex_unlock(&call->lock);
}

int py_call(struct py_call *call, int (*run)(void *arg), void *arg, PyObject *tell)
{
	PyObject *type = NULL, *value = NULL, *traceback = NULL;
	pthread_t thread;
	int running, err;

	call->run = run;
	call->arg = arg;
	err = start(call, &thread);
	if (err) {
		py_raise(err, "cannot start a thread");
		return -1;
	}
	do {
		Py_BEGIN_ALLOW_THREADS
		running = wait_for_news(call);
		Py_END_ALLOW_THREADS
		/* What came with the end is for the caller: it is too late to stop. */
		if (!type && (tell_all(call, tell) || (running && PyErr_CheckSignals()))) {
			PyErr_Fetch(&type, &value, &traceback);
			stop(call);
		}
	} while (running);
	pthread_join(thread, NULL);
	if (type) {
		PyErr_Restore(type, value, traceback);
		return -1;
	}
	if (call->result >= 0)
		return call->result;
	py_raise(call->result, call->message ? call->message : "");
	return -1;
}
