/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele.h - datasets on raw block devices, read sample by sample
 *
 * The model. A *target* (block device or regular file) holds one *image*. An
 * image holds named, immutable *snapshots*; a snapshot is a sequence of
 * *samples* with ids 0 ... count-1. A sample is a *record*: one or more typed
 * *fields*, and a *key*, its name in the source. Samples are sorted into size
 * classes, so the whole index is a table of a few hundred runs: a sample
 * costs one device read, and no index read.
 *
 *	struct stele_dataset *ds;
 *	struct stele_sample sample;
 *
 *	if (stele_dataset_open("/dev/nvme1n1@v1", NULL, &ds) == 0 &&
 *	    stele_dataset_read(ds, 42, &sample) == 0) {
 *		fwrite(sample.data, 1, sample.size, stdout);
 *		stele_sample_release(&sample);
 *	}
 *	stele_dataset_close(ds);
 *
 * Targets. "/dev/nvme1n1", "./cats.stele": a path. "rbd:POOL[/NAMESPACE]/IMAGE":
 * a Ceph RBD image; "?conf=FILE&user=ID&timeout=SECONDS" may stand behind
 * all of it. "@NAME" behind path or image picks a snapshot, "@sha256:HEX"
 * (64 digits) pins one by its digest. A word without a slash that `stele map`
 * published on this machine is a target too, and goes before a file of that
 * name.
 *
 * Threads. A dataset is immutable after open; any number of threads may use
 * it. A reader, a cursor and a view's prefetch belong to one thread at a
 * time; concurrency is more readers. After fork() a dataset still works in
 * the child; a reader does not (-EOWNERDEAD): open a new one.
 *
 * Errors. Functions that can fail return 0 (or a count) or a negative errno;
 * they never set errno, print, or exit. Fixed meanings:
 *
 *	-EMEDIUMTYPE	no Stele image there
 *	-ENODATA	an unfinished image (its build was interrupted), or a
 *			target shorter than its image
 *	-EBADMSG	a checksum or digest does not match
 *	-EUCLEAN	checksums match, yet the structure is impossible
 *	-ENOTUNIQ	two superblocks of one generation differ (a fork)
 *	-EOPNOTSUPP	a feature, format version or backend that this library lacks
 *	-ENOENT		no such target, snapshot, key or mapping
 *	-EEXIST		the target carries something; force was not given
 *	-EBUSY		the target is mounted, held, or open elsewhere
 *	-ENOSPC		the target is too small
 *	-ETIMEDOUT	the storage did not answer in time
 *	-ESHUTDOWN	the storage has locked this client out (a writer that was fenced)
 *	-ERANGE		id, field or buffer out of range
 *	-ESTALE		a mapping or snapshot is not what it was when it was opened
 *	-EOWNERDEAD	the handle was made before a fork
 *	-ECANCELED	the caller's progress callback asked to stop
 *	-ETXTBSY	a source file changed while it was read
 *	-EINVAL		an argument is wrong (also: unknown flags or bad syntax)
 *	-E2BIG		an options struct of a newer header sets what this library does not know
 *
 * Options. Zero means the default for every field of every options struct, and
 * the struct may be NULL; use STELE_OPTS() so that `size` is set:
 *
 *	stele_dataset_open(target, &STELE_OPTS(stele_open_opts, .log = fn), &ds)
 */
#ifndef STELE_H
#define STELE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STELE_VERSION_MAJOR 0
#define STELE_VERSION_MINOR 1
#define STELE_VERSION_PATCH 0

#define STELE_API __attribute__((visibility("default")))

#define STELE_OPTS(type, ...) \
	((struct type){.size = sizeof(struct type), __VA_ARGS__})

/* Limits of format version 1. Sizes in bytes. */
#define STELE_KEY_SIZE_MAX	4000 /* a key, without terminator */
#define STELE_NAME_SIZE_MAX	63   /* label, snapshot, field, mapping */
#define STELE_FIELDS_MAX	64
#define STELE_DIGEST_SIZE	32
#define STELE_UUID_SIZE		16
#define STELE_SAMPLE_SIZE_MAX	((UINT64_C(1) << 47) - 1)

/** stele_version() - "MAJOR.MINOR.PATCH" of the library that is loaded. */
STELE_API const char *stele_version(void);

/**
 * stele_strerror() - what a code of this library means
 * @error: a negative errno as returned by any function here
 *
 * Our meaning where the table above gives one, else strerror's. Static text
 * or thread-local as in strerror(3).
 */
