/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - formats a handle's messages and hands them to its callback
 */
#include "lib/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"

struct stele_log_line {
	struct stele_log_line *next;
	enum stele_log_level level;
	char text[];
};

/* Without memory a message is told at once, rather than lost. */
static void keep(void *user, enum stele_log_level level, const char *text)
{
	struct stele_log_held *held = user;
	size_t size = strlen(text) + 1;
	struct stele_log_line *line = malloc(sizeof(*line) + size);

	if (!line) {
		stele_log_emit(held->to, level, "%s", text);
		return;
	}
	line->level = level;
	memcpy(line->text, text, size);
	held->last = line->text;
	stele_fifo_push(&held->lines, line);
}

void stele_log_emit(const struct stele_log *log, enum stele_log_level level,
		    const char *format, ...)
{
	char line[STELE_LOG_LINE_MAX];
	va_list args;

	if (!log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	/* What is held is not known to be true yet. */
	if (level == STELE_LOG_ERROR && log->fn != keep)
		stele_error_note(line);
	if (log->fn)
		log->fn(log->user, level, line);
}

void stele_log_hold(struct stele_log_held *held, const struct stele_log *to)
{
	held->log = (struct stele_log){keep, held};
	held->to = to;
	held->last = NULL;
	held->lines.head = NULL;
}

void stele_log_end(struct stele_log_held *held, bool tell)
{
	struct stele_log_line *line;

	while ((line = stele_fifo_pop(&held->lines))) {
		if (tell)
			stele_log_emit(held->to, line->level, "%s", line->text);
		free(line);
	}
}
