/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.h - is this that sample, or that block of a section, all the way up to the root?
 *
 * Blocks that were found to lead to the root are kept, so that most samples cost no
 * read of digests. A block is looked at for the first time when the one above it is
 * proven, and it is kept when its hash is what that one says: nothing else ever is.
 * After a mismatch nothing is trusted any more, so who then reads the sample
 * once more compares it with what is read anew, too.
 *
 * A proof belongs to one thread; a prover is one behind a lock.
 */
#ifndef STELE_IMAGE_PROOF_H
#define STELE_IMAGE_PROOF_H

#include "format/sections.h"
#include "lib/image/snapshot.h"

struct stele_hash;
struct stele_proof_slot;

struct stele_proof {
	const struct stele_image *image;
	struct stele_hash *hash; /* free for other uses between checks */
	struct stele_disk_block *blocks;
	struct stele_proof_slot *slots; /* what each of the blocks is */
	uint64_t set_count;
	uint64_t clock; /* blocks that were asked for */
};

/*
 * For segments of `image`; at most `memory` bytes of blocks are kept (0: as few as it
 * can do with).
 * Return: 0; -ENOMEM.
 */
int stele_proof_init(struct stele_proof *proof, const struct stele_image *image,
		     size_t memory);
/* Idempotent. */
void stele_proof_release(struct stele_proof *proof);

/*
 * Is `digest` the one of sample `number`, all the way up to the descriptor's tree
 * root? Return: 0; -EBADMSG (logged); errors of stele_section_fetch().
 */
int stele_proof_check(struct stele_proof *proof,
		      const struct stele_segment *segment, uint64_t number,
		      const uint8_t digest[32]);
/*
 * Is it block `leaf` of level 0 of the segment's tree? See stele_descriptor_leaf().
 * Return: as stele_proof_check().
 */
int stele_proof_check_block(struct stele_proof *proof,
			    const struct stele_segment *segment, uint64_t leaf,
			    const struct stele_disk_block *block);

/* For all threads that read sections of one image. */
struct stele_prover;
/* `image` must not move while it lives. Return: 0; -ENOMEM. */
int stele_prover_new(const struct stele_image *image,
		     struct stele_prover **out);
/* NULL is fine. */
void stele_prover_free(struct stele_prover *prover);
/* Blocks that follow each other in level 0. Return: as stele_proof_check(). */
int stele_prover_check(struct stele_prover *prover,
		       const struct stele_segment *segment, uint64_t leaf,
		       const struct stele_disk_block *blocks, uint64_t count);

#endif
