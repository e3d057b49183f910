/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - the files of an image as EROFS has them: metadata over the samples' own bytes
 *
 * A directory for each snapshot; in it each sample is a file at its key, whose blocks are its
 * slot. A sample has one inode, however many snapshots have it. The tree is one extent:
 *
 *	| front | inodes of files, by segment and number | of directories | entries |
 *
 * The front is a copy of what block 0 shall have. All places follow from counts, so the keys
 * are walked twice: first to count, then to write; they come from the sections, merged, and
 * nothing is kept of them but the directory at hand, and 8 bytes for each sample. Same image,
 * same bytes.
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
	int64_t time;
	const struct stele_catalog_ref *refs; /* indices into the segments below */
	uint32_t ref_count;
};

struct stele_posix_part;
struct stele_descriptor;

struct stele_posix_tree {
	/* The caller's: what the tree shows. Segments may be of a next generation. */
	struct stele_image *image;
	const struct stele_catalog_segment *segments;
	uint32_t segment_count;
	const struct stele_posix_snapshot *snapshots;
	uint32_t snapshot_count;
	uint32_t block_min; /* of a filesystem on this device */

	/* Of the plan. */
	uint64_t size; /* bytes, whole blocks */
	uint64_t file_count; /* in all snapshots */
	uint64_t directory_count; /* without the root */
	uint64_t left_out;   /* samples that have no file, in all snapshots */
	char first_left_out[128]; /* its key, perhaps cut */

	uint32_t block_bits;
	uint64_t directories, entries; /* where these areas begin */
	uint64_t entries_size;
	struct stele_posix_part *parts; /* owned, by segment */
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
 * What will be written, and how large it is. Release in any case. Return: 0; -EOPNOTSUPP (a
 * granule below 512; logged); -EUCLEAN and errors of sections; -ENOMEM.
 */
int stele_posix_tree_plan(struct stele_posix_tree *tree);
/*
 * Write it to `offset`, whole but for what the device has in its cache. Return: 0; -EFBIG
 * (beyond 2^32 blocks; logged); as plan; errno of the device.
 */
int stele_posix_tree_write(struct stele_posix_tree *tree, uint64_t offset);
/*
 * Is that what lies there? Return: 0; -EUCLEAN (no, and *differs says where); as write.
 */
int stele_posix_tree_check(struct stele_posix_tree *tree, uint64_t offset,
			   uint64_t *differs);
void stele_posix_tree_release(struct stele_posix_tree *tree);

#endif
