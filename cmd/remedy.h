/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedy.h - what to do next after a call of the library was refused
 */
#ifndef STELE_CMD_REMEDY_H
#define STELE_CMD_REMEDY_H

#include <stdbool.h>

/*
 * Print hints for `error` (0: a warning) and `line`, the library's message, on `target` (may
 * be NULL) of the command `verb`; nothing if there is no next step.
 */
void remedy_print(const char *verb, int error, const char *line,
		  const char *target);
/* If what was looked for, `name`, is a snapshot of TARGET: how it is named. Return: said. */
bool remedy_snapshot(const char *target, const char *name);
/* The same for -EFBIG of a file that is none of the library's. */
void remedy_file_limit(void);
/* How to write a path that holds an '@', if there is a file of that name. */
void remedy_path(const char *target);

/* Of a root directory, as of a container, that was made without them. */
#define MOUNT_PROC "mount it first, as root: 'mount -t proc proc /proc'"
#define MOUNT_SYS  "mount it first, as root: 'mount -t sysfs sysfs /sys'"

#endif
