/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.h - is this the digest of that sample, all the way up to the root?
 *
 * Blocks that were found to lead to the root are kept, so that most samples cost no
 * read of digests. A block is looked at for the first time when the one above it is
 * proven, and it is kept when its hash is what that one says: nothing else ever is.
 * After a mismatch nothing is trusted any more, so who then reads the sample
 * once more compares it with what is read anew, too.
 *
 * Belongs to one thread.
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
 * root? The segment must outlive the proof. Return: 0; -EBADMSG (logged); errors of
 * stele_section_read().
 */
int stele_proof_check(struct stele_proof *proof,
		      const struct stele_segment *segment, uint64_t number,
		      const uint8_t digest[32]);

#endif