STELE_API const char *stele_strerror(int error);

/* ---- messages ---------------------------------------------------------- */

enum stele_log_level {
	STELE_LOG_ERROR = 1,
	STELE_LOG_WARNING,
	STELE_LOG_INFO,
};

/*
 * One line, no newline. May be called from any thread that uses the handle, and
 * from those that a function starts: by several at once.
 */
typedef void (*stele_log_fn)(void *user, enum stele_log_level level,
			     const char *line);

/* ---- datasets ---------------------------------------------------------- */

struct stele_dataset;

/** How much is checked when a sample is read. */
enum stele_verify {
	STELE_VERIFY_CRC = 0, /* the record's seeded CRC32C: default */
	/*
	 * Only what memory safety needs. Of RBD as CRC: nothing else tells that a
	 * snapshot went away.
	 */
	STELE_VERIFY_NONE,
	STELE_VERIFY_DIGEST,  /* CRC, SHA-256, and its path to the snapshot's digest */
};

struct stele_open_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	/*
	 * NULL: $STELE_BACKEND, then the best; "uring", "threads". These only by name, or
	 * where a profile found them better: "iopoll", "hybrid", "sqpoll", "passthrough".
	 */
	const char *backend;
	uint32_t verify;     /* enum stele_verify, for one-shot reads and as the readers' default */
	uint32_t reserved;
};

/**
 * stele_dataset_open() - open one snapshot of an image for reading
 * @target: see above; without "@..." the image must hold exactly one snapshot
 *
 * Recomputes the snapshot's digest from what it read, so a pinned open means
 * those bytes. Opening a mapped name does no device I/O.
 *
 * Return: 0; -ENOENT, -EMEDIUMTYPE, -ENODATA, -EBADMSG, -EUCLEAN, -ENOTUNIQ,
 * -EOPNOTSUPP; -EINVAL (several snapshots and none named, or bad syntax);
 * -ESTALE (the device behind a mapping is another one now); errno of open(2).
 */
STELE_API int stele_dataset_open(const char *target,
				 const struct stele_open_opts *opts,
				 struct stele_dataset **out);

/**
 * stele_dataset_close() - after its readers, cursors and views. NULL is fine.
 */
STELE_API void stele_dataset_close(struct stele_dataset *ds);

struct stele_dataset_info {
	uint8_t uuid[STELE_UUID_SIZE];
	char label[STELE_NAME_SIZE_MAX + 1];
	char snapshot[STELE_NAME_SIZE_MAX + 1];
	uint8_t digest[STELE_DIGEST_SIZE];
	int64_t time;		 /* of the snapshot, seconds since 1970 */
	uint64_t generation;	 /* of the superblock that was read */
	uint64_t image_size;	 /* bytes that the image may use on its target */
	uint64_t used_size;	 /* bytes up to the allocator's high-water mark */
	uint64_t sample_count;	 /* live */
	uint64_t deleted_count;
	uint64_t payload_size;	 /* sum of all samples' bytes, as built */
	uint64_t slots_size;	 /* space of all slots */
	uint64_t padding_size;	 /* of that, not payload, key, scalars, trailer */
	uint64_t slot_size_max;	 /* the largest slot: bounds a read */
	uint64_t table_size;	 /* bytes of all run tables */
	uint32_t run_count;
	uint32_t segment_count;
	uint32_t granule;	 /* of the first segment */
	uint32_t field_count;
	uint32_t logical_block;	 /* of the target */
	uint32_t transfer_max;	 /* largest single read that is issued */
	char backend[16];	 /* "uring", "threads", ... */
};

STELE_API void stele_dataset_info(const struct stele_dataset *ds,
				  struct stele_dataset_info *info);
STELE_API uint64_t stele_dataset_count(const struct stele_dataset *ds);

enum stele_type {
	STELE_TYPE_BYTES = 1,
	STELE_TYPE_UTF8 = 2,
	STELE_TYPE_TENSOR = 3, /* defined by the format; not yet written */
	STELE_TYPE_I64 = 4,
	STELE_TYPE_F64 = 5,
};

struct stele_field {
	char name[STELE_NAME_SIZE_MAX + 1];
	uint32_t type;	      /* enum stele_type */
	uint32_t name_count;  /* of class names; 0: it has none */
};

/** Return: 0; -ERANGE. */
STELE_API int stele_dataset_field(const struct stele_dataset *ds,
				  uint32_t index, struct stele_field *out);
