/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.h - a directory of a tree, while its entries come in
 *
 * They come in the order of their keys, which is not quite that of their names: `a/x` comes
 * after `a-b`. So they are kept until the directory is whole: 24 bytes and the name each.
 * A name that is both a file's and a directory's is the directory's.
 */
#ifndef STELE_POSIX_DIRECTORY_H
#define STELE_POSIX_DIRECTORY_H

#include "format/erofs.h"

/* A file is a segment's sample; a directory is known by its place among all. */
#define STELE_POSIX_DIRECTORY UINT32_MAX
#define STELE_POSIX_ROOT      UINT64_MAX /* place of the root, which has none */

struct stele_posix_entry {
	uint64_t number; /* of the sample in its segment; place of the directory */
	uint64_t name;	 /* index into names */
	uint32_t name_size;
	uint32_t segment; /* index; STELE_POSIX_DIRECTORY */
};

struct stele_posix_directory {
	uint64_t place;
	struct stele_posix_entry *entries; /* owned */
	uint64_t count, capacity;
	char *names; /* owned */
	uint64_t names_size, names_capacity;
	bool unsorted;
};

/* Has a filesystem names for all components of this key? */
bool stele_posix_key_ok(const char *key, size_t size);

/* Begin one anew, with the entries . and ..; what it owns is used again. 0; -ENOMEM. */
int stele_posix_directory_begin(struct stele_posix_directory *directory, uint64_t place,
				uint64_t parent);
/* Return: 0; -ENOMEM. */
int stele_posix_directory_add(struct stele_posix_directory *directory, const char *name,
			      uint32_t name_size, uint32_t segment, uint64_t number);
/*
 * Sort, and leave out files whose names are directories', too. Return: how many; they stand
 * behind `count` entries.
 */
uint64_t stele_posix_directory_end(struct stele_posix_directory *directory);
/* How many of the entries from `first` on a block of this size takes, at least one. */
uint32_t stele_posix_directory_fit(const struct stele_posix_directory *directory,
				   uint64_t first, uint32_t block_size, uint32_t *used);
/* Idempotent on a zeroed struct. */
void stele_posix_directory_release(struct stele_posix_directory *directory);

#endif
