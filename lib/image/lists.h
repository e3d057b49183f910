/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lists.h - the deleted lists of a catalog, each of them once
 *
 * References share a list or are disjoint, and few share a first list alone:
 * stele-format(5), "Catalog". So all lists together are no larger than what is on the
 * target, and what is deleted by all of them no more than some times that, however
 * many references there are. format/ allocates nothing, and so cannot sort what
 * must be compared; a decoded catalog is accepted only through here.
 */
#ifndef STELE_IMAGE_LISTS_H
#define STELE_IMAGE_LISTS_H

#include "format/catalog.h"

struct stele_list {
	struct stele_catalog_list at;
	uint32_t segment;
	uint64_t first; /* offset of the first list that it is a second one of; 0: none */
	uint64_t deleted_count; /* samples, with those of `first`; 0: no reference ends with it */
	uint32_t seconds; /* lists that this is the first one of */
};

struct stele_lists {
	struct stele_list *list; /* owned: ascending by offset */
	uint32_t count;
};

/*
 * Return: 0; -EUCLEAN (two overlap and are not the same list of one segment, or
 * too many are second ones); -ENOMEM.
 * Release in any case.
 */
int stele_lists_collect(struct stele_lists *lists,
			const struct stele_catalog *catalog);
/* Index of the last list of a reference that has one. */
uint32_t stele_lists_find(const struct stele_lists *lists,
			  const struct stele_catalog_ref *ref);
/* Of that at an offset. */
uint32_t stele_lists_at(const struct stele_lists *lists, uint64_t offset);
/* Idempotent on a zeroed struct. */
void stele_lists_release(struct stele_lists *lists);

/* Like stele_catalog_decode(), and checks that lists are disjoint. Return: that; -ENOMEM. */
int stele_lists_decode(const void *blocks, uint64_t size,
		       const struct stele_superblock *sb,
		       struct stele_catalog *out, const char **why);

#endif
