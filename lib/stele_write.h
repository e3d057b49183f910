/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_write.h - further snapshots of an image, and other changes; part of stele.h
 *
 * Changes to an existing image. One writer at a time (-EBUSY); readers of
 * any snapshot are not disturbed. Only new bytes are written, and a change
 * becomes visible with one superblock write: if interrupted, the image is as before.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_WRITE_H
#define STELE_WRITE_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * And STELE_DRY_RUN, all of enum stele_build_flags, and STELE_FORCE: DELETE_MISSING of most
 * samples.
 */
enum stele_append_flags {
	STELE_APPEND_UPDATE = 1 << 5,	      /* also replace samples whose contents changed */
	STELE_APPEND_QUICK = 1 << 6,	      /* with UPDATE: see stele_append() */
	STELE_APPEND_DELETE_MISSING = 1 << 7, /* drop samples that the source lacks */
	STELE_APPEND_ALWAYS = 1 << 8,	      /* make a snapshot even if nothing changed */
};

struct stele_append_opts {
	size_t size;
	stele_log_fn log; /* these as in stele_build_opts ... */
	void *log_user;
	stele_progress_fn progress;
	void *progress_user;
	uint64_t memory_size;
	uint32_t flags; /* enum stele_append_flags */
	uint32_t granule;
	uint32_t order;
	uint32_t jobs;
	uint32_t boundary;
	uint32_t label_from;
	stele_build_skip_fn skip;
	void *skip_user;
	const char *const *exclude; /* ... up to here */
	const char *backend;
	const char *note;   /* of the snapshot; NULL: none */
	const char *base;   /* a snapshot's name; NULL: the newest */
	int64_t time;	    /* seconds; 0: now, or $SOURCE_DATE_EPOCH */
	uint64_t file_size; /* a file or RBD image first grows to it; 0: it does not */
};

/**
 * stele_append() - a new snapshot: an old one plus what is new in a source
 * @target: PATH@NAME, a name that the image does not have yet
 *
 * Samples whose key is new become a segment. With UPDATE, those whose
 * contents differ (by digest) are replaced. With QUICK in addition, a file of
 * unchanged size is considered unchanged, without being read, if its last change
 * (mtime and ctime) precedes the last time that the base took over its whole source:
 * a build, or an append with UPDATE that found every sample of its base; and so do the
 * ctime of each directory that it lies in, or of that one's parent, and of each link on
 * the way. This must have been the same source. With DELETE_MISSING, samples that the
 * source lacks are dropped; more than half of them only with FORCE. If nothing changes,
 * no snapshot is made unless ALWAYS is set; it would have the base's digest, which is
 * reported.
 * Classes without a name in the base are added after the existing ones. DRY_RUN
 * reports what would be done.
 *
 * Return: as stele_build() and stele_image_open(); -EEXIST (the name is taken);
 * -ENOENT (no such base); without FORCE -EPERM (DELETE_MISSING of more than half of the samples;
 * a label_from by which samples that the base has would get other labels); -EOPNOTSUPP (they
 * would by default); -EINVAL (no name given).
 */
STELE_API int stele_append(const char *source, const char *target,
			   const struct stele_append_opts *opts,
			   struct stele_build_report *report);

struct stele_compact_opts {
	size_t size;
	stele_log_fn log; /* these as in stele_build_opts ... */
	void *log_user;
	stele_progress_fn progress;
	void *progress_user;
	uint64_t memory_size;
	uint32_t flags; /* STELE_DRY_RUN */
	uint32_t granule;
	uint32_t order;
	uint32_t jobs;
	uint32_t boundary; /* ... up to here */
	uint32_t reserved;
	const char *backend;
	const char *note; /* of the new snapshot; NULL: none */
	int64_t time;	  /* seconds; 0: now, or $SOURCE_DATE_EPOCH */
};

/**
 * stele_compact() - rewrite the samples of a snapshot as one segment
 * @target: PATH@NAME; without a name, the only snapshot
 * @name: of the new snapshot
 *
 * Same samples, fields and keys, new ids and digest: that of a build of these
 * samples with the same options. The old snapshot stays. A damaged sample makes it fail
 * (-EBADMSG, -EUCLEAN; logged with its key).
 * Return: as for stele_append().
 */
STELE_API int stele_compact(const char *target, const char *name,
			    const struct stele_compact_opts *opts,
			    struct stele_build_report *report);

/*
 * And STELE_DRY_RUN; STELE_FORCE, except to create and resize: do not wait for readers that
 * cannot be seen, unless grace is given; delete all.
 */
enum stele_txn_flags {
	STELE_TXN_DISCARD = 1 << 2, /* gc: discard free space on the device */
};

