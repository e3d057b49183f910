/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.h - a target that a build may overwrite
 *
 * What may stand against it is asked in one order, and nothing is written
 * before all has been answered: in use; mapped; held by another opener; an
 * image of ours; a signature of somebody else; too small. Force answers for
 * the images and the signatures, never for the rest.
 */
#ifndef STELE_LIB_CLAIM_H
#define STELE_LIB_CLAIM_H

#include "format/superblock.h"
#include "lib/device/device.h"

struct stele_claim {
	const char *path;  /* the caller's */
	struct stele_log log;
	struct stele_device *dev;
	uint64_t size;	   /* of the target when it was opened */
	uint64_t image_size; /* that an image on it may use */
	bool created;	   /* a file that was not there */
	bool ours;	   /* it holds an image, whole or not */
	struct stele_superblock old; /* the image's, if it is whole */
	bool regular;
	bool force;
	bool touched;	   /* what it held is no more */
};

/*
 * Open the target for an image of `needed` bytes; `file_size` (0: to fit) is
 * for regular files. A file that is not there is created, empty.
 * Return: 0; -EBUSY; -EEXIST; -ENOSPC; -EINVAL; -EOPNOTSUPP; errno of the
 * target (all logged). Drop the claim in any case.
 */
int stele_claim_open(struct stele_claim *claim, const char *path,
		     const char *backend, bool force, uint64_t needed,
		     uint64_t file_size, const struct stele_log *log);
/*
 * From here on the old content is lost: erase foreign signatures, give a file
 * its size. Return: 0; errno of the target (logged).
 */
int stele_claim_take(struct stele_claim *claim);
/*
 * Close. When the build failed, a file that was created goes, one that was
 * empty is empty again, and of anything else that was touched the log says
 * what it is now. Idempotent on a zeroed struct.
 */
void stele_claim_drop(struct stele_claim *claim, bool failed);

#endif
