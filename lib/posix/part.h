/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.h - what a tree is made of: files.c, directories.c, root.c
 *
 * Private to lib/posix. Each has a plan, which sets size and inode_count, and puts what it
 * planned to the part's offset.
 */
#ifndef STELE_POSIX_PART_H
#define STELE_POSIX_PART_H

#include "lib/image/snapshot.h"
#include "lib/posix/area.h"
#include "lib/posix/directory.h"
#include "lib/posix/tree.h"

/* The files of a segment. */
struct stele_posix_files {
	uint64_t offset; /* of the inodes; 0: not known yet */
	uint32_t nids;	 /* that each takes; 0: it has none */
};

static inline uint32_t stele_posix_block_size(const struct stele_posix_tree *tree)
{
	return UINT32_C(1) << tree->block_bits;
}

/* How many numbers its inodes take: those of files of 4 GiB and more are extended. */
uint32_t stele_posix_files_nids(const struct stele_segment *segment);
/* First block of a sample. 0; -ERANGE (beyond what EROFS reaches); -EUCLEAN (logged). */
int stele_posix_files_block(const struct stele_posix_tree *tree,
			    const struct stele_segment *segment, uint64_t number,
			    uint64_t size, uint32_t *block);
int stele_posix_files_plan(const struct stele_posix_tree *tree, uint32_t segment,
			   struct stele_catalog_segment *out);
int stele_posix_files_put(const struct stele_posix_tree *tree, uint32_t segment,
			  const struct stele_catalog_segment *part,
			  const struct stele_posix_output *out);

int stele_posix_directories_plan(struct stele_posix_tree *tree, uint32_t snapshot,
				 struct stele_catalog_segment *out);
int stele_posix_directories_put(struct stele_posix_tree *tree, uint32_t snapshot,
				const struct stele_catalog_segment *part,
				const struct stele_posix_output *out);

int stele_posix_root_plan(const struct stele_posix_tree *tree,
			  struct stele_catalog_segment *out);
int stele_posix_root_put(const struct stele_posix_tree *tree,
			 const struct stele_catalog_segment *part,
			 const struct stele_posix_output *out);

#endif
