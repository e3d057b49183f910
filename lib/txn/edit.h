/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit.h - from what an image's catalog says to what its next one shall say
 *
 * An edit is the catalog in memory, to be changed: segments, snapshots with
 * their references, notes, signatures. It hands out space, so that what the
 * next generation refers to is written before its commit. One edit at a time
 * on an image, whose device is open for writing and fenced. Until the commit
 * nothing has changed; an edit that is released without one has done nothing
 * but write to bytes that nobody refers to; a target that it made larger has its
 * old size again, and of a file what it allocated is given back.
 *
 * What is changed here is checked as far as one call can; a commit refuses
 * what recovery would refuse. After an error of a commit, release it.
 */
#ifndef STELE_TXN_EDIT_H
#define STELE_TXN_EDIT_H

#include "lib/image/image.h"
#include "lib/txn/space.h"

struct stele_edit_ref {
	uint64_t segment_id;
	uint64_t deleted_offset, deleted_count, deleted_owner; /* 0: none */
};

struct stele_edit_snapshot {
	char name[STELE_SNAPSHOT_NAME_SIZE];
	uint64_t id; /* 0 until it is added */
	uint64_t parent;
	int64_t time;
	int64_t source_time; /* what did not change since is as the source has it; 0: not known */
	uint64_t sample_count, payload_size; /* of live ones */
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
	/*
	 * Features that the superblock shall have from now on. DELETED comes by
	 * itself; BOUNDARY and TENSOR of a segment are for who adds it to set.
	 */
	uint64_t feature_incompat;
	struct stele_extents used; /* by any superblock copy, or handed out */
	uint64_t image_size;	   /* grows with the target, see grow */
	uint64_t old_target_size;  /* before we made it grow; 0: we did not */
	bool stale;		   /* `used` is of before a commit */
	bool reserved;		   /* blocks of a file, see stele_edit_give_back() */
	bool takes;		   /* the next generation has more than this one */
};

/*
 * Begin with what the image holds; an unfinished image (stele_image_begin())
 * holds nothing. Reads all superblock copies, and the catalogs that they lead to.
 * What was found is flushed: who wrote it may have been killed before he did, and
 * from here on it is built on, or told to a user. A device that is not writable
 * serves for a look.
 * Return: 0; -EOPNOTSUPP (a ro_compat feature; logged); -ESTALE (the device
 * holds another generation by now); -ENOMEM; errno of the device (also: one of
 * the superblock copies cannot be read; logged). Release in any case.
 */
int stele_edit_begin(struct stele_image *image, struct stele_edit *edit);
/* What is used, when that is of before a commit. Return: as of begin. */
int stele_edit_refresh(struct stele_edit *edit);
/* Before the image. Idempotent on a zeroed struct. */
void stele_edit_release(struct stele_edit *edit);

/*
 * Space for `size` bytes (whole blocks, not 0) at a multiple of `align` (0: a
 * block; else a power of two of at least that) that nothing leads to. First fit;
 * handed out once, until the commit after the next if it is not referred to by then.
 * A target that can be resized (file, RBD) is made larger when need be, and the
 * image with it. On others the last bytes are not handed out, nor are they there for
 * a snapshot that is added: the catalog of a next generation, which something was
 * removed from, always has room.
 * Return: 0; -ENOSPC (logged: how much, and what to do); -EINVAL; errno of the device.
 */
int stele_edit_allocate(struct stele_edit *edit, uint64_t size, uint64_t align,
			uint64_t *offset);
/*
 * Make the target so large, if it is smaller; the image stays. Return: 0; errno of
 * the device.
 */
int stele_edit_enlarge(struct stele_edit *edit, uint64_t target_size);
/* Target and what was allocated shall stay as they are, whatever becomes of this. */
void stele_edit_keep_space(struct stele_edit *edit);
/*
 * Let the image have so many bytes (whole blocks, no fewer than now), which its
 * target has. Return: 0; -EINVAL; errno of the device.
 */
int stele_edit_grow(struct stele_edit *edit, uint64_t image_size);

/*
 * For a segment that the next generation writes. It seeds all checksums, so it must be
 * of this attempt alone: random. Return: 0; errno of getrandom(2).
 */
int stele_edit_segment_id(const struct stele_edit *edit, uint64_t *id);
/*
 * A segment that lies in space that was handed out; unused_since is set by the
 * commit. Return: 0; -EEXIST (that id is there); -EOVERFLOW (too many; logged);
 * -ENOMEM.
 */
