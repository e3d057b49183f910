/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_image.h - images as a whole: listed, built, verified; part of stele.h
 *
 * A *build* makes an image from a directory and publishes its first snapshot; a target that
 * carries anything is left alone unless forced. For further snapshots see stele_write.h.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_IMAGE_H
#define STELE_IMAGE_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- images ------------------------------------------------------------ */

struct stele_image_info {
	size_t size;
	uint8_t uuid[STELE_UUID_SIZE];
	char label[STELE_NAME_SIZE_MAX + 1];
	uint32_t version;
	uint32_t snapshot_count;
	uint32_t segment_count;
	uint32_t fence_mode;
	uint64_t feature_compat, feature_ro_compat, feature_incompat;
	uint64_t generation;
	uint64_t image_size, used_size;
	uint64_t free_size; /* of used_size, reusable */
	int64_t create_time, commit_time;
	uint32_t superblocks_good; /* of 4 copies */
	uint32_t deleted_count;	   /* snapshots that can be undeleted; see stele_image_snapshot() */
	uint64_t unused_size;	   /* of used_size, what no snapshot uses: gc frees it */
	uint64_t tree_size;	   /* of the tree of files; 0: none, see stele_posix() */
	bool tree_mountable; /* the device has no larger blocks than it, as a kernel wants */
	uint32_t tree_block_size; /* 4096, or 512: Linux 6.4; 0: none, or damaged */
};

struct stele_snapshot_info {
	size_t size;
	char name[STELE_NAME_SIZE_MAX + 1];
	uint64_t id;
	uint64_t parent; /* 0: none */
	int64_t time;
	uint8_t digest[STELE_DIGEST_SIZE];
	uint64_t sample_count; /* live */
	uint64_t payload_size; /* sum of their bytes */
	uint32_t segment_count;
	uint32_t note_size; /* bytes; see stele_image_note() */
	int64_t deleted_time; /* 0: it is not deleted */
};

struct stele_image;

/**
 * stele_image_open() - an image as a whole; a snapshot in @target is ignored.
 * Errors as for stele_dataset_open().
 */
STELE_API int stele_image_open(const char *target,
			       const struct stele_open_opts *opts,
			       struct stele_image **out);
/** Return: 0; -EINVAL. */
STELE_API int stele_image_info(const struct stele_image *image,
			       struct stele_image_info *info);
/**
 * Oldest first; from index snapshot_count on the deleted ones, likewise. Reads nothing:
 * everything is in the catalog. Return: 0; -ERANGE; -EINVAL.
 */
STELE_API int stele_image_snapshot(const struct stele_image *image,
				   uint32_t index,
				   struct stele_snapshot_info *out);
/**
 * A snapshot's note: note_size arbitrary bytes, not terminated.
 * Return: 0; -ERANGE (index, or size below note_size).
 */
STELE_API int stele_image_note(const struct stele_image *image, uint32_t index,
			       char *note, size_t size);
/**
 * stele_image_usage() - bytes on the target of the segments of each snapshot
 * @alone: by index, of those that no other snapshot has: what gc can free once it is deleted
 * @shared: of the others
 * @count: of elements in both; from 0 to the number of snapshots
 *
 * Reads nothing. Samples that were deleted from a segment count: it is freed as a whole.
 * Return: 0; -ERANGE (too many); -ENOMEM.
 */
STELE_API int stele_image_usage(const struct stele_image *image, uint64_t *alone,
				uint64_t *shared, uint32_t count);

enum stele_region_kind {
	STELE_REGION_FIXED = 1, /* superblocks and all else below the first segment */
	STELE_REGION_SEGMENT,
	STELE_REGION_TREE,    /* of files, see stele_posix() */
	STELE_REGION_CATALOG, /* and lists of deleted samples */
	STELE_REGION_FREE,    /* reusable, or never used */
};

/** A part of the target. */
struct stele_region {
	size_t size;
	uint32_t kind; /* enum stele_region_kind */
	uint32_t snapshot_count;   /* that have this segment */
	const uint32_t *snapshots; /* their indices, ascending; valid during the callback */
	uint64_t offset, region_size;
	uint64_t segment_id, sample_count; /* of a segment, with those deleted since; else 0 */
	bool unused; /* a segment or part of a tree that gc will free */
};
/* Nonzero ends the walk; it is then the return value. */
typedef int (*stele_region_fn)(void *user, const struct stele_region *region);
/**
 * stele_image_regions() - what lies where, from the target's first byte to the image's last
 *
 * By offset, without gaps. Reads nothing. Return: 0; what @fn returned; -ENOMEM.
 */
STELE_API int stele_image_regions(const struct stele_image *image, stele_region_fn fn,
				  void *user);
STELE_API void stele_image_close(struct stele_image *image);