/** Return: index; -ENOENT. */
STELE_API int stele_dataset_field_index(const struct stele_dataset *ds,
					const char *name);
/**
 * stele_dataset_class_name() - the name that value `value` of a field stands
 * for
 * @name: NUL-terminated, lives as long as @ds; may hold any byte but NUL
 * Return: 0; -ERANGE; -ENOENT (no name for that value).
 */
STELE_API int stele_dataset_class_name(const struct stele_dataset *ds,
				       uint32_t field, int64_t value,
				       const char **name);

/**
 * stele_dataset_find() - key to id, by the keys section (reads the device)
 * Return: 0; -ENOENT; -EINVAL (size 0 or over the limit); -EBADMSG, -EUCLEAN;
 * device errno.
 */
STELE_API int stele_dataset_find(struct stele_dataset *ds, const char *key,
				 size_t key_size, uint64_t *id);

/** Where a sample lies: for exact-I/O tests and for readers of other kinds. */
struct stele_extent {
	uint64_t offset;    /* of the slot, bytes on the target */
	uint64_t slot_size;
	uint64_t segment_id;
	uint64_t number;    /* within the segment: with segment_id the checksum's seed */
};

/** Arithmetic only, no I/O. Return: 0; -ERANGE. */
STELE_API int stele_dataset_locate(const struct stele_dataset *ds, uint64_t id,
				   struct stele_extent *out);

/* ---- samples ----------------------------------------------------------- */

/**
 * struct stele_sample - one sample in memory
 *
 * Everything points into the buffer that the read landed in; valid until the
 * sample is released. When status is not 0 only id, tag and status are set.
 */
struct stele_sample {
	uint64_t id;
	uint64_t tag;	   /* the caller's, from submit */
	int status;	   /* 0 or negative errno: per sample, never per batch */
	uint32_t key_size;
	const void *data;  /* all fields' bytes, one behind the other */
	uint64_t size;
	const char *key;   /* not terminated */
	const void *tail;  /* for the accessors below */
	const struct stele_dataset *ds;
	void *buffer;	   /* for release */
};

/**
 * Bytes of a bytes, utf8 or tensor field. Return: 0; -ERANGE; -EINVAL
 * (another type).
 */
STELE_API int stele_sample_bytes(const struct stele_sample *sample,
				 uint32_t field, const void **data,
				 uint64_t *size);
/** One scalar. Return: 0; -ERANGE; -EINVAL (another type). */
STELE_API int stele_sample_i64(const struct stele_sample *sample,
			       uint32_t field, int64_t *value);
STELE_API int stele_sample_f64(const struct stele_sample *sample,
			       uint32_t field, double *value);

/**
 * stele_dataset_read() - one sample, one read (large ones split), its own
 * buffer
 *
 * Any thread. Release with stele_sample_release().
 * Return: 0; -ERANGE; -EBADMSG; -EUCLEAN; -ENOMEM; device errno. The return
 * equals sample->status.
 */
STELE_API int stele_dataset_read(struct stele_dataset *ds, uint64_t id,
				 struct stele_sample *sample);
/** Only for samples of stele_dataset_read(). Idempotent; zeroes the sample. */
STELE_API void stele_sample_release(struct stele_sample *sample);

/* Nonzero ends the stream, which returns it. */
typedef int (*stele_stream_fn)(void *user, const void *data, size_t size);
/**
 * stele_dataset_stream() - the bytes of one sample, piece by piece
 *
 * For samples too large for memory: at most 8 MiB are held. Pieces are handed
 * out before the checksum is known: until this returns 0 they may be wrong.
 * Return: 0; what @fn returned; errors of stele_dataset_read().
 */
STELE_API int stele_dataset_stream(struct stele_dataset *ds, uint64_t id,
				   stele_stream_fn fn, void *user);

/* ---- cursor over keys ---------------------------------------------------- */

struct stele_cursor;

struct stele_cursor_entry {
	const char *key; /* valid until the next call */
	size_t key_size;
	uint64_t id;
	uint64_t size;	 /* bytes of the sample */
};

/**
 * stele_cursor_open() - walk live keys in byte order, from sections alone
 * @prefix: only keys that begin so; may be NULL
 * Return: 0; -EINVAL (prefix over STELE_KEY_SIZE_MAX); -ENOMEM; -EBADMSG,
 * -EUCLEAN; device errno.
 */
STELE_API int stele_cursor_open(struct stele_dataset *ds, const char *prefix,
				size_t prefix_size, struct stele_cursor **out);
