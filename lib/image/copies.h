/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.h - the superblocks of a target, as read: four copies, and witnesses
 *
 * Copies 0 and 1 are the slots, 2 and 3 their mirrors: copy i belongs to slot
 * i % 2. Shared by recovery, begin, commit and verify.
 *
 * All that a witness leads to is durable before it is written, and the copies follow. So a
 * generation that only its witness shows is whole: its writer was interrupted, or its copies
 * are lost. It counts like one that has copies, unless it was made from an older generation
 * than theirs: then another writer was faster.
 *
 * No crash leaves a slot without a copy that decodes, for they are written one after the
 * other is durable. So such a slot was damaged, and if nothing shows that the generation
 * which belongs there is known, one may be lost.
 */
#ifndef STELE_IMAGE_COPIES_H
#define STELE_IMAGE_COPIES_H

#include "lib/device/device.h"

#include "format/superblock.h"

struct stele_copy {
	uint64_t offset;
	int error;	 /* 0: sb is set; otherwise why not */
	bool misplaced;	 /* a sound block, but of another place */
	uint64_t begin;	 /* of its image, then; UINT64_MAX: before the target */
	const char *why; /* the step that failed; static */
	struct stele_superblock sb;
};

#define STELE_WITNESSES 2u
#define STELE_SUPERBLOCKS (STELE_SUPERBLOCK_COPIES + STELE_WITNESSES)

struct stele_copies {
	/* Behind the copies, the witnesses; of those that do not count, .error is set, too. */
	struct stele_copy copy[STELE_SUPERBLOCKS];
	unsigned int good;	   /* copies that decode */
	uint64_t generation_max;   /* of copies and witnesses, and of what may be lost */
	bool doubt;		   /* a generation may be */
};

/*
 * Read and decode all; one that cannot be read gets the device's error, and none is seen in
 * what belongs to the image on a partition. Return: 0; -ENOMEM; errno of the device's size.
 */
int stele_copies_read(struct stele_device *dev, struct stele_copies *out);
/* Leave out the witnesses. */
void stele_copies_forget_witnesses(struct stele_copies *copies);
bool stele_copies_has_witness(const struct stele_copies *copies);

/*
 * What an image has overwritten that is unfinished, or has no snapshot yet, in words: see
 * stele_new_image.lost; NULL: nothing.
 */
const char *stele_copies_lost(const struct stele_copies *copies);

/* Of superblock `index`; a witness stands in for the slot that its copies belong to. */
unsigned int stele_copies_slot(const struct stele_copies *copies, unsigned int index);

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

/*
 * Is there but what is left of an image that begins elsewhere: as where a partition was made
 * on a disk that an image had as a whole?
 */
bool stele_copies_elsewhere(const struct stele_copies *copies);

/* Of a disk's partitions, of which so many at most are looked at. */
#define STELE_PARTITIONS_MAX 128u
/* Which of those that begin there has a superblock of an image? `count`: none. */
unsigned int stele_copies_find_partition(struct stele_device *dev, const uint64_t *begins,
					 unsigned int count);

/* By how many bytes is the target smaller than its image? */
uint64_t stele_copies_missing(const struct stele_copies *copies, uint64_t target_size);

/* Is this error about the contents, rather than a failure to read or understand them? */
bool stele_error_of_content(int error);
/*
 * Is it about the blocks that were read, of contents or of the medium, so that others may
 * be sound? Not if the device is gone, cut off or fenced, or if a cluster does not answer.
 */
bool stele_error_of_blocks(const struct stele_device *dev, int error);

/* Write superblock `index`; not flushed. `block` is one block of memory. */
int stele_copies_write(struct stele_device *dev, unsigned int index,
		       const struct stele_superblock *sb, void *block);
/* Index of the witness in that place for mirrors. */
unsigned int stele_copies_witness(uint64_t mirror_offset);
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
