/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit.h - from what an image's catalog says to what its next one shall say
 *
 * An edit is the catalog in memory, to be changed: segments, snapshots with
 * their references, notes, signatures. It hands out space, so that what the
 * next generation refers to is written before its commit. One edit at a time
 * on an image, whose device is open for writing and fenced. Until the commit
 * nothing has changed; an edit that is released without one has done nothing
 * but write to bytes that nobody refers to.
 */
#ifndef STELE_IMAGE_EDIT_H
#define STELE_IMAGE_EDIT_H

#include "lib/image/image.h"
#include "lib/image/space.h"

struct stele_edit_ref {
	uint64_t segment_id;
	uint64_t deleted_offset, deleted_count, deleted_owner; /* 0: none */
};

struct stele_edit_snapshot {
	char name[STELE_SNAPSHOT_NAME_SIZE];
	uint64_t id; /* 0 until it is added */
	uint64_t parent;
	int64_t time;
	uint64_t sample_count;
	uint8_t digest[STELE_DIGEST_SIZE];
	struct stele_edit_ref *refs; /* owned */
	uint32_t ref_count;
	char *note; /* owned, not terminated */
	uint32_t note_size;
	void *signatures; /* owned: as they lie in the catalog, carried along */
	uint32_t signature_count;
};

struct stele_edit {
	struct stele_image *image; /* the caller's */
	struct stele_catalog_segment *segments; /* ascending by offset */
	uint32_t segment_count;
	struct stele_edit_snapshot *snapshots; /* ascending by id */
	uint32_t snapshot_count;
	uint64_t next_snapshot_id;
	struct stele_extents used; /* by either slot, or handed out */
	uint64_t image_size;	   /* grows with the target, see grow */
	bool growable;		   /* the target grows when space runs out */
	/*
	 * Bits that what is added needs, for the superblock beside those it
	 * has: the writer of a segment with a boundary sets BOUNDARY; DELETED
	 * comes by itself.
	 */
	uint64_t feature_incompat;
};

/*
 * Begin with what the image holds; an unfinished image (stele_image_begin())
 * holds nothing. Return: 0; -EOPNOTSUPP (a ro_compat feature; logged);
 * -ENOMEM; errno of the device.
 */
int stele_edit_begin(struct stele_image *image, struct stele_edit *edit);
/* Idempotent on a zeroed struct. */
void stele_edit_release(struct stele_edit *edit);

/*
 * Space for `size` bytes (whole blocks) at a multiple of `align` (0: a block).
 * A file or RBD image whose image reached up to its end is made larger when
 * need be. Return: 0; -ENOSPC (logged: how much, and what to do); errno.
 */
int stele_edit_allocate(struct stele_edit *edit, uint64_t size, uint64_t align,
			uint64_t *offset);
/* Let the image have so many bytes, which its target has. 0; -EINVAL. */
int stele_edit_grow(struct stele_edit *edit, uint64_t image_size);

/* Of the one segment that the next generation may write: stele-format(5). */
int stele_edit_segment_id(const struct stele_edit *edit, uint64_t *id);
/* Return: 0; -EEXIST (that id is there); -EOVERFLOW (too many); -ENOMEM. */
int stele_edit_add_segment(struct stele_edit *edit,
			   const struct stele_catalog_segment *segment);
/* NULL: none of that id. */
const struct stele_catalog_segment *
stele_edit_segment(const struct stele_edit *edit, uint64_t id);
/* Does a snapshot refer to it? */
bool stele_edit_in_use(const struct stele_edit *edit, uint64_t segment_id);
/* Forget a segment that none refers to. Return: 0; -ENOENT; -EBUSY. */
int stele_edit_drop_segment(struct stele_edit *edit, uint64_t id);

/*
 * Write a deleted list (strictly ascending; count 0: none) for the next
 * generation, and have `ref` refer to it. Return: 0; -EINVAL; -ENOSPC; errno.
 */
int stele_edit_write_deleted(struct stele_edit *edit,
			     struct stele_edit_ref *ref,
			     const uint64_t *numbers, uint64_t count);

/* NULL: none of that name. NULL as name: the newest. */
struct stele_edit_snapshot *stele_edit_snapshot(struct stele_edit *edit,
						const char *name);
/*
 * Add one; refs and note are copied, id is given out. Digest and sample_count
 * are the caller's to know. Return: 0; -EEXIST (the name, logged); -EINVAL (name);
 * -EOVERFLOW (too many snapshots, refs or notes); -ENOMEM.
 */
int stele_edit_add_snapshot(struct stele_edit *edit,
			    const struct stele_edit_snapshot *snapshot);
/* Return: 0; -ENOENT; -EEXIST; -EINVAL. */
int stele_edit_rename_snapshot(struct stele_edit *edit, const char *name,
			       const char *to);
int stele_edit_remove_snapshot(struct stele_edit *edit, const char *name);

/* Bytes that the catalog of a commit now would take, at most. */
uint64_t stele_edit_commit_size(const struct stele_edit *edit);
/*
 * Commit, see stele_image_commit(). Free extents and unused_since follow from
 * what is used. Afterwards the edit stands for the new state, and may go on.
 */
int stele_edit_commit(struct stele_edit *edit, int64_t time);

#endif