/**
 * Return: 1 (*entry is set); 0 (at the end); -EBADMSG, -EUCLEAN; device errno.
 * An error is final.
 */
STELE_API int stele_cursor_next(struct stele_cursor *cursor,
				struct stele_cursor_entry *entry);
STELE_API void stele_cursor_close(struct stele_cursor *cursor);

/* ---- reader ------------------------------------------------------------ */

struct stele_reader;

struct stele_reader_opts {
	size_t size;
	uint64_t arena_size; /* bytes of buffers; 0: 64 MiB, or what the
				largest sample needs, within a limit */
	uint32_t depth;	     /* device reads in flight, up to 4096, kept as it is;
				0: found while reading, from the device's profile */
	uint32_t verify;     /* 1 + enum stele_verify; 0: as the dataset */
	uint32_t check_threads; /* that compute checksums and digests, up to 64; 0:
				   the caller, and for digests one per core */
	uint32_t reserved;
};

/** Latencies in nanoseconds, to 3 significant digits; any thread, but one at a time. */
struct stele_histogram;

/** NULL: no memory. */
STELE_API struct stele_histogram *stele_histogram_new(void);
STELE_API void stele_histogram_free(struct stele_histogram *histogram);
/** Values from 1 to 2^40 (18 minutes) are told apart; what is larger counts as that. */
STELE_API void stele_histogram_record(struct stele_histogram *histogram,
				      uint64_t ns);
/** Add all that @from holds. */
STELE_API void stele_histogram_add(struct stele_histogram *histogram,
				   const struct stele_histogram *from);
STELE_API uint64_t stele_histogram_count(const struct stele_histogram *histogram);
/** The smallest value that a share of @quantile (0 ... 1) does not exceed; 0: empty. */
STELE_API uint64_t
stele_histogram_quantile(const struct stele_histogram *histogram,
			 double quantile);
STELE_API double stele_histogram_mean(const struct stele_histogram *histogram);

struct stele_reader_stats {
	uint64_t samples;      /* collected */
	uint64_t failed;       /* of those, with a status */
	uint64_t bytes;	       /* payload delivered */
	uint64_t device_reads; /* requests issued */
	uint64_t device_bytes;
	uint64_t reread;       /* read again after a bad checksum */
	uint64_t retries;      /* pieces tried again: short, EAGAIN, EINTR */
	uint64_t enters;       /* calls of the kernel that submitted or waited */
	uint64_t registered;   /* requests into memory that the ring knows */
	uint64_t p50_ns, p90_ns, p99_ns, p999_ns, max_ns; /* submit to collect */
	uint64_t device_p50_ns, device_p99_ns; /* one device read */
	double mean_ns, device_mean_ns;
	uint32_t depth;	       /* device reads in flight now */
	uint32_t window;       /* that may be, for sizes as of late */
	uint32_t depth_peak;
	uint32_t workers;      /* kernel threads that block for this process's
				  rings now (iou-wrk): should be 0 */
	uint32_t huge_pages;   /* of the arena: 2 explicit, 1 transparent if the
				  kernel likes, 0 none */
	char tier[64];	       /* "uring defer-taskrun fixed-file fixed-buffers" */
};

enum stele_depth_phase {
	STELE_DEPTH_STARTUP = 1, /* doubling */
	STELE_DEPTH_DRAIN,
	STELE_DEPTH_CRUISE,
	STELE_DEPTH_PROBE_UP,
	STELE_DEPTH_PROBE_DOWN,
	STELE_DEPTH_PINNED,
};

/** One round of the controller of depth. */
struct stele_depth_round {
	uint64_t time_ns;  /* its end, since the reader was opened */
	double window;	   /* requests of the mean size */
	double bytes_per_second, reads_per_second;
	double slowdown;   /* median latency, as a multiple of one alone */
	uint32_t phase;	   /* enum stele_depth_phase */
	uint32_t starved;  /* 1: the caller asked for less than the window */
};

/** Return: 0; -ENOMEM; -EINVAL; -E2BIG; -EAGAIN (not one thread); errno of the queue. */
STELE_API int stele_reader_open(struct stele_dataset *ds,
				const struct stele_reader_opts *opts,
				struct stele_reader **out);

