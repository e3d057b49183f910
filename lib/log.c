/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - formats a handle's messages and hands them to its callback
 */
#include "lib/log.h"

#include <stdarg.h>
#include <stdio.h>

void stele_log_emit(const struct stele_log *log, enum stele_log_level level,
		    const char *format, ...)
{
	char line[STELE_LOG_LINE_MAX];
	va_list args;

	if (!log || !log->fn)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	log->fn(log->user, level, line);
}
