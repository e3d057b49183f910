/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork.h - an image of which there are several versions
 *
 * Two writers published at once: superblock copies of the same generation differ, and are
 * its branches. Or a generation was published, but its catalog is damaged since, or it may have
 * been, but nothing is left of it (copies.h): then it and the older one, as far as there is
 * anything of them, are the branches. Only the image's owner can know which one is right. Until
 * then, the image is what all branches with a sound catalog share: snapshots of the same id,
 * name, digest and place. Nobody writes to it, except to make one branch the image.
 */
#ifndef STELE_IMAGE_FORK_H
#define STELE_IMAGE_FORK_H

#include "lib/image/image.h"

struct stele_branch {
	unsigned int slot;
	struct stele_superblock sb;
	int error; /* why its catalog cannot be used, or 0 */
	void *blocks; /* owned */
	struct stele_catalog catalog;
};

struct stele_fork {
	struct stele_branch branches[STELE_SUPERBLOCKS];
	unsigned int count;
	uint64_t lost; /* generation that was published, and is damaged since; 0: none */
	bool doubt;    /* there may have been none */
};

/*
 * For an image whose copies of this generation differ, or one that is newer is damaged: fill
 * in sb, slot, catalog and fork. Return: 0; -ENOTUNIQ (no branch is usable; logged); -ENOMEM;
 * errno.
 */
int stele_fork_load(struct stele_device *dev, const struct stele_log *log,
		    const struct stele_copies *copies, uint64_t generation,
		    struct stele_image *image);
/* What became of the lost generation, in words. */
const char *stele_fork_fate(const struct stele_fork *fork);
/* NULL is fine. */
void stele_fork_free(struct stele_fork *fork);

/* Do all branches share this snapshot of one of them? */
bool stele_fork_common(const struct stele_fork *fork,
		       const struct stele_branch *branch, uint32_t index);
/* Does any branch have a snapshot of that name, or digest (either may be NULL)? */
bool stele_fork_has(const struct stele_fork *fork, const char *name,
		    const uint8_t *digest);
/*
 * Make the image that branch (from 0), for the writer that resolves the fork. Return:
 * 0; -ENOENT (no such branch); the branch's error.
 */
int stele_fork_choose(struct stele_image *image, unsigned int branch);

#endif
