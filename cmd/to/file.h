/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - what an export is written to: a file, shards of it, or stdout
 *
 * A file gets its name when it is whole, so shards do one by one. Stdout has nothing that could
 * be taken back.
 */
#ifndef STELE_CMD_TO_FILE_H
#define STELE_CMD_TO_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "tree.h"

struct to_file {
	const char *path;    /* "-": stdout; of shards a pattern, such as out-%06d.tar */
	uint64_t shard_size; /* a shard ends with the sample that reaches it; 0: one file */
	bool replace;	     /* files that exist */
	bool lmdb;	     /* it is the data file of an environment: see environment.h */
	int fd;		     /* to write to; set by to_file_open() */
	/* private */
	bool said;	/* what went wrong */
	uint64_t number; /* of this shard, from 0 */
	char *name;	/* of this file, owned; NULL: none */
	struct tree tree;
	struct tree_part part;
};

/* Can it be a pattern of shards? Return: NULL; what it has to be. */
const char *to_file_pattern(const char *path);
/* Return: 0, and ends with keep or drop; negative errno (said). */
int to_file_open(struct to_file *file);
/* The file is whole, another shard follows. Return: 0; negative errno. Drop, all the same. */
int to_file_next(struct to_file *file);
/* The last one is whole. Return: 0; negative errno. */
int to_file_keep(struct to_file *file);
/* Shards before this one stay, which is said. */
void to_file_drop(struct to_file *file);
/* "cannot write" it, unless it was said. */
void to_file_complain(const struct to_file *file, int error);
/* All of it, as `stele build` takes it: out-{000000..000003}.tar. Return: owned; NULL. */
char *to_file_names(const struct to_file *file, uint64_t count);

#endif
