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
#include <stdint.h>

/* Why a key cannot name a file; NULL: it can. */
const char *tree_refusal(const char *key, size_t size);
/* How many were refused, if any were, and what can be done. */
void tree_tell_refused(uint64_t count, const char *hint);

/*
 * Of the files below `root`, most lie where the one before does: that directory stays open.
 * Who moves it away meanwhile takes along what is written into it. One thread.
 */
struct tree {
	int root;
	int dir;      /* -1: none */
	char *parent; /* its path below root, while it is open */
};

void tree_init(struct tree *tree, int root);
void tree_release(struct tree *tree); /* root stays open */

enum tree_how {
	TREE_LOOK = 1 << 0,    /* whether the name is free, before anything is written */
	TREE_REPLACE = 1 << 1, /* a file that has the name */
	TREE_SPARE = 1 << 2,   /* with REPLACE: not what output_spares() */
};

/* A file that gets its name once it is complete: who is killed leaves no half of one. */
struct tree_part {
	struct tree *tree;
	int fd;		  /* for the caller to write */
	const char *base; /* its name in tree->dir */
	unsigned int how;
	char name[48]; /* meanwhile; "": none */
};
/*
 * Begin the file `path` below tree->root, in directories that are made if need be. Ends with
 * keep or drop, unless it fails, and before the next one; `path` lasts until then.
 * @how: enum tree_how. Return: 0; negative errno (-EEXIST: something is there; -ETXTBSY: it
 * is spared, output_spared_reason() says why).
 */
int tree_part_create(struct tree *tree, const char *path, unsigned int how,
		     struct tree_part *part);
/* Close it and give it its name. Return: 0; -EEXIST; errno, and it is gone. */
int tree_part_keep(struct tree_part *part);
void tree_part_drop(struct tree_part *part);

#endif
