/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_txn.h - transactions: the only way to change an image; part of stele.h
 *
 * Open one on an image, change what you like, commit. The change becomes visible as
 * a whole, with one superblock write; without a commit the image is as it was. One
 * transaction at a time on an image, by one thread at a time (-EBUSY for a second one);
 * readers of any snapshot go on undisturbed. The calls of stele_versions.h are each a
 * transaction with one change.
 *
 *	err = stele_txn_open("/dev/vdb", NULL, &txn);
 *	if (!err)
 *		err = stele_txn_add(txn, "photos/", NULL, NULL);
 *	if (!err)
 *		err = stele_txn_snapshot(txn, "v2", NULL, NULL);
 *	if (!err)
 *		err = stele_txn_drop(txn, "v1");
 *	if (!err)
 *		err = stele_txn_commit(txn);
 *	stele_txn_close(txn);
 *
 * A call that fails has changed nothing of the transaction, unless it says otherwise:
 * what came before it may still be committed.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_TXN_H
#define STELE_TXN_H

#ifdef __cplusplus
extern "C" {
#endif

struct stele_txn;

/**
 * stele_txn_open() - begin to change the image on a target
 * @target: PATH[@NAME]; NAME is ignored
 *
 * What an interrupted writer left is put right. A dry run refuses what a real one
 * would refuse, with the same errors, but reads no samples; what it is told is there for
 * the calls that follow, and goes with it. It hinders nobody; digests are zero.
 * Return: 0; -EBUSY (in use, or another writer; logged); -EACCES, -EROFS, -EPERM;
 * errors of stele_image_open().
 */
STELE_API int stele_txn_open(const char *target,
			     const struct stele_txn_opts *opts,
			     struct stele_txn **out);

/* ---- a new snapshot ---------------------------------------------------- */

/**
 * stele_txn_base() - the snapshot that the next one starts from
 * @name: of the image, or made in this transaction; NULL: the newest
 *
 * What was added or deleted since the last stele_txn_snapshot() is given up. Without it
 * the next snapshot starts from the newest. Return: 0; -ENOENT.
 */
STELE_API int stele_txn_base(struct stele_txn *txn, const char *name);
struct stele_add_opts {
	size_t size;
	stele_log_fn log; /* NULL: the transaction's; these as in stele_build_opts ... */
	void *log_user;
	stele_build_progress_fn progress;
	void *progress_user;
	uint64_t memory_size;
	uint32_t flags; /* as of stele_append(), but DRY_RUN and ALWAYS */
	uint32_t granule;
	uint32_t order;
	uint32_t jobs;
	uint32_t boundary;
	uint32_t label_from;
	stele_build_skip_fn skip;
	void *skip_user; /* ... up to here */
};

/**
 * stele_txn_add() - what a source has more; see stele_append()
 *
 * Writes the new segment where nothing leads to. @report may be NULL.
 */
STELE_API int stele_txn_add(struct stele_txn *txn, const char *source,
			    const struct stele_add_opts *opts,
			    struct stele_build_report *report);
/**
 * stele_txn_delete() - leave samples out, by key: any order, repeats allowed
 * Return: 0; -ENOENT (a key is not there; logged).
 */
STELE_API int stele_txn_delete(struct stele_txn *txn,
			       const struct stele_key_ref *keys, size_t count);
/**
 * stele_txn_snapshot() - give what was put together a name
 * @note: NULL: none
 * @out: may be NULL
 *
 * Return: 0; -EEXIST, -EINVAL (the name; logged); -EOVERFLOW; -ENOSPC.
 */
STELE_API int stele_txn_snapshot(struct stele_txn *txn, const char *name,
				 const char *note,
				 struct stele_snapshot_info *out);

/* ---- snapshots that are there ------------------------------------------ */

/* See stele_snapshot_rename(), stele_snapshot_delete(). */
STELE_API int stele_txn_rename(struct stele_txn *txn, const char *name,
			       const char *to);
STELE_API int stele_txn_drop(struct stele_txn *txn, const char *name);

/* ---- space ------------------------------------------------------------- */

/**
 * stele_txn_free() - give back what no snapshot uses; see stele_gc()
 *
 * Of the image, and of this transaction: drop first, then free. Frees what has been unused
 * for the grace period, or with FORCE all. @fn and @report may be NULL.
 */
STELE_API int stele_txn_free(struct stele_txn *txn, stele_gc_fn fn, void *user,
			     struct stele_gc_report *report);
/* See stele_resize(). @report may be NULL. */
STELE_API int stele_txn_resize(struct stele_txn *txn, uint64_t size,
			       struct stele_resize_report *report);

/* ---- the end ----------------------------------------------------------- */

/**
 * stele_txn_commit() - publish all changes at once
 *
 * Durable when it returns 0. Where nothing changed,
 * nothing is written. After success the transaction goes on from the new state. After
 * an error while publishing the image is as it was, or as it should have become, and the
 * transaction can only be closed (-EINVAL from all else).
 * Return: 0; -EEXIST (the image would lose its last snapshot, and FORCE was not given;
 * logged); -ENOSPC; -EOVERFLOW; -ESTALE (another machine wrote meanwhile); errno of the
 * target.
 */
STELE_API int stele_txn_commit(struct stele_txn *txn);
/* What was not committed never happened. NULL is fine. */
STELE_API void stele_txn_close(struct stele_txn *txn);

#ifdef __cplusplus
}
#endif

#endif