/**
 * stele_reader_submit() - ask for samples
 * @ids: any order, repeats allowed; @tags may be NULL (tag = 0)
 *
 * Takes as many as there is room for, at most twice what the window of reads holds,
 * and returns that count (0: collect and release first). An id out of range is
 * taken, and collected with -ERANGE. A sample larger than the whole arena gets
 * memory of its own, one at a time.
 * Return: count; -EOWNERDEAD.
 */
STELE_API int stele_reader_submit(struct stele_reader *reader,
				  const uint64_t *ids, const uint64_t *tags,
				  unsigned int count);

/**
 * stele_reader_submit_into() - read one sample into the caller's memory
 * @memory: aligned to 4096, of at least stele_reader_buffer_size() bytes for
 * @id;
 *          belongs to the reader until the sample is collected
 * Return: 1 taken; 0 no room now; -ERANGE; -EINVAL (alignment); -ENOBUFS (too
 * small); -EOWNERDEAD.
 */
STELE_API int stele_reader_submit_into(struct stele_reader *reader, uint64_t id,
				       uint64_t tag, void *memory,
				       uint64_t memory_size);
/**
 * Bytes that a read of this sample fills: its slot, widened to whole device
 * blocks. 0: id out of range.
 */
STELE_API uint64_t stele_reader_buffer_size(const struct stele_reader *reader,
					    uint64_t id);

/**
 * stele_reader_collect() - finished samples, in completion order
 * @min: wait until so many are there (at most what is outstanding); 0: only
 * look
 * Return: count (each with its own status); -EOWNERDEAD; -EIO (the queue
 * broke).
 */
STELE_API int stele_reader_collect(struct stele_reader *reader,
				   struct stele_sample *samples,
				   unsigned int max, unsigned int min);
/** Give a collected sample's buffer back. Also for failed ones; idempotent. */
STELE_API void stele_reader_release(struct stele_reader *reader,
				    struct stele_sample *sample);
/** Submitted and not yet collected. */
STELE_API unsigned int
stele_reader_outstanding(const struct stele_reader *reader);
/**
 * Polls readable when collect may return something. Return: fd (the reader's
 * own); -EOPNOTSUPP; -EOWNERDEAD; errno of epoll(7) or eventfd(2).
 */
STELE_API int stele_reader_fd(struct stele_reader *reader);
STELE_API void stele_reader_stats(const struct stele_reader *reader,
				  struct stele_reader_stats *stats);
/** The last rounds, oldest first. Return: how many, at most @max and 256. */
STELE_API unsigned int
stele_reader_history(const struct stele_reader *reader,
		     struct stele_depth_round *rounds, unsigned int max);
enum stele_latency {
	STELE_LATENCY_SAMPLE = 0, /* accepted by submit, to handed out by collect */
	STELE_LATENCY_DEVICE,	  /* one device read */
};
/** Lives as long as the reader, and is written by it. NULL: unknown @which. */
STELE_API const struct stele_histogram *
stele_reader_latency(const struct stele_reader *reader,
		     enum stele_latency which);
/**
 * stele_reader_register() - tell the ring of memory that samples are read into
 * @memory: aligned to 4096; stays mapped until the reader is closed
 *
 * Saves pinning its pages for each read, for those of stele_reader_submit_into() that
 * lie in it. Up to 64 such regions.
 * Return: 0; -EOPNOTSUPP (this backend registers none); -EINVAL; -ENOSPC; -ENOMEM (the
 * limit of locked memory); -EOWNERDEAD.
 */
STELE_API int stele_reader_register(struct stele_reader *reader, void *memory,
				    uint64_t memory_size);
/**
 * stele_stats_prometheus() - stats in the text format of Prometheus
 * @labels: 'rank="3",target="/dev/x"' or NULL
 *
 * As snprintf(3): the length that all of it has, terminated if @size allows. For a file
 * that a collector picks up: write beside and rename.
 */
STELE_API int stele_stats_prometheus(const struct stele_reader_stats *stats,
				     const char *labels, char *text,
				     size_t size);
/**
 * Waits for what is in flight. NULL is fine. Samples not released become
 * invalid. Where collect said -EIO there is nothing to wait for, and memory of
 * stele_reader_submit_into() may be written to until the process ends.
 */
STELE_API void stele_reader_close(struct stele_reader *reader);

/* ---- mmap view ---------------------------------------------------------- */

struct stele_view;

struct stele_view_opts {
	size_t size;
	uint32_t verify; /* 1 + enum stele_verify (NONE or CRC); 0: NONE */
	uint32_t reserved;
};

