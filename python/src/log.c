/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - what the library says of an open dataset, image or loader, until Python is told
 *
 * Any thread may call the library back at any time, most of them without the GIL. So a line
 * waits with its handle, for whoever uses that next and has the GIL (py_log_tell()). The lock
 * is held across fork(), as py_lock is, and may be taken with that in hand, never before it.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* Of a handle; what comes after them, until Python is told, is one too many for anybody. */
#define LINES_MAX 1000u

pthread_mutex_t py_log_lock = PTHREAD_MUTEX_INITIALIZER;

void py_log_add(void *user, enum stele_log_level level, const char *line)
{
	const size_t size = strlen(line) + 1;
	struct py_line *copy = malloc(sizeof(*copy) + size);
	struct py_log *log = user;

	if (!copy)
		return;
	copy->next = NULL;
	copy->level = level;
	memcpy(copy->text, line, size);
	pthread_mutex_lock(&py_log_lock);
	if (atomic_load(&log->count) < LINES_MAX) {
		if (log->first)
			log->last->next = copy;
		else
			log->first = copy;
		log->last = copy;
		atomic_fetch_add(&log->count, 1);
		copy = NULL;
	}
	pthread_mutex_unlock(&py_log_lock);
	free(copy);
}

struct py_line *py_log_take(struct py_log *log)
{
	struct py_line *lines;

	pthread_mutex_lock(&py_log_lock);
	lines = log->first;
	log->first = log->last = NULL;
	atomic_store(&log->count, 0);
	pthread_mutex_unlock(&py_log_lock);
	return lines;
}

void py_lines_free(struct py_line *line)
{
	while (line) {
		struct py_line *next = line->next;

		free(line);
		line = next;
	}
}
