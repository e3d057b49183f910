/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lmdb.h - a snapshot of an LMDB environment, which stays until its bytes are written
 */
#ifndef STELE_CMD_FROM_LMDB_H
#define STELE_CMD_FROM_LMDB_H

#include <stdbool.h>
#include <stddef.h>

struct lmdb;

#ifdef HAVE_LMDB
/* The data file of the environment that a directory is. Return: owned; NULL: it is none. */
char *lmdb_data_file(const char *directory);
/* NULL is fine. */
void lmdb_release(struct lmdb *lmdb);
/*
 * Is what was read from fd, its data file, still what the snapshot has? `same`: it is, by its
 * times. Of any thread.
 */
bool lmdb_holds(const struct lmdb *lmdb, int fd, bool same);
#else
static inline char *lmdb_data_file(const char *directory)
{
	(void)directory;
	return NULL;
}

static inline void lmdb_release(struct lmdb *lmdb)
{
	(void)lmdb;
}

static inline bool lmdb_holds(const struct lmdb *lmdb, int fd, bool same)
{
	(void)lmdb;
	(void)fd;
	(void)same;
	return true;
}
#endif

#endif
