/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.c - the line of the call that failed last, thread by thread
 */
#include "lib/base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct {
	unsigned int depth; /* of calls within calls */
	bool noted;	    /* during the outermost one */
	char line[STELE_LOG_LINE_MAX];
	int error; /* that was explained; 0: none */
	const char *why;
} last;

/* Does it say what failed, or what it speaks of? Else it is a mere reason. */
static bool is_whole(const char *line)
{
	return *line == '\'' || !strncmp(line, "cannot ", 7);
}

void stele_call_begin(void)
{
	if (last.depth++)
		return;
	last.noted = false;
	last.error = 0;
}

int stele_call_end(int ret, const char *format, ...)
{
	char reason[STELE_LOG_LINE_MAX];
	va_list args;
	size_t used;

	last.depth--;
	if (ret >= 0 || (last.noted && is_whole(last.line)))
		return ret;
	/* Now, not by the outermost call: this one knows more. */
	snprintf(reason, sizeof(reason), "%s",
		 last.noted ? last.line : stele_error_describe(ret));
	va_start(args, format);
	vsnprintf(last.line, sizeof(last.line), format, args);
	va_end(args);
	used = strlen(last.line);
	snprintf(last.line + used, sizeof(last.line) - used, ": %s", reason);
	last.noted = true;
	return ret;
}

void stele_error_note(const char *line)
{
	snprintf(last.line, sizeof(last.line), "%s", line);
	last.noted = true;
}

void stele_error_explain(int error, const char *why)
{
	last.error = error;
	last.why = why;
}

const char *stele_error_describe(int error)
{
	return error && error == last.error ? last.why : stele_strerror(error);
}

void stele_error_take(struct stele_error_line *line)
{
	line->text[0] = '\0';
	if (last.noted)
		memcpy(line->text, last.line, sizeof(line->text));
	line->error = last.error;
	line->why = last.why;
	last.noted = false;
	last.error = 0;
}

void stele_error_give(const struct stele_error_line *line)
{
	if (line->error)
		stele_error_explain(line->error, line->why);
	if (line->text[0])
		stele_error_note(line->text);
}

const char *stele_errmsg(void)
{
	return last.line;
}
