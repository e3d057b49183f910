/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - what a source has that a snapshot has not, and the other way round
 *
 * Each segment of the base is merged with the sorted table: whichever side has
 * fewer keys leads, the other one is searched ahead. So the pages of keys that
 * are read grow with the source, not with the base; unless what is missing is
 * asked for, which takes all keys once. Two samples of one key and size are
 * compared by their leaf digests, several files at a time.
 */
#ifndef STELE_OPS_COMPARE_H
#define STELE_OPS_COMPARE_H

#include "lib/image/base.h"
#include "lib/segment/plan.h"

/* Numbers of one segment that the new snapshot leaves out, in any order. */
struct stele_drops {
	struct stele_spill numbers; /* uint64_t */
	uint64_t count;
	uint64_t payload_size; /* of these samples */
};

struct stele_comparison {
	struct stele_drops *drops; /* by segment of the base; owned */
	uint32_t segment_count;
	uint64_t added, updated, deleted, unchanged;
};

/*
 * Mark the samples of plan->table that the base has (KNOWN) and those that
 * stand for another one of their key (REPLACES), as the options' UPDATE, QUICK
 * and DELETE_MISSING want it. Release in any case.
 * Return: 0; -EOPNOTSUPP, -EPERM (see label_check.h); -ECANCELED; -ETXTBSY, -ENOENT, -EACCES
 * and the like (a source file, logged); errors of stele_section_read(); -ENOMEM, -ENOSPC and
 * the like.
 */
int stele_compare(struct stele_comparison *comparison,
		  struct stele_builder *builder, struct stele_plan *plan,
		  const struct stele_source *source,
		  const struct stele_base *base);
/* Idempotent on a zeroed struct. */
void stele_comparison_release(struct stele_comparison *comparison);

#endif
