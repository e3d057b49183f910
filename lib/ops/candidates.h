/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidates.h - samples of which only their bytes can tell whether they changed
 *
 * All of one segment: their digests are read in the order in which these lie on the
 * device, in one pass, then the files are hashed in the order of their keys, by many
 * threads. The list spills to a file when it outgrows its share of the memory.
 */
#ifndef STELE_OPS_CANDIDATES_H
#define STELE_OPS_CANDIDATES_H

#include "lib/image/base.h"
#include "lib/segment/plan.h"

struct stele_candidate {
	uint64_t ordinal, number;
	uint64_t size; /* of the payload */
	uint8_t digest[STELE_DIGEST_SIZE]; /* by the base */
	uint32_t changed; /* is it another one? */
	uint32_t reserved;
};

struct stele_candidates {
	struct stele_builder *builder;
	const struct stele_plan *plan;
	const struct stele_source *source;
	const struct stele_base *base;
	const struct stele_segment *segment; /* of all in the list */
	struct stele_spill_pool pool;
	struct stele_spill list;   /* in the order of ordinals, as they are added */
	struct stele_spill places; /* of these, in the order of numbers */
	uint64_t count;
	uint64_t bytes; /* hashed, of all segments; atomic */
	uint64_t bytes_total; /* of all that were added */
};

/* Return: 0; -ENOMEM and the like. Release in any case. */
int stele_candidates_init(struct stele_candidates *candidates,
			  struct stele_builder *builder,
			  const struct stele_plan *plan,
			  const struct stele_source *source,
			  const struct stele_base *base);
/* Idempotent on a zeroed struct. */
void stele_candidates_release(struct stele_candidates *candidates);

/* Ordinals ascend. Return: 0; errors of grow. */
int stele_candidates_add(struct stele_candidates *candidates, uint64_t ordinal,
			 uint64_t number, uint64_t size);
/*
 * Find out which ones changed. A file that cannot be read, and may be left out,
 * counts as not changed.
 * Return: as stele_compare().
 */
int stele_candidates_decide(struct stele_candidates *candidates);

#endif