/** Of a transaction, see stele_txn.h, and of all changes that are one. */
struct stele_txn_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	stele_progress_fn progress;
	void *progress_user;
	const char *backend;
	/*
	 * Of the commit and its snapshots, seconds; 0: now. $SOURCE_DATE_EPOCH applies to
	 * create and resize only, because grace periods start at the time of a change. It is
	 * never before the image's last change nor, for delete and rename, before now.
	 */
	int64_t time;
	uint64_t grace;	  /* seconds granted to unseen readers; 0: not given */
	uint32_t flags;	  /* enum stele_txn_flags */
	uint32_t reserved;
	/* Paths, up to NULL, of what is read: see stele_txn_create(). NULL: of nothing. */
	const char *const *sources;
};

struct stele_key_ref {
	const char *data; /* not terminated */
	size_t size;
};

/** Samples that are left out. */
struct stele_deletions {
	size_t size;
	const struct stele_key_ref *keys; /* any order, repeats allowed */
	size_t key_count;
	const uint64_t *ids; /* in the base: any order, each once; also of the keys */
	size_t id_count;
	/* 32 bytes: of the base to which the ids belong, in case its name has passed on; or NULL */
	const uint8_t *base_digest;
};

/**
 * stele_snapshot_create() - an existing snapshot minus some samples, under a new name
 * @target: PATH@NAME of the new one
 * @base: name; NULL: the newest
 * @deleted: NULL: none
 * @note: NULL: none
 *
 * Only the catalog and lists of deleted samples are written.
 * @out may be NULL.
 * Return: 0; -EEXIST; -ENOENT (base or a key, logged); -ERANGE, -EINVAL (an id, as of
 * stele_txn_delete_ids()); -ESTALE (the base has another digest; logged); errors of
 * stele_image_open() and of writing.
 */
STELE_API int stele_snapshot_create(const char *target, const char *base,
				    const struct stele_deletions *deleted, const char *note,
				    const struct stele_txn_opts *opts,
				    struct stele_snapshot_info *out);
/**
 * stele_snapshot_rename() - digest, time, note and parent stay
 *
 * On RBD the RBD snapshot is renamed, too, so for readers by the old name this is a
 * delete: grace or FORCE as there.
 * Return: 0; -ENOENT; -EEXIST; -EINVAL; -EBUSY.
 */
STELE_API int stele_snapshot_rename(const char *target, const char *name,
				    const struct stele_txn_opts *opts);
/**
 * stele_snapshot_delete() - remove snapshots, all or none
 * @targets: PATH@NAME, each of the same PATH; @count: at least 1
 *
 * Its samples stay in place until stele_gc(): readers on a device or
 * file can go on, and stele_snapshot_undelete() brings it back. On RBD, readers use the
 * RBD snapshot, and cannot be seen: with a grace period it is tombstoned (nobody opens it
 * any more) and removed by the first gc after that time; with FORCE alone it is removed
 * now, and readers get -ESTALE; with neither the delete is refused. To delete the last
 * snapshot of an image always takes FORCE.
 * Return: 0; -ENOENT; -EBUSY (mapped on this machine, or grace required; logged);
 * -EEXIST (none would be left; logged); -EINVAL (of several images; logged).
 */
STELE_API int stele_snapshot_delete(const char *const *targets, size_t count,
				    const struct stele_txn_opts *opts);

/**
 * stele_snapshot_undelete() - bring a deleted snapshot back, until gc has freed it
 * @target: PATH@NAME, by the name that it had; of several, the one that was deleted last
 * @name: its name from now on; NULL: NAME
 *
 * All about it is as it was. On RBD it gets a new RBD snapshot; a tombstoned one goes when
 * its time comes.
 * Return: 0; -ENOENT (none, or freed; logged); -EEXIST (another one has the name; logged);
 * -EINVAL.
 */
STELE_API int stele_snapshot_undelete(const char *target, const char *name,
				      const struct stele_txn_opts *opts);

enum stele_diff_kind {
	STELE_DIFF_ADDED = 1, /* only in b */
	STELE_DIFF_REMOVED,	 /* only in a */
	STELE_DIFF_CHANGED,	 /* in both, with different contents */
};

struct stele_diff_entry {
	size_t size;
	enum stele_diff_kind kind;
	const char *key; /* not terminated; valid during the callback */
	size_t key_size;
	uint64_t a_id, a_size; /* not set when ADDED */
	uint64_t b_id, b_size; /* not set when REMOVED */
};
/* Nonzero ends the comparison; it is then the return value. */
typedef int (*stele_diff_fn)(void *user, const struct stele_diff_entry *d);

