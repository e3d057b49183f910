/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - an image as recovery finds it, and how a commit changes it
 *
 * Recovery reads all four superblock copies and the witnesses; of those that decode, the
 * highest generation whose catalog decodes wins. Two copies of one generation that
 * differ are a fork: only what both branches share is there, see fork.h. So it is if a newer
 * generation is damaged, or may be lost (copies.h). A commit
 * writes new blocks only where no copy refers to (see space.h; for mirrors of catalogs,
 * catalog.h), flushes, writes the witness, from which on the new generation is there, then
 * the superblock of the slot that recovery did not select, and, once that is durable, its
 * mirror, and reads all back. What the next generation holds, and
 * where, is a transaction's to know: lib/txn/txn.h.
 */
#ifndef STELE_IMAGE_IMAGE_H
#define STELE_IMAGE_IMAGE_H

#include <stdatomic.h>

#include "format/catalog.h"
#include "lib/device/device.h"
#include "lib/device/guard.h"
#include "lib/image/copies.h"

struct stele_deleted;
struct stele_fork;

struct stele_image {
	struct stele_device *dev; /* owned; NULL after take */
	struct stele_log log;
	struct stele_superblock sb;
	uint64_t feature_pending; /* of what a transaction added, not committed yet */
	unsigned int slot;	  /* 0 or 1: where sb was found, or belongs */
	unsigned int copies_good; /* that decode, of any generation */
	uint64_t generation_max;  /* of any superblock: a commit goes above it */
	bool mirrored;	 /* the catalog was read from its mirror, being damaged itself */
	bool publishing; /* a witness may have been written: no way back */
	struct stele_copies copies; /* as found, and as written by us */
	void *catalog_blocks;
	struct stele_catalog catalog; /* none while sb.state is unfinished */
	struct stele_fork *fork; /* owned; NULL: none. See fork.h */
	_Atomic bool stale; /* known to be gone, and logged; see stale.h */
	struct stele_prover *prover; /* owned; NULL: section checksums suffice */
};

/*
 * Recover the image on `dev`. On success the image owns `dev`; on failure the
 * caller still does. Others may commit in the meantime: see STELE_LOAD_TRIES.
 * Return: 0; -EMEDIUMTYPE (no block of ours was found); -EINPROGRESS (unfinished);
 * -ENODATA (the target is shorter than sb.image_size); -ENOTUNIQ; -EBADMSG, -EUCLEAN,
 * -EOPNOTSUPP (the most specific reason to reject all copies); device errno.
 */
int stele_image_load(struct stele_device *dev, const struct stele_log *log,
		     struct stele_image *out);
/*
 * The same for who overwrites what is there: -EMEDIUMTYPE, whatever else is left of an image,
 * where nothing says where one begins. `alone`: a witness says so, too; what a writer has
 * erased itself it knows by the copies.
 */
int stele_image_probe(struct stele_device *dev, const struct stele_log *log, bool alone,
		      struct stele_image *out);
/* Of a target without superblocks: the offset of a block of ours that is left; 0: none. */
uint64_t stele_image_remains(struct stele_device *dev);
/*
 * Of the same: is all that is left the intent of a writer of a first generation? That build
 * or copy ended before it wrote its superblocks, or is about to write them.
 */
bool stele_image_is_begun(struct stele_device *dev);
/*
 * Has it a partition table (its type; "": none) with an image in a partition that begins at
 * *begin?
 */
bool stele_image_on_partition(struct stele_device *dev, uint64_t *begin,
			      char table[STELE_GUARD_TABLE_SIZE]);
/*
 * Max retries when a concurrent commit overwrites what the superblock being read
 * refers to; then -EBUSY.
 */
#define STELE_LOAD_TRIES 64u
/* Does the device now have another generation? False also if it cannot be read. */
bool stele_image_changed(const struct stele_image *image);
/* Closes the device too. Idempotent. */
void stele_image_release(struct stele_image *image);

/*
 * Begin a new image: write an unfinished superblock (of `sb` only uuid, label,
 * image_size, create_time count) to all four copies, and flush. Until then
 * an older image is intact; from then on the target is recognizable as
 * unfinished. Ownership as for load.
 */
