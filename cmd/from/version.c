/* SPDX-License-Identifier: Apache-2.0 */
/*
 * version.c - what fstat() said of a file, and says now
 */
#include "from/version.h"

void version_take(struct version *version, const struct stat *st)
{
	version->dev = st->st_dev;
	version->inode = st->st_ino;
	version->size = st->st_size;
	version->modified = st->st_mtim;
	version->changed = st->st_ctim;
}

static bool is_of(const struct version *version, const struct stat *st)
{
	return st->st_dev == version->dev && st->st_ino == version->inode;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool version_may_hold(const struct version *version, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && is_of(version, &st) && st.st_size >= version->size;
}

bool version_holds(const struct version *version, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && is_of(version, &st) && st.st_size == version->size &&
	       same_time(&st.st_mtim, &version->modified) &&
	       same_time(&st.st_ctim, &version->changed);
}
