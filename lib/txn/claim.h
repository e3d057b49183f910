/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim.h - a target that a build may overwrite
 *
 * What may stand against it is asked in one order, and nothing is written
 * before all has been answered: in use; mapped; held by another opener; an
 * image of ours; a signature of somebody else; too small. An image that only
 * this process has open is told first. Force answers for
 * the images and the signatures, never for the rest.
 */
#ifndef STELE_TXN_CLAIM_H
#define STELE_TXN_CLAIM_H

#include "format/superblock.h"
#include "lib/device/snaps.h"
#include "lib/image/copies.h"
#include "lib/image/snapshot.h"

/* Zero means the default. */
struct stele_claim_opts {
	const char *backend;
	const char *snapshot; /* that will be made first; may be NULL */
	uint64_t needed;      /* bytes */
	uint64_t file_size;   /* of a file or RBD image; 0: to fit, or as it is */
	uint32_t object_size; /* of an RBD image that is created; 0: 4 MiB */
	bool force;
	bool dry; /* refuse what would be refused, and write nothing: see rehearsal.h */
	bool replace;	      /* a regular file with content keeps it until claim_finish() */
	const char *const *sources; /* up to NULL: what is read, and no target; or NULL */
	bool of_source;	      /* it is a file of the source: only an image is overwritten */
	/*
	 * What will be a copy of this: with replace, one that was cut short is gone on with;
	 * without force, that an image is there is for the caller to say.
	 */
	const struct stele_snapshot *copy_of; /* NULL: begin anew */
	const struct stele_device *copy_from; /* where that is read */
};

#define STELE_CLAIM_TEXT_SIZE 800u

struct stele_claim {
	const char *path;  /* the caller's */
	struct stele_log log;
	struct stele_device *dev;
	uint64_t size;	   /* of the target when it was opened */
	uint64_t image_size; /* that an image on it may use */
	uint64_t needed;   /* as opts */
	bool created;	   /* a file or RBD image that was not there */
	bool ours;	   /* it holds an image, whole or not */
	struct stele_superblock old; /* the image's, if it is whole */
	char lost[STELE_NAME_SIZE_MAX + 1]; /* its snapshots and label, in words; "": none */
	struct stele_copies seen; /* what was asked about */
	bool regular;
	bool rbd;	   /* an RBD image */
	struct stele_rbd_snaps old_snaps; /* by which old snapshots of ours were read */
	bool force;
	bool dry;
	bool touched;	   /* what it held is no more */
	/* See claim_beside.c. */
	const char *backend; /* the caller's */
	bool replace;
	bool of_source;
	const struct stele_snapshot *copy_of;
	const struct stele_device *copy_from;
	bool resumed; /* `dev` holds an image, to which a copy that was cut short belongs */
	bool keep; /* the new file, even if this fails: another claim with that copy_of finds it */
	struct stele_device *replaced; /* the old file; NULL: none */
	struct stele_copies replaced_seen; /* what it held */
	char *beside, *real; /* owned: the new file until it is finished, and its name then */
};

/*
 * Open the target for an image of opts->needed bytes. A file or RBD image that
 * is not there is created, without content. A dry claim warns of what is lost by force;
 * its device takes writes, and keeps them from the target.
 * Return: 0; -EBUSY; -EEXIST; -ENOSPC; -EINVAL; -EOPNOTSUPP; errno of the
 * target (all logged). Drop the claim in any case.
 */
int stele_claim_open(struct stele_claim *claim, const char *path,
		     const struct stele_claim_opts *opts,
		     const struct stele_log *log);
/*
 * Have a file's space allocated. From here on the old content is lost: erase foreign
 * signatures, give a file its size, remove the RBD snapshots of an older image of ours.
 * Until the claim is dropped other writers can tell, see intent.h. Return: 0; -EBUSY,
 * -ESTALE (another writer is there, or was meanwhile); -ENOSPC; errno of the target (all
 * logged).
 */
int stele_claim_take(struct stele_claim *claim);
/*
 * The image is complete and durable: let it take the place of an old file. Return: 0;
 * errno (logged).
 */
int stele_claim_finish(struct stele_claim *claim);
/*
 * Close. When the build failed, a file that was created goes, another one has no
 * more bytes and blocks than it had, and of what was touched the log says what it
 * is now; but what somebody else has taken over stays as it is. Idempotent on a zeroed struct.
 */
void stele_claim_drop(struct stele_claim *claim, bool failed);

/* Asked by open, and again by take. Return: 0; -EBUSY (logged); errno of the mappings. */
int stele_claim_check_mapped(const struct stele_claim *claim);

/* ---- claim_describe.c: what an image holds, in words --------------------------- */

/* What would be lost with it: "snapshots 'v1', 'v2', and 'v0', deleted, that can be undeleted". */
void stele_claim_describe(const struct stele_image *image, char text[STELE_CLAIM_TEXT_SIZE]);
/* Log it. Return: -EEXIST; 0: it is forced, which a dry run says. */
int stele_claim_refuse_image(const struct stele_claim *claim, const struct stele_image *image);
/* Note it, in the room that claim->lost has: the label, and the snapshots, at least one. */
void stele_claim_tell_lost(struct stele_claim *claim, const struct stele_image *image);

/* ---- claim_beside.c: a file that keeps its content until the end ------------- */

bool stele_claim_wants_beside(const struct stele_claim *claim);
/* From here on the claim is of a new file, in the same directory. 0; errno (logged). */
int stele_claim_begin_beside(struct stele_claim *claim);
/* Idempotent on a zeroed struct. */
void stele_claim_release_beside(struct stele_claim *claim);

/* ---- claim_rbd.c: what is special on RBD --------------------------------- */

/* Create the image, unless it is there, and open it. */
int stele_claim_open_rbd(struct stele_claim *claim,
			 const struct stele_claim_opts *opts);
/*
 * Without force none may be there; with it, those that an older image of ours
 * made will go, others stay. Return: 0; -EEXIST (logged); errno.
 */
int stele_claim_check_snaps(struct stele_claim *claim, const char *snapshot);
/* Remove those of ours from its device: all, or none. 0; -EBUSY (mapped, cloned; logged). */
int stele_claim_remove_snaps(const struct stele_claim *claim, struct stele_device *dev);
/* Give back all that was ever written, and have that size. */
int stele_claim_empty_rbd(struct stele_claim *claim, uint64_t size);

#endif
