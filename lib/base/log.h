/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - messages of a handle
 *
 * The library never prints. What a returned errno cannot say (which block,
 * which checksum was expected) goes to the callback of the handle that the
 * caller opened. A zeroed struct stele_log has no callback, yet errors count for
 * stele_errmsg(), see error.h; a NULL one swallows everything.
 */
#ifndef STELE_BASE_LOG_H
#define STELE_BASE_LOG_H

#include "lib/base/fifo.h"
#include "lib/stele.h"

struct stele_log {
	stele_log_fn fn;
	void *user;
};

/* One line without a newline, cut at STELE_LOG_LINE_MAX bytes. */
#define STELE_LOG_LINE_MAX 1024

void stele_log_emit(const struct stele_log *log, enum stele_log_level level,
		    const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Messages of an attempt, kept until it is known whether they are true: `log`
 * takes them; the end tells them to `to`, or forgets them.
 */
struct stele_log_held {
	struct stele_log log; /* for who may say something */
	const struct stele_log *to;
	const char *last; /* of the lines, until the end; NULL: none */
	struct STELE_FIFO(stele_log_line) lines;
};
void stele_log_hold(struct stele_log_held *held, const struct stele_log *to);
void stele_log_end(struct stele_log_held *held, bool tell);

#define stele_log_error(log, ...) \
	stele_log_emit((log), STELE_LOG_ERROR, __VA_ARGS__)
#define stele_log_warning(log, ...) \
	stele_log_emit((log), STELE_LOG_WARNING, __VA_ARGS__)
#define stele_log_info(log, ...) \
	stele_log_emit((log), STELE_LOG_INFO, __VA_ARGS__)

#endif
