/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - where a server says what is wrong: standard error, later the system log
 */
#ifndef STELE_CMD_MOUNT_FUSE_LOG_H
#define STELE_CMD_MOUNT_FUSE_LOG_H

#include "stele.h"

/* From here on the system log; nobody reads standard error any more. */
void log_to_system(void);
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For the log callbacks of the library. */
void log_line(void *user, enum stele_log_level level, const char *line);

#endif