/**
 * stele_view_open() - map the target read-only (MAP_SHARED): samples by
 * pointer, no copy
 *
 * Pages come through the page cache. A page that cannot be read raises SIGBUS
 * on touch; stele_view_prefetch() reports it as an error instead.
 * Return: 0; -EOPNOTSUPP (not a kernel block device or file); -EINVAL; -E2BIG;
 * -ENOMEM; errno of mmap(2).
 */
STELE_API int stele_view_open(struct stele_dataset *ds,
			      const struct stele_view_opts *opts,
			      struct stele_view **out);
/**
 * Pointer and length of a sample; nothing to release. Return: 0; -ERANGE;
 * -EBADMSG, -EUCLEAN.
 */
STELE_API int stele_view_sample(struct stele_view *view, uint64_t id,
				struct stele_sample *out);
/**
 * stele_view_prefetch() - bring samples into memory
 * Return: 0; -ERANGE; -EIO and others of madvise(2) (the first that failed;
 * the rest was tried).
 */
STELE_API int stele_view_prefetch(struct stele_view *view, const uint64_t *ids,
				  size_t count);
STELE_API void stele_view_close(struct stele_view *view);

/* ---- images ------------------------------------------------------------ */

struct stele_image_info {
	uint8_t uuid[STELE_UUID_SIZE];
	char label[STELE_NAME_SIZE_MAX + 1];
	uint32_t version;
	uint32_t snapshot_count;
	uint32_t segment_count;
	uint32_t fence_mode;
	uint64_t feature_compat, feature_ro_compat, feature_incompat;
	uint64_t generation;
	uint64_t image_size, used_size;
	uint64_t free_size; /* of used_size, to be written again */
	int64_t create_time, commit_time;
	uint32_t superblocks_good; /* of 4 copies */
	uint32_t reserved;
};

struct stele_snapshot_info {
	char name[STELE_NAME_SIZE_MAX + 1];
	uint64_t id;
	uint64_t parent; /* 0: none */
	int64_t time;
	uint8_t digest[STELE_DIGEST_SIZE];
	uint64_t sample_count;
	uint64_t payload_size;
	uint32_t segment_count;
	uint32_t note_size; /* bytes; see stele_image_note() */
};

struct stele_image;

/**
 * stele_image_open() - an image as a whole; a snapshot in @target is ignored.
 * Errors as stele_dataset_open().
 */
STELE_API int stele_image_open(const char *target,
			       const struct stele_open_opts *opts,
			       struct stele_image **out);
STELE_API void stele_image_info(const struct stele_image *image,
				struct stele_image_info *info);
/**
 * Oldest first. Reads the descriptors for payload_size, which is 0 when one of
 * them is damaged (the log says so). Return: 0; -ERANGE; errno of the device.
 */
STELE_API int stele_image_snapshot(const struct stele_image *image,
				   uint32_t index,
				   struct stele_snapshot_info *out);
/**
 * A snapshot's note: note_size bytes, any, not terminated.
 * Return: 0; -ERANGE (index, or size below note_size).
 */
STELE_API int stele_image_note(const struct stele_image *image, uint32_t index,
			       char *note, size_t size);
STELE_API void stele_image_close(struct stele_image *image);

/* ---- build ------------------------------------------------------------- */

enum stele_build_order {
	STELE_ORDER_SIZE = 0, /* by size class, shuffled within: the default */
	STELE_ORDER_SOURCE,   /* source order; costs more runs */
};

enum stele_build_flags {
	STELE_BUILD_DRY_RUN = 1 << 0,	   /* plan only; the target may be NULL */
	STELE_BUILD_FORCE = 1 << 1,	   /* overwrite what the target carries */
	STELE_BUILD_LABELS = 1 << 2,	   /* a `label` field, whatever the source looks like */
	STELE_BUILD_NO_LABELS = 1 << 3,	   /* never */
	/* leave out files that change, vanish or cannot be read */
	STELE_BUILD_SKIP_CHANGED = 1 << 4,
	/* only for stele_append(): */
	STELE_BUILD_UPDATE = 1 << 5,	     /* also replace samples whose content changed */
	STELE_BUILD_QUICK = 1 << 6,	     /* with UPDATE: see stele_append() */
	STELE_BUILD_DELETE_MISSING = 1 << 7, /* drop samples that the source lacks */
};

enum stele_build_phase {
	STELE_PHASE_SCAN,
	STELE_PHASE_WRITE,
	STELE_PHASE_SECTIONS,
	STELE_PHASE_COMMIT,
	STELE_PHASE_COMPARE, /* append: comes behind SCAN */
};

