/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - the files of an image as EROFS has them: metadata over the samples' own bytes
 *
 * A directory for each snapshot; in it each sample is a file at its key, whose blocks are its
 * slot. Segments and snapshots never change, so the tree is made of parts that are written
 * once, and stay as long as what they are of; each is an extent of the catalog:
 *
 *	files of a segment         the inodes of its samples, by number
 *	directories of a snapshot  their inodes | their entries
 *	root                       the front | the entries of the root
 *
 * What a part has follows from what it is of, the block size, and the places of the parts that
 * it leads to: directories to files, the root to directories. So an inode of a file cannot know
 * how many snapshots have it: its count of links is 1. The front is a copy of what block 0
 * shall have. Same image, same bytes.
 *
 * Places within directories follow from counts, so the keys are walked twice: first to count,
 * then to write; they come from the sections, merged, and nothing is kept of them but the
 * directory at hand. Of files the sizes are kept, 8 bytes for each sample of one segment.
 *
 * What EROFS cannot name or reach is left out, and counted: components that are empty, . or
 * .., or longer than 255 bytes; a file where there is a directory, too; slots beyond 2^32
 * blocks.
 */
#ifndef STELE_POSIX_TREE_H
#define STELE_POSIX_TREE_H

#include "format/erofs.h"
#include "lib/image/image.h"

struct stele_posix_snapshot {
	const char *name;
	uint64_t id;
	int64_t time;
	const struct stele_catalog_ref *refs; /* indices into the segments below */
	uint32_t ref_count;
};

struct stele_descriptor;
struct stele_posix_files;

struct stele_posix_tree {
	/* The caller's: what the tree shows. Segments may be of a next generation. */
	struct stele_image *image;
	const struct stele_catalog_segment *segments;
	uint32_t segment_count;
	const struct stele_posix_snapshot *snapshots; /* ascending by id */
	uint32_t snapshot_count;
	uint32_t block_min;  /* of a filesystem on this device */
	uint32_t block_bits; /* of parts that are there already; 0: there are none */

	/* Of the plan, which may lower block_bits. */
	uint32_t *by_id; /* owned: indices of the segments */
	struct stele_posix_files *files; /* owned, by segment */
	uint64_t *directories; /* owned: where they lie, by snapshot; 0: not known yet */
	uint64_t end; /* of all that it leads to so far */
	uint64_t inode_count; /* of all parts so far */

	/* Of the directories that were planned. */
	uint64_t left_out; /* samples that have no file */
	char first_left_out[128]; /* its key, perhaps cut */
};

#define STELE_POSIX_GRANULE_MIN (UINT32_C(1) << STELE_EROFS_BITS_MIN)
/*
 * A kernel mounts no block device with blocks of a filesystem that are smaller than its own;
 * any other target is mounted through one whose blocks are not known here.
 */
uint32_t stele_posix_block_min(const struct stele_device *dev);
/*
 * Can its samples be files, with blocks of at least `block_min`? Return: 0; -EOPNOTSUPP (its
 * granule is smaller; logged, with `users`, such as " of 'v1'", or "").
 */
int stele_posix_check_granule(const struct stele_descriptor *d, uint32_t block_min,
			      const char *users, const struct stele_log *log);

/*
 * Which segments have files, and in blocks of what size. Release in any case. Return: 0;
 * -EOPNOTSUPP (a granule below 512; logged); errors of segments; -ENOMEM.
 */
int stele_posix_tree_plan(struct stele_posix_tree *tree);
void stele_posix_tree_release(struct stele_posix_tree *tree);

/* False: what the part is of is no segment with files, and no snapshot, of the tree. */
bool stele_posix_tree_find(const struct stele_posix_tree *tree,
			   const struct stele_catalog_segment *part, uint32_t *index);
/*
 * The part lies there: of files before any directories that lead to them are written, of
 * directories before the root is.
 */
void stele_posix_tree_place(struct stele_posix_tree *tree,
			    const struct stele_catalog_segment *part);
/* Does the one of the index-th segment, or snapshot, lie anywhere yet? */
bool stele_posix_tree_is_placed(const struct stele_posix_tree *tree,
				enum stele_catalog_part part, uint32_t index);
bool stele_posix_tree_has_files(const struct stele_posix_tree *tree, uint32_t segment);

/*
 * What it is of, its size and its inodes; of directories after the plan of the tree. `index`:
 * of the segment, or the snapshot. Return: 0; -EUCLEAN and errors of sections; -ENOMEM.
 */
int stele_posix_part_plan(struct stele_posix_tree *tree, enum stele_catalog_part part,
			  uint32_t index, struct stele_catalog_segment *out);
/*
 * Write it to its offset, whole but for what the device has in its cache. Return: 0; -EFBIG
 * (beyond 2^32 blocks; logged); as plan; errno of the device.
 */
int stele_posix_part_write(struct stele_posix_tree *tree,
			   const struct stele_catalog_segment *part);
/*
 * Is that what lies there? Return: 0; -EUCLEAN (no, and *differs says where); as write.
 */
int stele_posix_part_check(struct stele_posix_tree *tree,
			   const struct stele_catalog_segment *part, uint64_t *differs);

#endif
