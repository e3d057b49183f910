/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lists.h - the deleted lists of a catalog, each of them once
 *
 * References share a list or are disjoint: stele-format(5), "Catalog".
 * So all lists together are no larger than what is on the target, however
 * many references there are. format/ allocates nothing, and so cannot sort what
 * must be compared; a decoded catalog is accepted only through here.
 */
#ifndef STELE_IMAGE_LISTS_H
#define STELE_IMAGE_LISTS_H

#include "format/catalog.h"

struct stele_lists {
	struct stele_catalog_ref *list; /* owned: ascending by offset */
	uint32_t count;
};

/*
 * Return: 0; -EUCLEAN (two overlap and are not the same list of one segment); -ENOMEM.
 * Release in any case.
 */
int stele_lists_collect(struct stele_lists *lists,
			const struct stele_catalog *catalog);
/* Index of the list of a reference that has one. */
uint32_t stele_lists_find(const struct stele_lists *lists,
			  const struct stele_catalog_ref *ref);
/* Idempotent on a zeroed struct. */
void stele_lists_release(struct stele_lists *lists);

/* Like stele_catalog_decode(), and checks that lists are disjoint. Return: that; -ENOMEM. */
int stele_lists_decode(const void *blocks, uint64_t size,
		       const struct stele_superblock *sb,
		       struct stele_catalog *out, const char **why);

#endif