int stele_image_begin(struct stele_device *dev, const struct stele_log *log,
		      const struct stele_superblock *sb,
		      struct stele_image *out);

/*
 * Are the superblock copies as they were loaded, except for what we have
 * written? Fills `now` with them. Return: 0; -ESTALE (somebody else has published;
 * logged); -ENOMEM; errno of the device (one can no longer be read).
 */
int stele_image_check_fresh(const struct stele_image *image,
			    struct stele_copies *now);

/*
 * Of an image without snapshots, which an interrupted copy leaves: who wrote it last, and what
 * it was written over.
 */
void stele_image_log_empty(const struct stele_image *image, enum stele_log_level level,
			   const struct stele_log *log);

/* Number of copies that are not as they should be; 0: nothing to repair. */
unsigned int stele_image_wrong_copies(const struct stele_image *image);
/*
 * Number of catalogs that are damaged, of this generation or the one before, or missing where
 * there should be a mirror, or its witness. It takes two commits to write both anew.
 */
unsigned int stele_image_wrong_catalogs(const struct stele_image *image);
/* May it be changed? 0; -EOPNOTSUPP; -ENOTUNIQ (a fork; logged). */
int stele_image_check_writable(const struct stele_image *image);

/*
 * Announce on the device that it will be changed, until stele_intent_end().
 * Return: 0; -EBUSY (a process of this machine is writing; logged); -ESTALE (somebody
 * has published since the load); -EOPNOTSUPP; -ENOMEM; errno.
 */
int stele_image_announce(struct stele_image *image);
/*
 * Write the superblock to its slot where it is missing, as an interrupted writer leaves it;
 * before anything else is written. Return: 0; of check_writable; -ESTALE; -EIO; -ENOMEM; errno.
 */
int stele_image_heal(struct stele_image *image);

/* What the next generation will hold, and where. Arrays are the caller's. */
struct stele_catalog_draft {
	const struct stele_catalog_segment *segments;
	const struct stele_catalog_snapshot *snapshots;
	const struct stele_catalog_ref *refs;
	const struct stele_catalog_free *free;
	const char *notes;
	struct stele_catalog_counts counts;
	uint64_t next_snapshot_id;
	uint64_t feature_incompat; /* bits to set in the superblock */
	uint64_t feature_ro_compat; /* all that it shall have */
	uint64_t image_size;	   /* 0: unchanged */
	uint64_t catalog_offset;   /* where nothing refers to */
	uint64_t high_water;	   /* end of everything, including the catalog */
	int64_t time;
};

/* Size of the catalog of such a draft in bytes. */
uint64_t stele_image_commit_size(const struct stele_catalog_draft *draft);

/* The same for a deleted list of so many words: whole blocks. */
uint64_t stele_image_deleted_size(uint64_t words);
/*
 * Write a deleted list for the next generation at `offset`. 0; -EINVAL (nothing is
 * deleted); -ENOMEM; errno.
 */
int stele_image_write_deleted(struct stele_image *image, uint64_t offset,
			      const struct stele_deleted *deleted,
			      struct stele_catalog_list *out);

/*
 * Commit: everything written before (and reaped) becomes durable, the draft
 * becomes the image. Whoever did not get the draft from a transaction keeps what the
 * copies lead to himself. On failure nothing has changed that recovery would see, or (when the
 * acknowledgement was lost) the new state is there whole; the image handle is
 * then only good for release.
 * Return: 0; -EINVAL (recovery would refuse it; logged); -EOPNOTSUPP; -ENOSPC;
 * -EIO (read back something else); -ESTALE (another writer, see intent.h, or its
 * superblock; logged); device errno.
 */
int stele_image_commit(struct stele_image *image,
		       const struct stele_catalog_draft *draft);

/*
 * Make all superblock copies equal to the newest, durably: this frees what only an older
 * generation refers to, at the price of having none to fall back on.
 * Return: 0; -EIO (read back something else); device errno.
 */
int stele_image_level(struct stele_image *image);

#endif
