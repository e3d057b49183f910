/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_txn.h - transactions: the only way to change an image; part of stele.h
 *
 * Open one on an image, or on a new one; change what you like, commit. The change becomes
 * visible as a whole, with one superblock write; without a commit the image is as it was. One
 * transaction at a time on an image, by one thread at a time (-EBUSY for a second one);
 * readers of any snapshot go on undisturbed. The calls of stele_write.h are each a
 * transaction with one change. In a child after fork() every call returns -EOWNERDEAD, and
 * stele_txn_close() only frees memory: the transaction is its parent's.
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

struct stele_create_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	stele_progress_fn progress;
	void *progress_user;
	const char *backend;
	const char *label;   /* of the image; NULL: "" */
	const uint8_t *uuid; /* 16 bytes; NULL: random. Given, the same puts are the same bytes */
	/* Of a file or RBD image, a multiple of 4096, which the first commit keeps to; 0: to fit */
	uint64_t file_size;
	int64_t time;	     /* of the image and its snapshots; 0: now, or $SOURCE_DATE_EPOCH */
	uint32_t flags;	     /* STELE_FORCE: whatever the target holds is lost; STELE_DRY_RUN */
	uint32_t object_size; /* of an RBD image that is created; 0: 4 MiB */
	/* Paths, up to NULL, of what is read: see stele_txn_create(). NULL: of nothing. */
	const char *const *sources;
};

/**
 * stele_txn_create() - begin a new image, which holds nothing yet
 * @target: PATH[@NAME]; NAME is ignored
 *
 * Refuses what stele_build() refuses, and, whatever the flags, a target that is one of the
 * sources, or shares bytes with one, as a loop device does with its file (-EINVAL; logged):
 * what is put would be read from what is overwritten. A regular file that is overwritten
 * keeps what it holds until the first commit, and if closed before that. Any other target
 * keeps it until the first call that writes there: one that flushes what was put, adds,
 * imports, resizes or commits, and has found nothing against it, such as a key that comes
 * twice, or too little room. From then on it is an unfinished image, and an older one on it is
 * lost; with the first commit it is whole. Closed before that, a file or RBD image that was not
 * there is removed. A dry run refuses what a real one would refuse, warns of what FORCE would
 * overwrite, and touches nothing; see stele_txn_open(). Return: as stele_build().
 */
STELE_API int stele_txn_create(const char *target,
			       const struct stele_create_opts *opts,
			       struct stele_txn **out);

/* ---- a new snapshot ---------------------------------------------------- */

/**
 * stele_txn_base() - the snapshot that the next one starts from
 * @name: of the image, or made in this transaction; NULL: the newest
 *
 * What was added, put or deleted since the last stele_txn_snapshot() is given up. Without
 * it the next snapshot starts from the newest, and the first one of an image from nothing.
 * Return: 0; -ENOENT.
 */
STELE_API int stele_txn_base(struct stele_txn *txn, const char *name);
struct stele_add_opts {
	size_t size;
	/* Without log or progress, the transaction's; these as in stele_build_opts ... */
	stele_log_fn log;
	void *log_user;
	stele_progress_fn progress;
	void *progress_user;
	uint64_t memory_size;
	uint32_t flags; /* as of stele_append(), except DRY_RUN and ALWAYS */
	uint32_t granule;
	uint32_t order;
	uint32_t jobs;
	uint32_t boundary;
	uint32_t label_from;
	stele_build_skip_fn skip;
	void *skip_user;
	const char *const *exclude; /* ... up to here */
};

/**
 * stele_txn_add() - what a source has more; see stele_append()
 *
 * Writes the new segment where nothing leads to. @report may be NULL.
 */
STELE_API int stele_txn_add(struct stele_txn *txn, const char *source,
			    const struct stele_add_opts *opts,
			    struct stele_build_report *report);

enum stele_put_flags {
	STELE_PUT_REPLACE = 1 << 0, /* a key that the base has gets the new sample */
	STELE_PUT_KEEP = 1 << 2, /* without REPLACE: it keeps the one that it has */
	STELE_PUT_DELETE_MISSING = 1 << 3, /* drop samples of the base that were not put, ... */
	/* STELE_FORCE: ... also if these are more than half of them */
};

