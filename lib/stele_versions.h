/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_versions.h - more snapshots of an image, and what else changes it; part of stele.h
 *
 * What changes an image that is there. One writer at a time (-EBUSY); readers of
 * any snapshot go on undisturbed. Only new bytes are written, and a change
 * becomes visible with one superblock write: interrupted, the image is as it was.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_VERSIONS_H
#define STELE_VERSIONS_H

#ifdef __cplusplus
extern "C" {
#endif

struct stele_append_report {
	struct stele_build_report build; /* of the new segment; snapshot, digest of the whole */
	char base[STELE_NAME_SIZE_MAX + 1];
	uint64_t added, updated, deleted, unchanged; /* samples */
	uint64_t sample_count; /* of the new snapshot */
	uint64_t written_size; /* bytes written to the target, metadata too */
};

/**
 * stele_append() - a new snapshot: an old one, and what a source has more
 * @target: PATH@NAME, a name that the image does not have yet
 * @opts: of a build; label, uuid, LABELS, NO_LABELS and FORCE must be unset.
 *	file_size may make a file or RBD image larger.
 *
 * Samples whose key is new become a segment. With UPDATE, those whose
 * content differs (by digest) are replaced; with QUICK beside it, a file of the
 * old size that was last changed (mtime and ctime) before the base took all of
 * its source over (a build, or an append with UPDATE that found every sample of
 * its base) is taken for unchanged without being read: that must have been the
 * same source. With DELETE_MISSING, samples that the source does not have are
 * left out. A source that changes nothing makes a snapshot with the base's digest.
 * Classes that the base has no name for are added behind its own. DRY_RUN
 * says what would be done.
 *
 * Return: as stele_build() and stele_image_open(); -EEXIST (the name is taken);
 * -ENOENT (no such base); -EINVAL (no name given).
 */
STELE_API int stele_append(const char *source, const char *target,
			   const struct stele_build_opts *opts,
			   struct stele_append_report *report);

/**
 * stele_compact() - the samples of one snapshot, laid out anew as one segment
 * @target: PATH@NAME, or without name the only snapshot
 * @name: of the new snapshot
 * @opts: of a build; those that choose a source's samples or fields must be unset
 *
 * Same samples, fields and keys, new ids and digest: that of a build of these
 * samples with the same options. The old snapshot stays. The only flag is
 * DRY_RUN. A damaged sample fails it (-EBADMSG, -EUCLEAN; logged with its key).
 * Return: as stele_append().
 */
STELE_API int stele_compact(const char *target, const char *name,
			    const struct stele_build_opts *opts,
			    struct stele_build_report *report);

enum stele_change_flags {
	STELE_CHANGE_FORCE = 1 << 0,   /* do not wait for readers that cannot be seen */
	STELE_CHANGE_APPLY = 1 << 1,   /* gc: do it; without, only say what would be done */
	STELE_CHANGE_DISCARD = 1 << 2, /* gc: tell the device which bytes are free */
};

struct stele_change_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	const char *backend;
	const char *note; /* of a snapshot that is created; NULL: none */
	/*
	 * Of the change, seconds; 0: now. $SOURCE_DATE_EPOCH counts for create and
	 * resize only: grace periods count from the time of a change. That is never
	 * before the image's last one, nor, of delete and rename, before now.
	 */
	int64_t time;
	uint64_t grace;	  /* seconds that unseen readers get; 0: not given */
	uint32_t flags;	  /* enum stele_change_flags */
	uint32_t reserved;
};

struct stele_key_ref {
	const char *data; /* not terminated */
	size_t size;
};

/**
 * stele_snapshot_create() - an old snapshot under a new name, less some samples
 * @target: PATH@NAME of the new one
 * @base: name; NULL: the newest
 * @deleted: keys to leave out, any order, repeats allowed; NULL when none
 *
 * Nothing but the catalog and lists of what is deleted gets written.
 * @out may be NULL.
 * Return: 0; -EEXIST; -ENOENT (base or a key, logged); errors of
 * stele_image_open() and of writing.
 */
STELE_API int stele_snapshot_create(const char *target, const char *base,
				    const struct stele_key_ref *deleted,
				    size_t deleted_count,
				    const struct stele_change_opts *opts,
				    struct stele_snapshot_info *out);
