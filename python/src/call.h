/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - calls into the library that take long, and what they report
 *
 * A call runs in a thread of its own, which never has the GIL; so any thread of the library
 * may report what it likes. Events wait in a short queue for the thread that called. A
 * progress callback is where the library asks whether to go on.
 */
#ifndef STELE_PY_CALL_H
#define STELE_PY_CALL_H

#include <pthread.h>

#include <stele.h>

enum py_event_kind {
	PY_EVENT_LOG,	     /* number: level; texts: line */
	PY_EVENT_PROGRESS,   /* phase; figures: samples done, total, bytes done, total */
	PY_EVENT_SKIP,	     /* reason; figures: errno; texts: key */
	PY_EVENT_DAMAGE,     /* errno; figures: offset, size, id; texts: what, key, detail */
	PY_EVENT_DIFFERENCE, /* kind; figures: ids and sizes of a, b; texts: key */
	PY_EVENT_UNUSED,     /* 1: due, 2: deleted; figures: segment, offset, size, samples, time;
				texts: name */
};

#define PY_FIGURES 5
#define PY_TEXTS   4

struct py_text {
	const char *data; /* NULL: None */
	size_t size;
};

/* What a thread of the library has to say. */
struct py_event {
	struct py_event *next;
	enum py_event_kind kind;
	int64_t number;
	uint64_t figures[PY_FIGURES];
	struct py_text texts[PY_TEXTS];
};

struct py_call {
	pthread_mutex_t lock;
	pthread_cond_t news, room;
	struct py_event *events, **end, *progress; /* newest progress; NULL: told */
	unsigned int count;
	unsigned int phase; /* of the newest progress; 0: none */
	int urgent;	    /* that it has changed */
	int running, stop, result;
	int quiet; /* set by who calls, and says itself that an exception came too late */
	char *message; /* of the failure */
	pthread_t thread;
	int (*run)(void *arg);
	void *arg;
};

void py_call_init(struct py_call *call);
void py_call_destroy(struct py_call *call);
/* Return: 0; negative errno: no thread. */
int py_call_start(struct py_call *call, int (*run)(void *arg), void *arg);
/* Until it is over, much is queued, or it is time to look for signals. Return: is it running? */
int py_call_wait(struct py_call *call);
/* What is queued, for the caller to free; the newest progress last. */
struct py_event *py_call_take(struct py_call *call);
void py_events_free(struct py_event *events);
/* Have the library give up at the next moment that it can. */
void py_call_stop(struct py_call *call);
/* After the end. Return: what it returned, and `message` if that is negative. */
int py_call_finish(struct py_call *call);

/* Queues a copy. Waits while the queue is full, as long as the call is not stopped. */
void py_call_add(struct py_call *call, const struct py_event *event);
/* Callbacks for the library; `user` is the call. */
void py_call_log(void *user, enum stele_log_level level, const char *line);
int py_call_progress(void *user, const struct stele_progress *progress);
void py_call_skip(void *user, enum stele_skip_reason reason, const char *key,
		  size_t key_size, int error);

/* Have options of the library report to the call. */
#define PY_CALL_LISTEN(opts, call)                   \
	do {                                         \
		(opts)->size = sizeof(*(opts));      \
		(opts)->log = py_call_log;           \
		(opts)->log_user = (call);           \
		(opts)->progress = py_call_progress; \
		(opts)->progress_user = (call);      \
	} while (0)

#endif