struct stele_build_progress {
	enum stele_build_phase phase;
	uint64_t samples_done, samples_total; /* total 0: not known yet */
	uint64_t bytes_done, bytes_total;
};

/*
 * Nonzero cancels the build (-ECANCELED). From the thread that builds, at
 * least every 100 ms.
 */
typedef int (*stele_build_progress_fn)(void *user,
				       const struct stele_build_progress *p);

/** What became of a source entry that is not a sample. */
enum stele_skip_reason {
	STELE_SKIP_SYMLINK = 1,
	STELE_SKIP_SPECIAL,    /* socket, fifo, device */
	STELE_SKIP_UNREADABLE, /* only with SKIP_CHANGED; else the build fails */
	STELE_SKIP_VANISHED,   /* likewise */
	STELE_SKIP_CHANGED,    /* likewise: its size changed while it was read */
	STELE_SKIP_TARGET,     /* the target itself lies in the source */
};
/* key is not terminated. From any thread of the build, one call at a time. */
typedef void (*stele_build_skip_fn)(void *user, enum stele_skip_reason reason,
				    const char *key, size_t key_size, int error);

struct stele_build_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	stele_build_progress_fn progress;
	void *progress_user;
	stele_build_skip_fn skip;
	void *skip_user;
	const char *backend;
	const char *label;	/* of the image; NULL: "" */
	const uint8_t *uuid;	/* 16 bytes; NULL: random */
	const char *base;	/* append: a snapshot's name; NULL: the newest */
	const char *note;	/* of the snapshot; NULL: none */
	uint64_t file_size;	/* of a file or RBD image, whole 4096s; 0: to fit */
	uint64_t memory_size;	/* 0: 256 MiB */
	int64_t time;		/* seconds; 0: now, or $SOURCE_DATE_EPOCH */
	uint32_t flags;		/* enum stele_build_flags */
	uint32_t granule;	/* 16, 64, 512, 4096; 0: the largest with padding <= 2 % */
	uint32_t order;		/* enum stele_build_order */
	uint32_t jobs;		/* threads; 0: 8 per core, at most 32 */
	/*
	 * No slot crosses a multiple of it: a power of two of at least 4096; 1:
	 * none; 0: as the target wants it (an RBD image's object size, else none)
	 */
	uint32_t boundary;
	uint32_t object_size;	/* of an RBD image that is created; 0: 4 MiB */
};

struct stele_build_report {
	char snapshot[STELE_NAME_SIZE_MAX + 1];
	uint8_t uuid[STELE_UUID_SIZE];
	uint8_t digest[STELE_DIGEST_SIZE]; /* zero for a dry run */
	uint64_t sample_count;
	uint64_t payload_size;
	uint64_t slots_size;
	uint64_t padding_size;
	uint64_t table_size;
	uint64_t sections_size;
	uint64_t image_end;   /* bytes of the target that are used */
	uint64_t target_size; /* 0 where there is no target */
	uint64_t skipped[8];  /* by enum stele_skip_reason */
	uint32_t run_count;
	uint32_t granule;
	uint32_t class_count; /* of labels; 0: no label field */
	uint32_t jobs;
	double scan_seconds, write_seconds, total_seconds;
	char backend[16];
};

/**
 * stele_build() - lay a directory out as a new image, and publish its first
 * snapshot
 * @source: a directory
 * @target: path[@SNAPSHOT]; snapshot "v1" unless given
 *
 * Plans first: the exact end of the image is known before a byte is written.
 * A target that is in use or carries anything is refused (-EBUSY, -EEXIST),
 * and unchanged byte for byte. From the first byte written until the commit
 * the target is recognised as an unfinished image. A regular file that the
 * build created is removed when it fails.
 *
 * Return: 0; -EBUSY; -EEXIST; -ENOSPC; -ETXTBSY; -ECANCELED; -ENAMETOOLONG (a
 * key); -EFBIG (a file, or all of them, are more than the format holds);
 * -EOVERFLOW (too many runs, or class names); -EOPNOTSUPP (logical blocks of
 * more than 4096 bytes, or no path); errno of source or target. What it was about goes to the log
 * callback. @report may be NULL; it is filled as far as known also on errors.
 */
STELE_API int stele_build(const char *source, const char *target,
			  const struct stele_build_opts *opts,
			  struct stele_build_report *report);

/* ---- versions ---------------------------------------------------------- */

