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
#include "lib/posix/area.h"

struct stele_posix_entry {
	uint64_t nid;
	uint64_t name; /* index into names */
	uint32_t name_size;
	enum stele_erofs_type type;
};

struct stele_posix_directory {
	uint64_t nid;
	struct stele_posix_entry *entries; /* owned */
	uint64_t count, capacity;
	char *names; /* owned */
	uint64_t names_size, names_capacity;
	bool unsorted;
};

/* Has a filesystem names for all components of this key? */
bool stele_posix_key_ok(const char *key, size_t size);

/* Begin one anew, with the entries . and ..; what it owns is used again. 0; -ENOMEM. */
int stele_posix_directory_begin(struct stele_posix_directory *directory, uint64_t nid,
				uint64_t parent);
/* Return: 0; -ENOMEM. */
int stele_posix_directory_add(struct stele_posix_directory *directory, const char *name,
			      uint32_t name_size, enum stele_erofs_type type, uint64_t nid);
/*
 * Sort, and leave out files whose names are directories', too. Return: how many; they stand
 * behind `count` entries.
 */
uint64_t stele_posix_directory_end(struct stele_posix_directory *directory);
/* Bytes of its blocks: in each as many entries as fit. */
uint64_t stele_posix_directory_size(const struct stele_posix_directory *directory,
				    uint32_t block_size);
/*
 * Put them to the area, and fill in the inode but for its time. Return: 0; as of
 * stele_posix_area_take().
 */
int stele_posix_directory_put(const struct stele_posix_directory *directory,
			      uint32_t block_size, struct stele_posix_area *area,
			      struct stele_erofs_inode *inode);
/* Idempotent on a zeroed struct. */
void stele_posix_directory_release(struct stele_posix_directory *directory);

#endif
