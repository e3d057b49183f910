/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.h - which version of a file was read: is it still the same one?
 *
 * Size, mtime and ctime tell, and that it is the same file. They do not tell of a second change
 * within the tick of the kernel's clock in which the first one was made (1 to 10 ms; Linux 6.13
 * has finer times for who looks at them), or within the unit of coarser times, which some
 * filesystems have; nor of stores to a mapped page that was dirty already.
 */
#ifndef STELE_CMD_FROM_VERSION_H
#define STELE_CMD_FROM_VERSION_H

#include <stdbool.h>
#include <sys/stat.h>

struct version {
	dev_t dev;
	ino_t inode;
	off_t size;
	struct timespec modified, changed;
};

void version_take(struct version *version, const struct stat *st);
/* Is what lies at the descriptor the same file, and no smaller, whatever it holds? */
bool version_may_hold(const struct version *version, int fd);
bool version_holds(const struct version *version, int fd);

#endif