int stele_edit_add_segment(struct stele_edit *edit,
			   const struct stele_catalog_segment *segment);
/* NULL: none of that id. */
const struct stele_catalog_segment *
stele_edit_segment(const struct stele_edit *edit, uint64_t id);
/* Does a snapshot refer to it? */
bool stele_edit_in_use(const struct stele_edit *edit, uint64_t segment_id);
/*
 * Forget a segment that none refers to: the commit lists its space as free, the
 * one after the next may write there. Return: 0; -ENOENT; -EBUSY.
 */
int stele_edit_drop_segment(struct stele_edit *edit, uint64_t id);

/*
 * Write a deleted list (strictly ascending; count 0: none) for the next
 * generation, and have `ref` refer to it; its segment stays. Snapshots may share a
 * list: copy the ref. Return: 0; -EINVAL; -ENOSPC; -ENOMEM; errno.
 */
int stele_edit_write_deleted(struct stele_edit *edit,
			     struct stele_edit_ref *ref,
			     const uint64_t *numbers, uint64_t count);

/*
 * NULL: none of that name. NULL as name: the newest. Good until a snapshot is
 * added or removed; note, time, refs may be changed in place by who keeps them
 * malloced.
 */
struct stele_edit_snapshot *stele_edit_snapshot(struct stele_edit *edit,
						const char *name);
/* May a snapshot be given this name? Return: 0; -EINVAL (logged). */
int stele_edit_check_name(const char *name, const struct stele_log *log);
/*
 * Add one; refs, note and signatures are copied, an id is given out. `parent` is an id,
 * or 0; digest, sample_count and payload_size are the caller's to know. Return: 0; -EEXIST
 * (the name; logged); -EINVAL (name (logged), parent; a ref to no segment, or to one twice);
 * -EOVERFLOW (too many snapshots, refs or notes; logged); -ENOMEM.
 */
int stele_edit_add_snapshot(struct stele_edit *edit,
			    const struct stele_edit_snapshot *snapshot);
/* Return: 0 (also: that is its name); -ENOENT; -EEXIST; -EINVAL (logged). */
int stele_edit_rename_snapshot(struct stele_edit *edit, const char *name,
			       const char *to);
int stele_edit_remove_snapshot(struct stele_edit *edit, const char *name);

/*
 * Bytes that the catalog of a commit now would take, at most. Return: 0;
 * -ENOMEM.
 */
int stele_edit_commit_size(const struct stele_edit *edit, uint64_t *size);
/*
 * RBD takes space of its pool when something is written there, and a pool that is
 * full has none for the catalog of a delete. So on storage with shots a commit
 * writes to the place where the next catalogs will go, unless they go where older
 * ones were, and a discard leaves it: the first that `used` leaves free.
 * Return: 0; -ENOSPC; -ENOMEM.
 */
int stele_edit_next_place(const struct stele_edit *edit,
			  const struct stele_extents *used, uint64_t *offset,
			  uint64_t *size);
/*
 * Commit, see stele_image_commit(). Free extents, high-water mark and
 * unused_since follow from what is used; a `time` before that of the last commit
 * counts as that. What was handed out and is not referred to is
 * free again. Afterwards the edit stands for the new state, and may go on.
 * Return: 0; -EINVAL (recovery would refuse it; logged); -ENOSPC, -EOVERFLOW
 * (logged); -ENOMEM; -EIO (read back something else); errno of the device.
 */
int stele_edit_commit(struct stele_edit *edit, int64_t time);

/* ---- between edit_space.c and edit_commit.c --------------------------------- */

/*
 * All space is looked for by this: `look` returns 0; -ENOSPC; another error. Where what
 * is free will not do, what was only avoided may (see intent.h), and it looks once more.
 */
int stele_edit_search(struct stele_edit *edit,
		      int (*look)(struct stele_edit *edit, void *user),
		      void *user);
/* Room for `size` more bytes behind all that is used. */
int stele_edit_make_larger(struct stele_edit *edit, uint64_t size,
			   uint64_t align);
/* It is used from now on: whoever looks knows, and a filesystem allocates it. 0; errno. */
int stele_edit_reserve(struct stele_edit *edit, uint64_t offset, uint64_t size);
/* Undo what was done to the target, unless a commit may have been made. */
void stele_edit_give_back(struct stele_edit *edit);
/* Return: -ENOSPC. */
int stele_edit_log_no_space(const struct stele_edit *edit, uint64_t size);

#endif
