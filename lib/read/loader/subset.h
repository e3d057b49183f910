/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subset.h - which samples of a dataset take part: all, a range, or a list
 *
 * Members are counted from 0; a list keeps the caller's order, so that the same
 * list is the same subset.
 */
#ifndef STELE_READ_LOADER_SUBSET_H
#define STELE_READ_LOADER_SUBSET_H

#include "lib/read/dataset.h"

struct stele_hash;

struct stele_subset {
	uint64_t first, count;
	uint64_t *ids; /* `count` of them; NULL: first, first + 1, ... */
};

/*
 * Checks and copies what the source asks for.
 * Return: 0; -EINVAL (no dataset; empty, or a list and a range), -ERANGE, -ENOTUNIQ
 * (logged); -ENOMEM.
 */
int stele_subset_init(struct stele_subset *subset,
		      const struct stele_loader_source *source,
		      const struct stele_log *log);
/* Idempotent. */
void stele_subset_release(struct stele_subset *subset);

/* `member` < count. */
static inline uint64_t stele_subset_id(const struct stele_subset *subset,
				       uint64_t member)
{
	return subset->ids ? subset->ids[member] : subset->first + member;
}

/* All that tells it from another subset of the same dataset. */
void stele_subset_hash(const struct stele_subset *subset,
		       struct stele_hash *hash);

#endif
