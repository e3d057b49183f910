/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.h - the four superblock copies of a target, as read
 *
 * Copies 0 and 1 are the slots, 2 and 3 their mirrors: copy i belongs to slot
 * i % 2. Shared by recovery, begin, commit and verify.
 *
 * No crash leaves a slot without a copy that decodes, for they are written one after the
 * other is durable. So such a slot was damaged, and if there is a witness of a generation that
 * is newer than all copies, that one is lost. If the witness of a next generation is damaged as
 * well, one may be.
 */
#ifndef STELE_IMAGE_COPIES_H
#define STELE_IMAGE_COPIES_H

#include "lib/device/device.h"

#include "format/superblock.h"

struct stele_copy {
	uint64_t offset;
	int error;	 /* 0: sb is set; otherwise why not */
	const char *why; /* the step that failed; static */
	struct stele_superblock sb;
};

struct stele_copies {
	struct stele_copy copy[STELE_SUPERBLOCK_COPIES];
	unsigned int good;	   /* that decode */
	uint64_t generation_max;   /* of those, and of what is or may be lost */
	struct stele_superblock lost; /* by its witness; generation 0: nothing is */
	bool doubt; /* one may be */
};

/*
 * Read and decode all four, and the witnesses if a slot has none that decodes; one that cannot
 * be read gets the device's error. Return: 0; -ENOMEM; errno of the device's size.
 */
int stele_copies_read(struct stele_device *dev, struct stele_copies *out);

/*
 * Do two copies have this generation (not 0) but differ?
 * If so, *a and *b are their indices.
 */
bool stele_copies_fork(const struct stele_copies *copies, uint64_t generation,
		       unsigned int *a, unsigned int *b);

/*
 * Are all copies unchanged? One that could not be read before is ignored, unless it is now
 * readable and newer than all others. Return: 0; -ESTALE (contents changed); errno of the
 * device (one can no longer be read).
 */
int stele_copies_compare(const struct stele_copies *before,
			 const struct stele_copies *now);

/* By how many bytes is the target smaller than its image? */
uint64_t stele_copies_missing(const struct stele_copies *copies, uint64_t target_size);

/* Is this error about the contents, rather than a failure to read or understand them? */
bool stele_error_of_content(int error);
/*
 * Is it about the blocks that were read, of contents or of the medium, so that others may
 * be sound? Not if the device is gone, cut off or fenced, or if a cluster does not answer.
 */
bool stele_error_of_blocks(const struct stele_device *dev, int error);

/* Write one copy; not flushed. `block` is one block of memory. */
int stele_copies_write(struct stele_device *dev, unsigned int index,
		       const struct stele_superblock *sb, void *block);
/*
 * Is the witness of this superblock as it was written? Return: 0 (also: it has none);
 * -EMEDIUMTYPE (nothing of ours is there); -EBADMSG; -EUCLEAN (it is of another commit);
 * errno of the device. `block` as above.
 */
int stele_copies_check_witness(struct stele_device *dev, const struct stele_superblock *sb,
			       void *block);
/* Do both copies of a slot read back as `sb`? 0; -EIO; errno of the device. */
int stele_copies_read_back(struct stele_device *dev, unsigned int slot,
			   const struct stele_superblock *sb, void *block);

#endif
