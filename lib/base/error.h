/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - one line for each call that failed, see stele_errmsg()
 *
 * A public function that can fail is a *call*. Of the errors logged during the
 * outermost call of a thread, the last one is its line. A message that begins with
 * "cannot" or with a subject in quotes is whole; any other is a mere reason, and the
 * call puts what failed before it; a call that failed silently has its code for
 * a reason, or what somebody below explained of that code: one may mean several
 * things. A worker thread hands both to the thread that joins it.
 */
#ifndef STELE_BASE_ERROR_H
#define STELE_BASE_ERROR_H

#include "lib/base/log.h"

/*
 * In a public function: the result of `expr`, after its line was set. What
 * follows is a format and its arguments: what failed, without the reason.
 */
#define STELE_CALL(expr, ...) \
	(stele_call_begin(), stele_call_end((expr), __VA_ARGS__))

void stele_call_begin(void);
int stele_call_end(int ret, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* An error was logged by this thread. */
void stele_error_note(const char *line);

/* What `error` means this time, in words that stay; until another call begins. */
void stele_error_explain(int error, const char *why);
/* As it was explained, or stele_strerror(). */
const char *stele_error_describe(int error);

struct stele_error_line {
	char text[STELE_LOG_LINE_MAX]; /* "": none */
	int error;	 /* that was explained; 0: none */
	const char *why;
};
/* What this thread has noted, for the thread that waits for it. */
void stele_error_take(struct stele_error_line *line);
void stele_error_give(const struct stele_error_line *line);

#endif
