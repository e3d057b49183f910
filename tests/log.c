/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - see log.h
 */
#include "tests/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void keep_line(void *user, enum stele_log_level level, const char *line)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct test_log *log = user;
	size_t room;
	int size;

	pthread_mutex_lock(&lock);
	log->errors += level == STELE_LOG_ERROR;
	log->warnings += level == STELE_LOG_WARNING;
	log->infos += level == STELE_LOG_INFO;
	snprintf(log->last, sizeof(log->last), "%s", line);
	room = sizeof(log->text) - log->size;
	size = snprintf(log->text + log->size, room, "%d %s\n", (int)level,
			line);
	if (size > 0 && (size_t)size < room)
		log->size += (size_t)size;
	pthread_mutex_unlock(&lock);
}

void test_log_init(struct test_log *log)
{
	memset(log, 0, sizeof(*log));
	log->log.fn = keep_line;
	log->log.user = log;
}

struct stele_log test_log_to(struct test_log *log)
{
	test_log_init(log);
	return log->log;
}

bool test_log_has(const struct test_log *log, const char *text)
{
	return strstr(log->text, text) != NULL;
}