struct stele_put_opts {
	size_t size;
	const char *directory; /* of the temporary file; NULL: $TMPDIR, else /var/tmp */
	uint64_t memory_size;  /* of samples, and to write them; 0: 256 MiB */
	uint32_t flags;	       /* enum stele_put_flags, STELE_FORCE */
	/* As of struct stele_build_opts. */
	uint32_t granule;
	uint32_t order;
	uint32_t jobs;
	uint32_t boundary;
	uint32_t reserved;
};

/**
 * stele_txn_schema() - the fields of samples that are put: once, before the first
 * @schema: copied; of a base with samples the same fields, and any class names
 *
 * Holds for all snapshots of the transaction. Return: 0; -EINVAL (a field; or samples were
 * put since the last snapshot); -EOPNOTSUPP (the base has other fields); errno of
 * access(2) to the directory of @opts; all logged.
 */
STELE_API int stele_txn_schema(struct stele_txn *txn,
			       const struct stele_schema *schema,
			       const struct stele_put_opts *opts);

/** A field of a sample that is put. What its type does not ask for is zero. */
struct stele_txn_value {
	const void *data; /* bytes, utf8, tensor */
	uint64_t size;
	int64_t i64; /* of a field with class names: one of them, or -1: none */
	double f64;
};

/**
 * stele_txn_put() - one sample for the next snapshot
 * @key: any bytes but NUL
 * @values: one for each field of the schema, in its order
 *
 * All of it is copied: into memory, as long as samples fit into half of memory_size, then
 * into a temporary file; the log says which (INFO), once they are written. The target is
 * written by the next of stele_txn_flush(), stele_txn_snapshot(), stele_txn_add(),
 * stele_txn_delete() and stele_txn_delete_ids(), which also sees that no key was put twice, or
 * is in the base without REPLACE or KEEP (-EEXIST), and that DELETE_MISSING drops not too many
 * (-EPERM; both logged):
 * all puts then wait on, until they are given up by stele_txn_base() or the end. Missing is
 * what was not put since the last of these calls; where nothing was, nothing is dropped.
 *
 * Return: 0; -EINVAL (no schema; a value that does not fit its field), -ENAMETOOLONG (the
 * key), -EFBIG; -ENOSPC and errno of the temporary file; all logged. Then nothing was put,
 * and others may follow.
 */
STELE_API int stele_txn_put(struct stele_txn *txn, const char *key,
			    size_t key_size,
			    const struct stele_txn_value *values,
			    uint32_t count);

/**
 * stele_txn_flush() - write what was put, and say what has changed
 * @report: may be NULL; `created`: the next snapshot would not be the same as `base`, by all
 * that was added, put and deleted; the other members are of what this call wrote. The snapshot,
 * its digest, image_end, target_size and total_seconds are not known yet, and 0.
 *
 * Return: as stele_txn_snapshot() of what was put.
 */
STELE_API int stele_txn_flush(struct stele_txn *txn, struct stele_build_report *report);

/**
 * stele_txn_delete() - leave samples out, by key: any order, repeats allowed
 * Return: 0; -ENOENT (a key is not there; logged).
 */
STELE_API int stele_txn_delete(struct stele_txn *txn,
			       const struct stele_key_ref *keys, size_t count);
/**
 * stele_txn_delete_ids() - leave samples out, by id: any order, each once
 * @ids: of the snapshot that the next one starts from, in which they stay what they are,
 * whatever was added, put or deleted since; 16 bytes of memory for each
 *
 * Reads sections alone. Return: 0; -ERANGE (there is no such id); -EINVAL (one is given
 * twice); -ENOENT (its sample was deleted, or replaced by one that was put); all logged.
 */
STELE_API int stele_txn_delete_ids(struct stele_txn *txn, const uint64_t *ids,
				   size_t count);