struct stele_diff_report {
	size_t size;
	uint64_t added, removed, changed, same;
	uint64_t fields; /* that differ: in name, type, or class names */
};

/**
 * stele_diff() - how two snapshots differ, by key, in byte order
 * @a, @b: targets, of one image or of two
 *
 * Reads only sections, and nothing of what both share. @report may be NULL. Labels are
 * compared by number: fields that differ, so that a number may mean another class, are
 * counted and logged.
 * Return: 0; what @fn returned; errors of stele_dataset_open(), and of sections.
 */
STELE_API int stele_diff(const char *a, const char *b, stele_diff_fn fn,
			 void *user, const struct stele_open_opts *opts,
			 struct stele_diff_report *report);

struct stele_gc_item {
	size_t size;
	uint64_t segment_id; /* 0: a snapshot */
	const char *name;    /* of that, else NULL; valid during the callback */
	uint64_t offset, segment_size, sample_count;
	int64_t unused_since; /* seconds since 1970; for a tombstoned one, when it expires */
	bool due;	      /* can be freed */
	bool deleted;	      /* a snapshot that was deleted, and not a tombstoned RBD snapshot */
	bool tree; /* a part of a tree of files, see stele_posix(), by segment_id */
};
typedef void (*stele_gc_fn)(void *user, const struct stele_gc_item *item);

struct stele_gc_report {
	size_t size;
	uint64_t unused_count, unused_size; /* found */
	uint64_t freed_count, freed_size;   /* of those; of a dry run: would be */
	uint64_t free_size;	/* below the high-water mark, afterwards */
	/*
	 * Nothing was due, but this much free space was not reusable
	 * yet: an interrupted gc, or a delete, had left it to the next commit.
	 */
	uint64_t finished_size;
};

/**
 * stele_gc() - free the space of what no snapshot uses
 *
 * Deleted snapshots that are due are gone for good: they cannot be undeleted any more.
 * A reader that opened a snapshot
 * before it was deleted may still be reading it, and cannot be seen: so
 * only what has been unused for opts->grace seconds is freed, or everything with
 * FORCE. A reader that is too late gets -ESTALE, never wrong bytes. What was freed stays
 * free if the discarding of it is cancelled; the next gc with DISCARD does all of it.
 * Return: 0; -EBUSY (neither grace nor FORCE, or this machine has the image mounted as
 * EROFS, for DRY_RUN too if one of them is given; logged); -EINVAL (@target names a snapshot;
 * logged); -ECANCELED; errors of
 * stele_image_open() and of writing.
 */
STELE_API int stele_gc(const char *target, const struct stele_txn_opts *opts,
		       stele_gc_fn fn, void *user,
		       struct stele_gc_report *report);

struct stele_resize_report {
	size_t size;
	uint64_t old_size, new_size; /* bytes that the image may use */
};

/**
 * stele_resize() - extend an image to the size of its target
 * @size: 0: the current size of the target; else a file or RBD image is first grown
 * to it
 *
 * @report may be NULL.
 * Return: 0; -EINVAL (@target names a snapshot; images cannot shrink; a device's size cannot be
 * set; not a multiple of 4096, or over 2^62; logged); errors of stele_image_open() and of writing.
 */
STELE_API int stele_resize(const char *target, uint64_t size,
			   const struct stele_txn_opts *opts,
			   struct stele_resize_report *report);

/**
 * stele_posix() - whether the image can be mounted: as a read-only EROFS over the same bytes
 *
 * Then the Linux kernel mounts the target itself ("mount -t erofs -o ro"): a directory for
 * each snapshot, in it each sample as a file at its key. Later changes keep it current; what
 * is mounted already stays as it is. All segments need a granule of 512 or 4096 bytes; what
 * is added gets one. See stele-format(5).
 * Return: 0; -EINVAL (@target names a snapshot; logged); -EOPNOTSUPP (a granule below 512;
 * logged); -ENOSPC; errors of stele_image_open() and of writing.
 */
STELE_API int stele_posix(const char *target, bool on,
			  const struct stele_txn_opts *opts);

/*
 * One of the versions of an image: in a fork, or where the newest generation is damaged.
 */
struct stele_fork_branch {
	size_t size;
	uint32_t number; /* from 1 */
	int error;	 /* 0, or why it cannot be chosen */
	uint8_t uuid[STELE_UUID_SIZE];
	uint64_t generation;
	int64_t create_time, commit_time;
	uint32_t snapshot_count;
};

struct stele_fork_snapshot {
	size_t size;
	const struct stele_snapshot_info *info; /* payload_size is 0 */
	bool common; /* the other branches that can be chosen have it, too; there are some */
	int error;   /* of opening it; its samples were not checked */
};

