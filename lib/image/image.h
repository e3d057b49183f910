/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - an image as recovery finds it, and how a commit changes it
 *
 * Recovery reads all four superblock copies; of those that decode, the highest
 * generation whose catalog decodes wins. Two copies of one generation that
 * differ are a fork: only what both have in common is there, see fork.h. A commit
 * writes new blocks only where no copy leads to (see space.h), flushes, writes the
 * superblock of the slot that recovery did not select, then its mirror, flushes, and
 * reads both back. What
 * the next generation holds, and where, is an edit's to know: edit.h.
 */
#ifndef STELE_IMAGE_IMAGE_H
#define STELE_IMAGE_IMAGE_H

#include <stdatomic.h>

#include "format/catalog.h"
#include "lib/device/device.h"
#include "lib/image/copies.h"

struct stele_fork;

struct stele_image {
	struct stele_device *dev; /* owned; NULL after take */
	struct stele_log log;
	struct stele_superblock sb;
	unsigned int slot;	  /* 0 or 1: where sb was found */
	unsigned int copies_good; /* that decode, of any generation */
	uint64_t generation_max;  /* of any copy: a commit goes above it */
	bool publishing; /* a superblock may have been written: no way back */
	struct stele_copies copies; /* as they were found, and as we have written them */
	void *catalog_blocks;
	struct stele_catalog catalog; /* none while sb.state is unfinished */
	struct stele_fork *fork; /* owned; NULL: none. See fork.h */
	_Atomic bool stale; /* known to be gone, and told; see stale.h */
	struct stele_prover *prover; /* owned; NULL: checksums of sections suffice */
};

/*
 * Recover the image on `dev`. On success the image owns `dev`; on failure the
 * caller still does. Others may commit meanwhile: see STELE_LOAD_TRIES.
 * Return: 0; -EMEDIUMTYPE (no copy has our magic); -ENODATA (unfinished; or
 * target shorter than sb.image_size); -ENOTUNIQ; -EBADMSG, -EUCLEAN,
 * -EOPNOTSUPP (the best reason why no copy will do); device errno.
 */
int stele_image_load(struct stele_device *dev, const struct stele_log *log,
		     struct stele_image *out);
/*
 * How often one who reads while others commit begins again, when what a superblock
 * led to has been written over meanwhile, before he gives up with -EBUSY.
 */
#define STELE_LOAD_TRIES 64u
/* Does the device hold another generation by now? False also when unreadable. */
bool stele_image_changed(const struct stele_image *image);
/* Closes the device too. Idempotent. */
void stele_image_release(struct stele_image *image);

/*
 * Begin a new image: an unfinished superblock (of `sb` only uuid, label,
 * image_size, create_time count) into all four copies, flushed. Until then,
 * an older image is intact; from then on the target is recognised as
 * unfinished. Ownership as with load.
 */
int stele_image_begin(struct stele_device *dev, const struct stele_log *log,
		      const struct stele_superblock *sb,
		      struct stele_image *out);

/*
 * Are the superblock copies what they were when it was loaded, but for what we have
 * written? `now` gets them. Return: 0; -ESTALE (somebody else has published;
 * logged); -ENOMEM; errno of the device (one cannot be read any more).
 */
int stele_image_check_fresh(const struct stele_image *image,
			    struct stele_copies *now);

/* Copies that are not what they should be; 0: there is nothing to repair. */
unsigned int stele_image_wrong_copies(const struct stele_image *image);
/* May it be changed? 0; -EOPNOTSUPP; -ENOTUNIQ (a fork; logged). */
int stele_image_check_writable(const struct stele_image *image);

/*
 * Say on the device that it will be changed, until stele_intent_end(); and write the
 * superblock again where its slot does not hold it, as an interrupted writer leaves it.
 * Return: 0; -EBUSY (a process of this machine is writing; logged); -ESTALE (somebody
 * has published since the load); -EOPNOTSUPP; -ENOMEM; errno.
 */
int stele_image_announce(struct stele_image *image);

/* What the next generation shall hold, and where. Arrays are the caller's. */
struct stele_catalog_draft {
	const struct stele_catalog_segment *segments;
	const struct stele_catalog_snapshot *snapshots;
	const struct stele_catalog_ref *refs;
	const struct stele_catalog_free *free;
	const void *signatures; /* as they are stored */
	const char *notes;
	struct stele_catalog_counts counts;
	uint64_t next_snapshot_id;
	uint64_t feature_incompat; /* bits to set in the superblock */
	uint64_t image_size;	   /* 0: as it is */
	uint64_t catalog_offset;   /* where nothing leads to */
	uint64_t high_water;	   /* end of all of it, the catalog too */
	int64_t time;
};

/* Bytes that the catalog of such a draft takes. */
uint64_t stele_image_commit_size(const struct stele_catalog_draft *draft);

/* The same for a deleted list: whole blocks. */
uint64_t stele_image_deleted_size(uint64_t count);
/*
 * Write a deleted list for the next generation at `offset`. `numbers` strictly
 * ascending, count > 0. Fills ref->deleted_*. 0; -EINVAL; -ENOMEM; errno.
 */
int stele_image_write_deleted(struct stele_image *image, uint64_t offset,
			      const uint64_t *numbers, uint64_t count,
			      struct stele_catalog_ref *ref);

/*
 * Commit: everything written before (and reaped) becomes durable, the draft
 * becomes the image. Whoever did not get the draft from an edit keeps what the
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
 * Have all superblock copies say what the newest says, durably: what only an older
 * generation leads to is free then, at the price that there is none to fall back on.
 * Return: 0; -EIO (read back something else); device errno.
 */
int stele_image_level(struct stele_image *image);

#endif