/**
 * stele_image_detect() - is there an image, even an unfinished or damaged one?
 * @path: a regular file or block device; no '@' and no mapping is looked for in it
 *
 * One in a partition counts as well. Reads a few blocks at most.
 * Return: 1; 0 (none, nor anything that could be read); -ENOMEM.
 */
STELE_API int stele_image_detect(const char *path);

/* ---- build ------------------------------------------------------------- */

enum stele_order {
	STELE_ORDER_SIZE = 0, /* by size class, shuffled within each: the default */
	STELE_ORDER_SOURCE,   /* by key, in byte order; costs more runs */
};

/* And STELE_DRY_RUN: plan only, the target may be NULL; STELE_FORCE: overwrite contents. */
enum stele_build_flags {
	STELE_BUILD_ALLOW_EMPTY = 1 << 2, /* a source without samples is no error */
	/* directory: take what symlinks lead to; a cycle is an error */
	STELE_BUILD_FOLLOW = 1 << 3,
	/* skip files that change, vanish or cannot be read */
	STELE_BUILD_SKIP_CHANGED = 1 << 4,
	STELE_BUILD_POSIX = 1 << 9, /* build only, in a second commit: see stele_posix() */
};

/*
 * Which directory a file's class is named after: the i64 field `label`, -1 if it lies in
 * none. Values from 1 to STELE_LABEL_FROM_LEVEL_MAX are a level: 1 is right below the source.
 * Unless that is the level of labels, directories that are called train, training, val,
 * valid, validation or test (all of them, or two kinds of them), and have directories,
 * make the field `split` of the same kind: those at the top, or in the only directory there.
 */
enum stele_label_from {
	/* below splits, if there are any; else 1 if most files lie in directories; else NONE */
	STELE_LABEL_FROM_AUTO = 0,
	STELE_LABEL_FROM_LEVEL_MAX = 255,
	STELE_LABEL_FROM_PARENT, /* the directory that the file lies in */
	STELE_LABEL_FROM_NONE,   /* no such fields */
};

/** Why a source entry did not become a sample. */
enum stele_skip_reason {
	STELE_SKIP_SYMLINK = 1, /* with FOLLOW: that leads nowhere */
	STELE_SKIP_SPECIAL,    /* socket, fifo, device */
	STELE_SKIP_UNREADABLE, /* only with SKIP_CHANGED; else the build fails */
	STELE_SKIP_VANISHED,   /* likewise */
	STELE_SKIP_CHANGED,    /* likewise: its size changed while being read */
	STELE_SKIP_TARGET,     /* the target itself is in the source */
	STELE_SKIP_EXCLUDED,   /* file or directory that a pattern of `exclude` matches */
	STELE_SKIP_NO_SAMPLE,  /* of an archive of samples: a file whose name is part of none */
};
/* key is not terminated. From any thread of the build, one call at a time. */
typedef void (*stele_build_skip_fn)(void *user, enum stele_skip_reason reason,
				    const char *key, size_t key_size, int error);

/* Options of build, append, compaction and stele_txn_add() begin the same, up to boundary. */
struct stele_build_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	stele_progress_fn progress;
	void *progress_user;
	uint64_t memory_size;	/* 0: 256 MiB */
	uint32_t flags;		/* enum stele_build_flags */
	uint32_t granule;	/* 16, 64, 512, 4096; 0: the largest with padding <= 2 %, of
				   files 10 % */
	uint32_t order;		/* enum stele_order */
	uint32_t jobs;		/* threads; 0: 8 per core, at most 32 */
	/*
	 * No slot crosses a multiple of it: a power of two of at least 4096; 1:
	 * none; 0: the target's default (an RBD image's object size, else none)
	 */
	uint32_t boundary;
	uint32_t label_from;	/* enum stele_label_from */
	stele_build_skip_fn skip;
	void *skip_user;
	/*
	 * directory: files and directories to leave out, patterns of fnmatch(3) and NULL at
	 * the end; NULL: none. One with a slash, but at its end, is of the path below the
	 * source, others of a name at any depth.
	 */
	const char *const *exclude;
	const char *backend;
	const char *note;	/* of the snapshot; NULL: none */
	const char *label;	/* of the image; NULL: "" */
	const uint8_t *uuid;	/* 16 bytes; NULL: random */
	int64_t time;		/* seconds; 0: now, or $SOURCE_DATE_EPOCH */
	uint64_t file_size;	/* of a file or RBD image, a multiple of 4096; 0: to fit */
	uint32_t object_size;	/* of an RBD image that is created; 0: 4 MiB */
	uint32_t reserved;
};