/**
 * stele_snapshot_rename() - digest, time, note and parent stay
 *
 * On RBD the name is also the RBD snapshot's, so this is a delete for those who
 * read by the old name: grace or FORCE as there.
 * Return: 0; -ENOENT; -EEXIST; -EINVAL; -EBUSY.
 */
STELE_API int stele_snapshot_rename(const char *target, const char *name,
				    const struct stele_change_opts *opts);
/**
 * stele_snapshot_delete() - forget a snapshot
 * @target: PATH@NAME
 *
 * Its samples stay where they are until stele_gc(): who reads it on a device or
 * file goes on. An RBD snapshot is what its readers read, and they cannot be
 * seen: with a grace period it is withdrawn (nobody opens it any more) and
 * removed by the first gc after that time; with FORCE it is removed now, and
 * readers get -ESTALE; with neither this is refused.
 * Return: 0; -ENOENT; -EBUSY (mapped on this machine, or grace wanted; logged).
 */
STELE_API int stele_snapshot_delete(const char *target,
				    const struct stele_change_opts *opts);

enum stele_difference_kind {
	STELE_ADDED = 1, /* only in b */
	STELE_REMOVED,	 /* only in a */
	STELE_CHANGED,	 /* in both, with different content */
};

struct stele_difference {
	enum stele_difference_kind kind;
	const char *key; /* not terminated; valid during the callback */
	size_t key_size;
	uint64_t a_id, a_size; /* not set when ADDED */
	uint64_t b_id, b_size; /* not set when REMOVED */
};
/* Nonzero ends the comparison, which returns it. */
typedef int (*stele_difference_fn)(void *user, const struct stele_difference *d);

struct stele_diff_report {
	uint64_t added, removed, changed, same;
};

/**
 * stele_diff() - what two snapshots have different, by key, in byte order
 * @a, @b: targets, of one image or of two
 *
 * Reads sections alone, and nothing of what both share. @report may be NULL.
 * Return: 0; what @fn returned; errors of stele_dataset_open(), and of sections.
 */
STELE_API int stele_diff(const char *a, const char *b, stele_difference_fn fn,
			 void *user, const struct stele_open_opts *opts,
			 struct stele_diff_report *report);

struct stele_gc_item {
	uint64_t segment_id; /* 0: a withdrawn RBD snapshot */
	const char *name;    /* of that, else NULL; valid during the callback */
	uint64_t offset, size, sample_count;
	int64_t unused_since; /* seconds since 1970; of a withdrawn one until when it stays */
	bool due;	      /* nothing stands against freeing it */
};
typedef void (*stele_gc_fn)(void *user, const struct stele_gc_item *item);

struct stele_gc_report {
	uint64_t unused_count, unused_size; /* found */
	uint64_t freed_count, freed_size;   /* of those; without APPLY: would be */
	uint64_t free_size;	/* below the high-water mark, afterwards */
	/*
	 * Of APPLY: nothing was due, but so much of what is free could not be
	 * written yet: what an interrupted gc, or a delete, left to the next commit.
	 */
	uint64_t finished_size;
};

/**
 * stele_gc() - give back the space of what no snapshot uses
 *
 * Without APPLY it only says what and how much. A reader that opened a snapshot
 * before it was deleted may still read what is freed, and cannot be seen: so
 * that is freed what has been unused for opts->grace seconds, or with FORCE
 * all. A reader too late gets -ESTALE, never wrong bytes.
 * Return: 0; -EBUSY (APPLY with neither grace nor FORCE; logged); errors of
 * stele_image_open() and of writing.
 */
STELE_API int stele_gc(const char *target, const struct stele_change_opts *opts,
		       stele_gc_fn fn, void *user,
		       struct stele_gc_report *report);

struct stele_resize_report {
	uint64_t old_size, new_size; /* bytes that the image may use */
};

/**
 * stele_resize() - let an image use all of a target that grew
 * @size: 0: what the target has now; else a file or RBD image is made that large
 * first
 *
 * @report may be NULL.
 * Return: 0; -EINVAL (images never become smaller; a device's size is not ours to
 * set; no multiple of 4096; logged); errors of stele_image_open() and of writing.
 */
