/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork.h - an image that two writers published at once
 *
 * Superblock copies of the same generation that differ are its branches. Only whoever ran the
 * writers can know which one is right. Until then, the image is what
 * all branches share: snapshots of the same id, name, digest and place, because
 * neither writer has touched these. Nobody else writes to it.
 */
#ifndef STELE_IMAGE_FORK_H
#define STELE_IMAGE_FORK_H

#include "lib/image/image.h"

struct stele_branch {
	unsigned int copy; /* index of the first copy of this branch */
	struct stele_superblock sb;
	int error; /* why its catalog cannot be used, or 0 */
	void *blocks; /* owned */
	struct stele_catalog catalog;
};

struct stele_fork {
	struct stele_branch branches[STELE_SUPERBLOCK_COPIES];
	unsigned int count;
};

/*
 * For an image whose copies of this generation differ: fill in sb, slot, catalog and
 * fork. Return: 0; -ENOTUNIQ (no branch is usable; logged); -ENOMEM; errno.
 */
int stele_fork_load(struct stele_device *dev, const struct stele_log *log,
		    const struct stele_copies *copies, uint64_t generation,
		    uint64_t target_size, struct stele_image *image);
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