/** What became of a build, append or compaction; sizes are of the segment written. */
struct stele_build_report {
	size_t size;
	char snapshot[STELE_NAME_SIZE_MAX + 1];
	char base[STELE_NAME_SIZE_MAX + 1]; /* append: it started from that; else "" */
	uint8_t uuid[STELE_UUID_SIZE];
	uint8_t digest[STELE_DIGEST_SIZE]; /* zero for a dry run */
	uint64_t sample_count; /* of the snapshot */
	/* Append: samples, compared with the base. */
	uint64_t added, updated, deleted, unchanged;
	/* Append without UPDATE: samples of the source that the base has by key: not compared. */
	uint64_t kept;
	uint64_t written_count; /* samples in the segment */
	uint64_t written_size;	/* bytes written to the target, including metadata */
	uint64_t payload_size;
	uint64_t slots_size;
	uint64_t padding_size;
	uint64_t table_size;
	uint64_t sections_size;
	/*
	 * Bytes of the target in use; for a build, bytes needed, with room
	 * for the catalog of the next generation.
	 */
	uint64_t image_end;
	uint64_t target_size; /* 0 without a target */
	uint64_t skipped[16]; /* by enum stele_skip_reason */
	uint32_t run_count;
	uint32_t granule;
	uint32_t class_count; /* of 'label', else of the first field with names; 0: none */
	uint32_t jobs;
	uint32_t created; /* append: 1; 0: nothing has changed, so no snapshot was made */
	uint32_t reserved;
	double scan_seconds, write_seconds, total_seconds;
	char backend[16];
};

/**
 * stele_build() - write a directory to a new image, and publish its first
 * snapshot
 * @source: a directory
 * @target: path[@SNAPSHOT]; snapshot "v1" unless given
 *
 * Plans first: the exact end of the image is known before a byte is written.
 * A target that is in use or carries anything is refused (-EBUSY, -EEXIST),
 * and left unchanged byte for byte; with FORCE, too, if it is a file of the source that holds
 * no image (-EINVAL). From the first byte written until the commit
 * the target is recognizable as an unfinished image. A regular file created by
 * the build is removed if it fails; one that is overwritten (FORCE) keeps its content
 * until the new image is durable, in a new file that takes its place.
 *
 * Return: 0; -EBUSY; -EEXIST; -EINVAL; -ENOSPC; -ETXTBSY; -ECANCELED; -ENOENT (the source
 * has no samples, or none that can be read, unless ALLOW_EMPTY); -ELOOP (FOLLOW: a cycle);
 * -ENAMETOOLONG (a key); -EFBIG (a file, or all files, exceed the limits of the format);
 * -EOVERFLOW (too many runs, or class names); -EOPNOTSUPP (logical blocks of
 * more than 4096 bytes, or no path); -ENODEV (below /dev, and not there); errno of source
 * or target. Details go to the log
 * callback. @report may be NULL; on errors, too, it is filled in as far as known.
 */
STELE_API int stele_build(const char *source, const char *target,
			  const struct stele_build_opts *opts,
			  struct stele_build_report *report);

/* ---- verify ------------------------------------------------------------ */

/*
 * Something damaged; or, if error is 0, a note: harmless leftovers of an interrupted
 * writer, which the next one cleans up.
 */
struct stele_damage {
	size_t size;
	int error;	   /* -EBADMSG, -EUCLEAN, -EIO, ...; 0: a note */
	const char *what;  /* "record", "superblock", "keys", ... */
	uint64_t offset;   /* of the item on the target */
	uint64_t item_size;
	bool has_id;
	uint64_t id;	   /* of the sample, if it is one */
	const char *key;   /* may be NULL; not terminated */
	size_t key_size;
	const char *detail; /* "crc32c 0x..., expected 0x...": found and expected */
	const char *snapshot; /* that has it (a sample by that id); the newest one. NULL: none */
};
typedef void (*stele_damage_fn)(void *user, const struct stele_damage *damage);

struct stele_verify_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	stele_damage_fn damage;
	void *damage_user;
	stele_progress_fn progress;
	void *progress_user;
	const char *backend;
	uint32_t jobs; /* 0: one per core */
	uint32_t reserved;
};

struct stele_verify_report {
	size_t size;
	uint64_t snapshots, segments, samples, blocks; /* checked */
	uint64_t bytes;
	uint64_t damaged; /* calls of damage() with an error */
	uint64_t notes;	  /* and without */
};

/**
 * stele_verify() - every checksum, digest and invariant of an image or snapshot
 * @target: without "@..." the whole image
 * Commits in the meantime are not damage: whatever cannot be checked as it was when
 * opened is checked again, and damage reported before may be reported again.
 * Return: 0 sound; 1 damage found (see report, callback); -EBUSY (changed again and
 * again); negative errno if it could not be checked at all.
 */
STELE_API int stele_verify(const char *target,
			   const struct stele_verify_opts *opts,
			   struct stele_verify_report *report);

#ifdef __cplusplus
}
#endif

#endif
