/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - files below a directory, named by untrusted keys
 *
 * An image may come from anywhere, so a key may try to leave the directory: by
 * its text ("/etc/x", "../x"), or through an existing symlink. The former
 * is refused by tree_refusal(), the latter by openat2(2) with RESOLVE_BENEATH
 * and RESOLVE_NO_SYMLINKS. No existing file is ever opened for writing.
 */
#ifndef STELE_CMD_TREE_H
#define STELE_CMD_TREE_H

#include <stdbool.h>
#include <stddef.h>

/* Why a key cannot name a file; NULL: it can. */
const char *tree_refusal(const char *key, size_t size);

/* A file that gets its name once it is complete: who is killed leaves no half of one. */
struct tree_part {
	int fd;	    /* for the caller to write */
	int dir;    /* where it will be */
	char *base; /* its name there */
	char name[48]; /* meanwhile; "": none */
};
/*
 * Begin the file `path` below `root`, in directories that are made if need be. Ends with
 * keep or drop, unless it fails. @replace: a file that has the name.
 * Return: 0; negative errno (-EEXIST: something is there).
 */
int tree_part_create(int root, const char *path, bool replace,
		     struct tree_part *part);
/* Close it and give it its name. Return: 0; -EEXIST; errno, and it is gone. */
int tree_part_keep(struct tree_part *part, bool replace);
void tree_part_drop(struct tree_part *part);

#endif
