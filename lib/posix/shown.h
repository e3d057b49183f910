/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shown.h - the tree that the catalog of an image leads to
 */
#ifndef STELE_POSIX_SHOWN_H
#define STELE_POSIX_SHOWN_H

#include "lib/posix/tree.h"

/* Is it one of the tree, in use? */
static inline bool stele_posix_is_part(const struct stele_catalog_segment *segment)
{
	return stele_catalog_is_tree(segment) && !segment->unused_since;
}
/* The root's part that is in use. False: there is no tree. */
bool stele_posix_find(const struct stele_image *image, struct stele_catalog_segment *out);
/* Bytes of all parts that are in use. */
uint64_t stele_posix_size(const struct stele_image *image);
/* Of its front. 0: there is no tree, or its front is damaged or cannot be read. */
uint32_t stele_posix_block_bits(const struct stele_image *image);
/* The same in bytes. */
static inline uint32_t stele_posix_shown_block(const struct stele_image *image)
{
	const uint32_t bits = stele_posix_block_bits(image);

	return bits ? UINT32_C(1) << bits : 0;
}
/*
 * Are its blocks as large as those of the device, as a kernel wants them? False: they are
 * not, or cannot be read, or there is no tree. One that came with its image may be so.
 */
bool stele_posix_fits(const struct stele_image *image);

/* The tree as the catalog's snapshots make it, to compare parts with. */
struct stele_posix_shown {
	struct stele_posix_tree tree;
	/* All owned. */
	struct stele_catalog_segment *segments;
	struct stele_catalog_snapshot *infos; /* have the names */
	struct stele_posix_snapshot *snapshots;
	struct stele_catalog_ref *refs;
};
/*
 * Release in any case. Return: 0; -EUCLEAN (its front is damaged, without which nothing tells
 * what the rest shall be); errors of stele_posix_tree_plan().
 */
int stele_posix_shown_load(struct stele_image *image, struct stele_posix_shown *out);
/*
 * Is a part in use what they make, byte for byte? Return: 0; -EUCLEAN (no, and *differs says
 * where on the target); errors of stele_posix_part_plan().
 */
int stele_posix_shown_check(struct stele_posix_shown *shown,
			    const struct stele_catalog_segment *part, uint64_t *differs);
void stele_posix_shown_release(struct stele_posix_shown *shown);

/* All parts in use. Return: 0 (also: there is none); as of the first one that differs. */
int stele_posix_check(struct stele_image *image, uint64_t *differs);

#endif
