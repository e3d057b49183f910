/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.h - verify a sample or a block of a section all the way up to the root
 *
 * Blocks verified up to the root are cached, so that most samples need no
 * read of digests. A block is examined only once the one above it is
 * proven, and cached only if its hash matches that one.
 * After a mismatch nothing is trusted any more, so a caller that rereads the sample
 * compares it with freshly read blocks, too.
 *
 * A caller that goes in order has digests read ahead; none is used before it is proven.
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
	struct stele_proof_slot *slots; /* describes each block */
	uint64_t set_count;
	uint64_t clock; /* blocks requested so far */
	struct stele_disk_block *ahead; /* digests, as they were read; NULL: none are */
	uint64_t ahead_begin, ahead_end; /* which, on the device */
};

/*
 * For segments of `image`; at most `memory` bytes of blocks are cached (0: the
 * minimum).
 * Return: 0; -ENOMEM.
 */
int stele_proof_init(struct stele_proof *proof, const struct stele_image *image,
		     size_t memory);
/*
 * Of what is asked for in order, as samples lie on the device, read more and more blocks of
 * digests at once, up to 256 KiB. Return: 0; -ENOMEM.
 */
int stele_proof_read_ahead(struct stele_proof *proof);
/* Idempotent. */
void stele_proof_release(struct stele_proof *proof);

/*
 * Is `digest` that of sample `number`, all the way up to the descriptor's tree
 * root? Return: 0; -EBADMSG (logged); errors of stele_section_fetch().
 */
int stele_proof_check(struct stele_proof *proof,
		      const struct stele_segment *segment, uint64_t number,
		      const uint8_t digest[32]);

/* For all threads that read sections of one image. */
struct stele_prover;
/* `image` must not move while it lives. Return: 0; -ENOMEM. */
int stele_prover_new(const struct stele_image *image,
		     struct stele_prover **out);
/* NULL is fine. */
void stele_prover_free(struct stele_prover *prover);
/* Consecutive blocks of level 0. Return: as stele_proof_check(). */
int stele_prover_check(struct stele_prover *prover,
		       const struct stele_segment *segment, uint64_t leaf,
		       const struct stele_disk_block *blocks, uint64_t count);

#endif