/*
 * What follows changes an image that is there. One writer at a time (-EBUSY);
 * readers of any snapshot go on undisturbed. Only new bytes are written, and
 * a change becomes visible with one superblock write: interrupted, the image
 * is as it was.
 */

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
	 * resize only: grace periods count from the time of a change.
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
 * another snapshot's); -ENOTUNIQ (another segment of the same id; logged).
 */
STELE_API int stele_copy(const char *source, const char *target,
			 const struct stele_copy_opts *opts,
			 struct stele_copy_report *report);

/* ---- verify ------------------------------------------------------------ */

struct stele_damage {
	int error;	   /* -EBADMSG, -EUCLEAN, -EIO, ... */
	const char *what;  /* "record", "superblock", "keys", ... */
	uint64_t offset;   /* of the damaged thing on the target */
	uint64_t size;
	bool has_id;
	uint64_t id;	   /* of the sample, where it is one */
	const char *key;   /* may be NULL; not terminated */
	size_t key_size;
	const char *detail; /* "crc32c 0x..., expected 0x...": expected and found */
};
typedef void (*stele_damage_fn)(void *user, const struct stele_damage *damage);

struct stele_verify_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	stele_damage_fn damage;
	void *damage_user;
	int (*progress)(void *user, uint64_t bytes_done, uint64_t bytes_total);
	void *progress_user;
	const char *backend;
	uint32_t jobs; /* 0: one per core */
	uint32_t reserved;
};

struct stele_verify_report {
	uint64_t snapshots, segments, samples, blocks; /* checked */
	uint64_t bytes;
	uint64_t damaged; /* calls of damage() */
};

/**
 * stele_verify() - every checksum, digest and invariant of an image or snapshot
 * @target: without "@..." the whole image
 * Return: 0 sound; 1 damage found (see report, callback); negative errno when
 * it could not be checked at all.
 */
STELE_API int stele_verify(const char *target,
			   const struct stele_verify_opts *opts,
			   struct stele_verify_report *report);

/* ---- mappings ---------------------------------------------------------- */

#define STELE_RUN_DIR_ENV     "STELE_RUN_DIR"
#define STELE_RUN_DIR_DEFAULT "/run/stele"

enum stele_map_flags {
	STELE_MAP_READ_ONLY = 1 << 0, /* set the block device read-only until unmap */
};

struct stele_map_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	const char *backend;
	/* Of an RBD snapshot: "krbd", "librbd"; NULL, "auto": krbd where it works. */
	const char *via;
	uint32_t flags;
	uint32_t reserved;
};

struct stele_mapping_info {
	char name[STELE_NAME_SIZE_MAX + 1];
	char via[16]; /* how it is read: "device", "file", "krbd", "librbd" */
	const char *target; /* path, resolved; valid during the callback, NULL from stele_map() */
	char snapshot[STELE_NAME_SIZE_MAX + 1];
	uint8_t uuid[STELE_UUID_SIZE];
	uint8_t digest[STELE_DIGEST_SIZE];
	uint64_t sample_count;
	int64_t time; /* of the mapping */
	bool read_only;
	bool stale;   /* the device behind it is gone or another one */
};

/**
 * stele_map() - check a snapshot and publish it under a name on this machine
 * @name: [A-Za-z0-9._-]{1,63}, not beginning with a dot; NULL: the label,
 * else the snapshot's name
 * Return: 0; -EEXIST (the name is taken by another); errors of
 * stele_dataset_open(); errno of the run directory. Mapping the same snapshot
 * under the same name again succeeds and changes nothing.
 */
STELE_API int stele_map(const char *target, const char *name,
			const struct stele_map_opts *opts,
			struct stele_mapping_info *out);
/**
 * Open handles stay valid. A damaged mapping is removed, too (a warning). A
 * krbd device that mappings attached is detached with the last of them; while it is
 * open the last name stays (-EBUSY).
 * Return: 0; -ENOENT; -EINVAL (no name of a mapping); -EBUSY; errno of the
 * device that could not be set writable again, or of the run directory.
 */
STELE_API int stele_unmap(const char *name, const struct stele_map_opts *opts);
/**
 * Calls fn for each sound mapping, by name. Return: count; errno of the
 * directory.
 */
STELE_API int stele_maps(void (*fn)(void *user,
				    const struct stele_mapping_info *info),
			 void *user);

#ifdef __cplusplus
}
#endif

#include "stele_loader.h"
#include "stele_tune.h"

#endif