STELE_API int stele_resize(const char *target, uint64_t size,
			   const struct stele_change_opts *opts,
			   struct stele_resize_report *report);

/* One of the versions of an image that two writers published at once. */
struct stele_side {
	uint32_t number; /* from 1 */
	int error;	 /* 0; else why it cannot be chosen */
	uint8_t uuid[STELE_UUID_SIZE];
	uint64_t generation;
	int64_t create_time, commit_time;
	uint32_t snapshot_count;
};

struct stele_side_snapshot {
	struct stele_snapshot_info info; /* payload_size is 0 */
	bool common; /* the other sides have it, too */
	int error;   /* of opening it; its samples were not looked at */
};

struct stele_repair_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	/* Of a fork each side, and behind it each of its snapshots; may be NULL. */
	void (*side)(void *user, const struct stele_side *side);
	void (*snapshot)(void *user, const struct stele_side *side,
			 const struct stele_side_snapshot *snapshot);
	void *user;
	const char *backend;
	int64_t time;	 /* of the commit; 0: now, or $SOURCE_DATE_EPOCH */
	uint32_t choose; /* the side that shall stay; 0: none */
	uint32_t flags;	 /* STELE_CHANGE_APPLY: do it; without, only look */
};

struct stele_repair_report {
	uint32_t sides;	       /* of a fork; 0: it is none */
	uint32_t wrong_copies; /* superblock copies that are behind or damaged */
	uint64_t generation;   /* of the image, afterwards */
	bool changed;
};

/**
 * stele_repair() - write superblocks again, and resolve a fork
 *
 * When two writers have published at once, what both have in common can be read, and
 * nothing is written: all else is -ENOTUNIQ. This shows the sides, and makes the
 * chosen one the image, by a commit; what only the others have is lost. Cut short, it may
 * be done again. Where nothing is wrong, nothing is done. @report may be NULL.
 * Return: 0; -ENOTUNIQ (a fork, and none chosen); -ENOENT (no such side); errors of
 * stele_image_open() and of writing.
 */
STELE_API int stele_repair(const char *target,
			   const struct stele_repair_opts *opts,
			   struct stele_repair_report *report);

struct stele_copy_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	/* Nonzero stops the copy (-ECANCELED); it can go on later. */
	int (*progress)(void *user, uint64_t bytes_done, uint64_t bytes_total);
	void *progress_user;
	const char *backend;
	const char *label;   /* of a new image; NULL: the source's */
	const uint8_t *uuid; /* of a new image, 16 bytes; NULL: random */
	uint64_t file_size;  /* of a new file or RBD image; 0: to fit */
	int64_t time;	     /* of the commit; 0: now, or $SOURCE_DATE_EPOCH */
	uint32_t jobs;	     /* threads, at most 32; 0: 4 per core */
	uint32_t object_size; /* of an RBD image that is created; 0: 4 MiB */
	uint32_t flags;	     /* STELE_CHANGE_FORCE: overwrite what DST carries */
	uint32_t reserved;
};

struct stele_copy_report {
	char snapshot[STELE_NAME_SIZE_MAX + 1];
	uint8_t digest[STELE_DIGEST_SIZE];
	uint64_t sample_count;
	uint32_t segment_count, segments_sent; /* others were there */
	uint64_t total_size;   /* bytes of all its segments */
	uint64_t sent_size;    /* of these, written now */
	uint64_t resumed_size; /* found whole, from a copy that was interrupted */
	double seconds;
};

/**
 * stele_copy() - carry a snapshot to another target
 * @source: any target with a snapshot
 * @target: PATH[@NAME]; without name, the source's
 *
 * A target that holds nothing gets a new image; one that holds an image gets
 * the snapshot beside its own, and only the segments that it lacks. Every sample is
 * checked against its digest on the way. Same digest in the end. Interrupted,
 * the next one goes on where it was. A snapshot that is there already, with the
 * same digest, is a success.
 * Return: as stele_build() and stele_dataset_open(); -EEXIST (the name is
 * another snapshot's, or there is another segment of the same id; logged).
 */
STELE_API int stele_copy(const char *source, const char *target,
			 const struct stele_copy_opts *opts,
			 struct stele_copy_report *report);

#ifdef __cplusplus
}
#endif

#endif
