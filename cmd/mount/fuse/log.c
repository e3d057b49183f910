/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - see log.h
 */
#include "mount/fuse/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

#include "cmd.h"

#define LINE_MAX_SIZE 8192

static bool to_system; /* set before there are threads */

void log_to_system(void)
{
	openlog("stele", LOG_PID, LOG_DAEMON);
	to_system = true;
}

static void put(int priority, const char *line)
{
	if (to_system)
		syslog(priority, "%s", line);
	else
		cmd_message("%s%s", priority == LOG_ERR ? "" : "warning: ", line);
}

void log_error(const char *format, ...)
{
	char line[LINE_MAX_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	put(LOG_ERR, line);
}

void log_line(void *user, enum stele_log_level level, const char *line)
{
	(void)user;
	if (level != STELE_LOG_INFO)
		put(level == STELE_LOG_ERROR ? LOG_ERR : LOG_WARNING, line);
}