/**
 * stele_txn_snapshot() - give what was put together a name
 * @note: NULL: none
 * @out: may be NULL
 *
 * Return: 0; -EEXIST, -EINVAL (the name; logged); -EEXIST (a key that was put; logged);
 * -ENOENT (of a first one: nothing was added, and there is no schema); -EOVERFLOW; -ENOSPC;
 * -ECANCELED. What was put together then waits on, for another call or stele_txn_base();
 * after -ENOMEM and -EUCLEAN for the latter alone: others return -EINVAL.
 */
STELE_API int stele_txn_snapshot(struct stele_txn *txn, const char *name,
				 const char *note,
				 struct stele_snapshot_info *out);

/**
 * stele_txn_import() - a snapshot of another image, with its digest
 * @source: any target with a snapshot
 * @name: of the snapshot here; NULL: as there
 * @report: may be NULL
 *
 * Segments that this image has already are shared, others are copied, each sample checked
 * against its digest. See stele_copy(), which commits on the way and can resume: this does
 * neither. It is the newest one then; what was added, put or deleted before, for the next
 * snapshot, waits on.
 *
 * Return: 0, also if that very snapshot is there; -EEXIST (another one of that name, or
 * another segment of the same id; logged); -EBADMSG, -EUCLEAN (the source is damaged;
 * logged); -ENOSPC; -ECANCELED; errors of stele_dataset_open(). Then nothing was imported.
 */
STELE_API int stele_txn_import(struct stele_txn *txn, const char *source,
			       const char *name, struct stele_copy_report *report);

/* ---- snapshots that are there ------------------------------------------ */

/*
 * See stele_snapshot_rename(), stele_snapshot_delete(), stele_snapshot_undelete(). What was
 * made and dropped before a commit is gone: it was never published, nor can it come back.
 */
STELE_API int stele_txn_rename(struct stele_txn *txn, const char *name,
			       const char *to);
STELE_API int stele_txn_drop(struct stele_txn *txn, const char *name);
STELE_API int stele_txn_undelete(struct stele_txn *txn, const char *name, const char *as);

/* ---- space ------------------------------------------------------------- */

/**
 * stele_txn_free() - give back what no snapshot uses; see stele_gc()
 *
 * Of the image, and of this transaction: drop first, then free. What waits for the next
 * snapshot is not unused. Frees what has been unused
 * for the grace period, or with FORCE all. @fn and @report may be NULL.
 */
STELE_API int stele_txn_free(struct stele_txn *txn, stele_gc_fn fn, void *user,
			     struct stele_gc_report *report);
/* See stele_posix(): what is wrong with the image for that, the commit says. */
STELE_API int stele_txn_posix(struct stele_txn *txn, bool on);
/* See stele_resize(). @report may be NULL. */
STELE_API int stele_txn_resize(struct stele_txn *txn, uint64_t size,
			       struct stele_resize_report *report);

/* ---- the end ----------------------------------------------------------- */

struct stele_txn_preview {
	size_t size;
	uint32_t snapshots_added; /* undeleted ones, too */
	uint32_t snapshots_dropped, snapshots_renamed;
	uint32_t segments_added, segments_freed;
	uint64_t added_size; /* bytes of the segments that are added */
	uint64_t freed_size; /* and of those that are freed, to be reused */
	uint64_t unused_size; /* of those that no snapshot uses afterwards, and that stay */
	uint64_t metadata_size; /* bytes that the commit itself writes */
	uint64_t old_image_size, image_size; /* bytes that the image may use */
};

/**
 * stele_txn_preview() - what a commit would do now, and whether it would be refused
 * @report: its size must be set; may be NULL
 *
 * The commit itself, on a copy that is thrown away: the errors are the same, but for
 * those of writing. Nothing changes; the transaction may go on, or be committed.
 * Return: as stele_txn_commit().
 */
STELE_API int stele_txn_preview(struct stele_txn *txn,
				struct stele_txn_preview *report);
/**
 * stele_txn_commit() - publish all changes at once
 *
 * Durable when it returns 0. Where nothing changed, nothing is written. What is in no
 * snapshot yet waits for the next one. After success the transaction goes on from the new
 * state. After an error while publishing the image is as it was, or as it should have
 * become, and the transaction can only be closed (-EINVAL from all else).
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