struct stele_repair_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	/* Called for each branch, if there are any, then each of its snapshots; may be NULL. */
	void (*branch)(void *user, const struct stele_fork_branch *branch);
	void (*snapshot)(void *user, const struct stele_fork_branch *branch,
			 const struct stele_fork_snapshot *snapshot);
	void *user;
	const char *backend;
	int64_t time;	 /* of the commit; 0: now, or $SOURCE_DATE_EPOCH */
	uint32_t choose; /* branch to keep; 0: none */
	uint32_t flags;	 /* STELE_DRY_RUN: only report */
};

struct stele_repair_report {
	size_t size;
	uint32_t branches;	       /* 0: there is nothing to choose */
	uint32_t wrong_copies; /* superblock copies that are outdated or damaged */
	uint64_t generation;   /* of the image, afterwards */
	bool changed;
	uint32_t wrong_catalogs; /* that are damaged, or a mirror or witness that is missing */
	bool needs_choice; /* not clear from what is left which branch is the image */
	bool wrong_front;  /* block 0 does not show the tree of files, or one that is gone */
};

/**
 * stele_repair() - rewrite superblocks and catalogs, and resolve a fork
 *
 * After two writers published at once, only what both branches share can be read, and
 * nothing written: everything else is -ENOTUNIQ. Where the catalog of the newest generation
 * is damaged, or both its superblocks are, it and the one before, which is read instead, are
 * the branches, and nothing is written either. This shows the branches, and makes the
 * chosen one the image, by a commit; what only the others have is lost. A single one needs
 * no choice. If interrupted, run it again. If nothing is wrong, it does nothing. @report may
 * be NULL.
 * Return: 0; -ENOTUNIQ (branches, and none chosen; @report is filled in); -ENOENT (no such
 * branch, or nothing to choose; logged); the branch's error; errors of stele_image_open() and
 * of writing.
 */
STELE_API int stele_repair(const char *target,
			   const struct stele_repair_opts *opts,
			   struct stele_repair_report *report);

struct stele_copy_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	stele_progress_fn progress; /* a copy that is cancelled can be resumed later */
	void *progress_user;
	const char *backend;
	const char *label;   /* of a new image; NULL: the source's */
	const uint8_t *uuid; /* of a new image, 16 bytes; NULL: random */
	uint64_t file_size;  /* of a new file or RBD image; 0: to fit */
	int64_t time;	     /* of the commit; 0: now, or $SOURCE_DATE_EPOCH */
	uint32_t jobs;	     /* threads; more than 32 are 32; 0: 4 per core */
	uint32_t object_size; /* of an RBD image that is created; 0: 4 MiB */
	/* STELE_FORCE: overwrite contents of the target; STELE_DRY_RUN */
	uint32_t flags;
	uint32_t reserved;
};

struct stele_copy_report {
	size_t size;
	char snapshot[STELE_NAME_SIZE_MAX + 1];
	uint8_t digest[STELE_DIGEST_SIZE];
	uint64_t sample_count;
	uint32_t segment_count, segments_sent; /* others were already there */
	uint64_t total_size;   /* bytes of all its segments */
	uint64_t sent_size;    /* of these, written now */
	uint64_t resumed_size; /* found intact, from an interrupted copy */
	double seconds;
	/* Of segments that snapshots there have: were used as they are, and not read. */
	uint64_t unread_count, unread_size;
	uint32_t created; /* 1: the snapshot was not there before */
	uint32_t reserved;
};

/**
 * stele_copy() - copy a snapshot to another target
 * @source: any target with a snapshot
 * @target: PATH[@NAME]; without a name, the source's
 *
 * An empty target gets a new image; in an existing image the snapshot is added to
 * those there, and only segments that it lacks are copied. Every sample is
 * checked against its digest on the way; the digest stays the same. After an
 * interruption, the next copy resumes, unless the one that began a new image was interrupted
 * before anything was copied: what is there then needs FORCE. FORCE replaces a regular file
 * only once the new image is durable, and leaves it alone if the copy fails. If the snapshot
 * is already there, with the same digest, the copy succeeds. DRY_RUN checks all but the
 * samples, and reports what would be sent if nothing was left by an interrupted copy. Of
 * segments that snapshots of the target have, only descriptors and ends of sections are read:
 * that they are sound is for stele_verify() to say. An image that is there keeps its label,
 * UUID and size: others are -EINVAL.
 * Return: as for stele_build() and stele_dataset_open(); -EEXIST (another snapshot
 * has that name, or another segment that id; logged).
 */
STELE_API int stele_copy(const char *source, const char *target,
			 const struct stele_copy_opts *opts,
			 struct stele_copy_report *report);

#ifdef __cplusplus
}
#endif

#endif
