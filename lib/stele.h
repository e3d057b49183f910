/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele.h - datasets on raw block devices, read sample by sample
 *
 * The model. A *target* (block device or regular file) holds one *image*. An
 * image holds named, immutable *snapshots*; a snapshot is a sequence of
 * *samples* with ids 0 ... count-1. A sample is a *record*: one or more typed
 * *fields*, and a *key*, its name in the source. Samples are sorted into size
 * classes, so the whole index is a table of a few hundred runs: reading a sample
 * takes one device read, and the index none.
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
 * a Ceph RBD image; "?conf=FILE&user=ID&timeout=SECONDS" may follow the whole
 * target. "@NAME" after path or image selects a snapshot, "@sha256:HEX"
 * (64 digits) pins one by its digest. A word without a slash that `stele map`
 * published on this machine is a target, too, and takes precedence over a file of
 * that name.
 *
 * Threads. A dataset is immutable after open; any number of threads may use
 * it. A reader, a cursor and a view's prefetch belong to one thread at a
 * time; for concurrency, use more readers. A reader can move to another thread only
 * while nothing is in flight. After fork() a dataset still works in
 * the child; a reader, fetched view or transaction does not (-EOWNERDEAD): open a new one.
 *
 * Errors. Functions that can fail return 0 (or a count) or a negative errno;
 * they never set errno, print, or exit. Fixed meanings:
 *
 *	-EMEDIUMTYPE	no Stele image on the target
 *	-ENODATA	the target is shorter than its image: it was cut off
 *	-EINPROGRESS	an unfinished image: its build still runs, or was interrupted
 *	-EBADMSG	a checksum or digest does not match
 *	-EUCLEAN	an impossible structure that no checksum caught
 *	-ENOTUNIQ	the image has several versions: two superblocks of the same generation
 *			differ (a fork), and only what both branches share is read; or the
 *			newest generation is damaged. Nothing is written
 *	-EOPNOTSUPP	a feature, format version or backend that this library lacks
 *	-ENOTBLK	a target that is neither a block device nor a regular file
 *	-ENOENT		no such target, snapshot, key or mapping
 *	-EEXIST		the target has existing contents; force was not given
 *	-EBUSY		the target is mounted, held, or open elsewhere; changes faster
 *			than it can be read; for a reader: another thread's reads are in
 *			flight; for a dataset: it is in use
 *	-ENOSYS		the kernel lacks something; or /proc or /sys is not mounted, without
 *			which it cannot be told whether the target is in use
 *	-ENOSPC		the target is too small, or the filesystem that it lies on is full
 *	-EDQUOT		the storage behind the target is full, or a quota on it
 *	-ETIMEDOUT	the storage did not answer in time
 *	-ESHUTDOWN	the storage has fenced this client (a writer)
 *	-EOVERFLOW	more than an image can hold: of fields, names, snapshots, segments
 *	-ERANGE		id, field or buffer out of range
 *	-ESTALE		a mapping or snapshot is not what it was when it was opened; for a
 *			writer: another one has changed the image meanwhile, or has
 *			taken over, or its file was removed or cut off; nothing was
 *			published; or the file was moved, and keeps what was
 *	-EOWNERDEAD	the handle was made before a fork; a sample whose reader is closed
 *	-ECANCELED	the caller's progress callback asked to stop; RBD within exit()
 *	-ETXTBSY	a source file changed while being read; a file to be replaced is under
 *			a loop device
 *	-EINVAL		invalid argument (including unknown flags and bad syntax)
 *	-E2BIG		an options struct of a newer header sets something unknown here
 *
 * Options. Zero means the default for every field of every options struct, and
 * the struct may be NULL; use STELE_OPTS() so that `size` is set:
 *
 *	stele_dataset_open(target, &STELE_OPTS(stele_open_opts, .log = fn), &ds)
 *
 * Outputs. A struct that a function fills begins with `size`, which the caller sets; so
 * one of an older header gets what it has room for, and one of a newer header zeros in what
 * this library does not know. -EINVAL: size is not set, or below that of the first version.
 * Such functions return int. NULL is fine where the text says so. What the library hands to
 * callbacks has its size set by the library, and grows at its end, too.
 *
 *	struct stele_dataset_info info = {.size = sizeof(info)};
 *
 * Without a size, and never changed: struct stele_sample, stele_cursor_entry,
 * stele_directory_entry, stele_depth_round, stele_tune_point, stele_loader_source,
 * stele_destination, stele_key_ref, stele_query_value, stele_txn_value and union stele_value,
 * which come in arrays or one for each sample.
 *
 * Flags. STELE_DRY_RUN and STELE_FORCE are the same bits wherever they are known; a flag
 * that a function does not know is -EINVAL.
 *
 * This header contains conventions, datasets, one-shot reads, and iteration over keys.
 * Programs include only this header: it includes the other parts, at its end.
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

/*
 * Options as an lvalue, for one call. Name members in the order of the struct (C++20
 * requires it). In C++11 to 17, designators are a compiler extension.
 */
#ifdef __cplusplus
#define STELE_OPTS(type, ...) \
	(static_cast<const struct type &>(type{.size = sizeof(type), __VA_ARGS__}))
#else
#define STELE_OPTS(type, ...) \
	((struct type){.size = sizeof(struct type), __VA_ARGS__})
#endif

/* Limits of format version 1. Sizes in bytes. */
#define STELE_KEY_SIZE_MAX	4000 /* a key, without terminator */
#define STELE_NAME_SIZE_MAX	63   /* label, snapshot, field, mapping */
#define STELE_FIELDS_MAX	64
#define STELE_RANK_MAX		8    /* dimensions of a tensor */
#define STELE_DIGEST_SIZE	32
#define STELE_UUID_SIZE		16
#define STELE_SAMPLE_SIZE_MAX	((UINT64_C(1) << 47) - 1)

/** stele_version() - "MAJOR.MINOR.PATCH" of the loaded library. */
STELE_API const char *stele_version(void);

/**
 * stele_strerror() - text for an error code of this library
 * @error: a negative errno as returned by any function here
 *
 * The meaning in the table above if there is one, else that of strerror(). Static text,
 * or thread-local as in strerror(3).
 */
STELE_API const char *stele_strerror(int error);

/**
 * stele_errmsg() - why the last call of this thread failed
 *
 * One line without a newline: what failed, on what, and why. Every function that fails as
 * a whole with a negative errno sets it, whether it has a log or not; the status of a
 * single sample does not. Valid until the thread's next call
 * into this library; "" before the first failure.
 */
STELE_API const char *stele_errmsg(void);

/* ---- messages ---------------------------------------------------------- */

enum stele_log_level {
	STELE_LOG_ERROR = 1,
	STELE_LOG_WARNING,
	STELE_LOG_INFO,
};

/*
 * One line, no newline. May be called from any thread that uses the handle, and
 * from threads that a function starts, several at once. It must not call the library, but
 * for stele_strerror(): locks may be held, and stele_errmsg() would be of both.
 */
typedef void (*stele_log_fn)(void *user, enum stele_log_level level,
			     const char *line);

enum stele_flags {
	STELE_DRY_RUN = 1 << 0, /* check everything, write nothing */
	STELE_FORCE = 1 << 1,	/* do what is refused without it; each function says what */
};

/* ---- progress ---------------------------------------------------------- */

enum stele_phase {
	STELE_PHASE_SCAN = 1, /* the source */
	STELE_PHASE_COMPARE,  /* an append: with the base */
	STELE_PHASE_HASH,     /* a build with a UUID: the source */
	STELE_PHASE_WRITE,    /* samples */
	STELE_PHASE_SECTIONS, /* keys and other secondary data */
	STELE_PHASE_COMMIT,
	STELE_PHASE_COPY,
	STELE_PHASE_VERIFY,
	STELE_PHASE_DISCARD, /* free space, on the device */
};

/** How far a call is, in its present phase. Totals may grow; 0: not known, or not counted. */
struct stele_progress {
	size_t size;
	uint32_t phase; /* enum stele_phase */
	uint32_t reserved;
	uint64_t samples_done, samples_total;
	uint64_t bytes_done, bytes_total;
};

/*
 * Nonzero cancels the call, which returns -ECANCELED. Called at the beginning of a phase, then
 * every 100 ms or so; from any thread of the call, one at a time.
 */
typedef int (*stele_progress_fn)(void *user, const struct stele_progress *progress);

/* ---- datasets ---------------------------------------------------------- */

struct stele_dataset;

/** What to check when a sample is read; the same in all options. */
enum stele_verify {
	/* For a dataset: DIGEST if it is pinned, else CRC; for its users: as the dataset. */
	STELE_VERIFY_DEFAULT = 0,
	/*
	 * Only what memory safety requires. On RBD the same as CRC: nothing else
	 * reveals that a snapshot was removed.
	 */
	STELE_VERIFY_NONE,
	STELE_VERIFY_CRC,    /* the record's seeded CRC32C */
	/*
	 * CRC, SHA-256, and its path to the snapshot's digest; for a dataset also
	 * all data read from keys and other sections.
	 */
	STELE_VERIFY_DIGEST,
};

struct stele_open_opts {
	size_t size;
	stele_log_fn log;
	void *log_user;
	/*
	 * NULL: $STELE_BACKEND, else the best of "uring", "threads". Only by name: "iopoll",
	 * "hybrid", "sqpoll", "passthrough".
	 */
	const char *backend;
	uint32_t verify;     /* enum stele_verify: of one-shot reads, and default for all others */
	uint32_t reserved;
};

/**
 * stele_dataset_open() - open one snapshot of an image for reading
 * @target: see above; without "@..." the image must contain exactly one snapshot
 *
 * Recomputes the snapshot's digest from what it read. If the snapshot is pinned, or
 * mapped by a pin, everything read later is verified by digest, unless opts->verify
 * says otherwise. A mapped name opens the target that was mapped.
 *
 * Return: 0; -ENOENT, -EMEDIUMTYPE, -ENODATA, -EINPROGRESS, -EBADMSG, -EUCLEAN, -ENOTUNIQ,
 * -EOPNOTSUPP; -EINVAL (several snapshots and none named, or bad syntax);
 * -ESTALE (the device or the snapshot of a mapped name was replaced); errno of open(2).
 */
STELE_API int stele_dataset_open(const char *target,
				 const struct stele_open_opts *opts,
				 struct stele_dataset **out);

/**
 * stele_dataset_close() - after its readers, cursors, views and loaders. NULL is fine.
 *
 * Fields of samples are no longer accessible afterwards; one-shot samples can still be
 * released. Return: 0; -EBUSY (some of those are open; logged): nothing is closed. A forked
 * child inherits those of the parent: it closes them first, or leaves all to its exit.
 */
STELE_API int stele_dataset_close(struct stele_dataset *ds);

struct stele_dataset_info {
	size_t size;
	uint8_t uuid[STELE_UUID_SIZE];
	char label[STELE_NAME_SIZE_MAX + 1];
	char snapshot[STELE_NAME_SIZE_MAX + 1];
	uint8_t digest[STELE_DIGEST_SIZE];
	int64_t time;		 /* of the snapshot, seconds since 1970 */
	uint64_t generation;	 /* of the superblock that was read */
	uint64_t image_size;	 /* bytes of its target that the image may use */
	uint64_t used_size;	 /* bytes up to the allocator's high-water mark */
	uint64_t sample_count;	 /* live */
	uint64_t deleted_count;
	uint64_t payload_size;	 /* sum of the live samples' bytes */
	uint64_t slots_size;	 /* space of all slots, including deleted samples */
	uint64_t padding_size;	 /* of that, not records; including gaps before a boundary */
	uint64_t slot_size_max;	 /* the largest slot: bounds a read */
	uint64_t table_size;	 /* bytes of all run tables */
	uint32_t run_count;
	uint32_t segment_count;
	uint32_t granule;	 /* of the first segment */
	uint32_t field_count;
	uint32_t logical_block;	 /* of the target */
	uint32_t transfer_max;	 /* largest single read issued */
	char backend[16];	 /* "uring", "threads", ... */
};

/** Return: 0; -EINVAL. */
STELE_API int stele_dataset_info(const struct stele_dataset *ds,
				 struct stele_dataset_info *info);
STELE_API uint64_t stele_dataset_count(const struct stele_dataset *ds);

enum stele_type {
	STELE_TYPE_BYTES = 1,
	STELE_TYPE_UTF8 = 2,   /* well-formed, as build and verify check */
	STELE_TYPE_TENSOR = 3,
	STELE_TYPE_I64 = 4,
	STELE_TYPE_F64 = 5,
};

/* Of a tensor's elements, which are little-endian. */
enum stele_dtype {
	STELE_DTYPE_BOOL = 1, /* a byte */
	STELE_DTYPE_U8,
	STELE_DTYPE_I8,
	STELE_DTYPE_U16,
	STELE_DTYPE_I16,
	STELE_DTYPE_U32,
	STELE_DTYPE_I32,
	STELE_DTYPE_U64,
	STELE_DTYPE_I64,
	STELE_DTYPE_F16,
	STELE_DTYPE_BF16,
	STELE_DTYPE_F32,
	STELE_DTYPE_F64,
	STELE_DTYPE_C64, /* complex: two F32 */
	STELE_DTYPE_C128,
};

struct stele_field {
	size_t size; /* sizeof(struct stele_field), set by who hands one over to be filled */
	char name[STELE_NAME_SIZE_MAX + 1];
	uint32_t type;	      /* enum stele_type */
	uint32_t name_count;  /* of class names, for i64; 0: it has none */
	const char *const *names; /* of the values 0, 1, ...; any bytes but NUL */
	uint32_t dtype;	      /* enum stele_dtype; these three only of a tensor, else 0 */
	uint32_t rank;	      /* 0 to STELE_RANK_MAX */
	uint32_t dims[STELE_RANK_MAX]; /* the first may be 0: it differs from sample to sample */
	uint32_t names_damaged; /* 1: it has class names, but they are damaged; name_count is 0 */
};

/**
 * stele_dataset_field() - @out->size bytes of a description that lives as long as @ds
 * Return: 0; -ERANGE; -EINVAL.
 */
STELE_API int stele_dataset_field(const struct stele_dataset *ds,
				  uint32_t index, struct stele_field *out);
#define STELE_FIELD_TYPE_SIZE 128 /* more than the longest text, and its NUL */
/**
 * stele_field_type() - its type as text: "bytes", "utf8", "i64", "f64", "f32[?,3]"
 * Of a tensor: dtype, and dimensions, with '?' for one that differs from sample to sample;
 * "unknown" for what is none of the above. Any thread.
 * Return: @text.
 */
STELE_API char *stele_field_type(const struct stele_field *field,
				 char text[STELE_FIELD_TYPE_SIZE]);
/** Return: index; -ENOENT. */
STELE_API int stele_dataset_field_index(const struct stele_dataset *ds,
					const char *name);
/**
 * stele_dataset_class_name() - the name of value `value` of a field
 * @name: NUL-terminated, lives as long as @ds; may hold any byte but NUL
 * Return: 0; -ERANGE; -ENOENT (no name for that value); -EBADMSG (the names are damaged).
 */
STELE_API int stele_dataset_class_name(const struct stele_dataset *ds,
				       uint32_t field, int64_t value,
				       const char **name);

/**
 * stele_dataset_lookup() - key to id, using the keys section (reads the device)
 *
 * What look-ups learn is kept until the dataset is closed, up to 1 MB for a segment with
 * usual keys: the first of 1 M keys reads 14 blocks, later ones one, and the sample's own.
 * The sample found must itself have that key (else -EUCLEAN), or be damaged.
 * Return: 0; -ENOENT; -EINVAL (size 0 or over the limit); -EBADMSG, -EUCLEAN;
 * device errno.
 */
STELE_API int stele_dataset_lookup(struct stele_dataset *ds, const char *key,
				 size_t key_size, uint64_t *id);

/**
 * stele_dataset_digest() - the digest that a snapshot has of a sample
 *
 * A SHA-256 over its bytes, key and scalars, see stele-format(5), "Digests"; equal for equal
 * samples of all images with the same schema. Reads a section, not the sample. Return: 0;
 * -ERANGE; -EBADMSG, -EUCLEAN; device errno.
 */
STELE_API int stele_dataset_digest(struct stele_dataset *ds, uint64_t id,
				   uint8_t digest[STELE_DIGEST_SIZE]);

/** Location of a sample: for exact-I/O tests and other kinds of readers. */
struct stele_extent {
	size_t size;
	uint64_t offset;    /* of the slot, bytes on the target */
	uint64_t slot_size;
	uint64_t segment_id;
	uint64_t number;    /* within the segment; with segment_id, the seed of the checksum */
};

/** Arithmetic only, no I/O. Return: 0; -ERANGE; -EINVAL. */
STELE_API int stele_dataset_locate(const struct stele_dataset *ds, uint64_t id,
				   struct stele_extent *out);

/* ---- samples ----------------------------------------------------------- */

/**
 * struct stele_sample - one sample in memory
 *
 * Everything points into the buffer that was read into; valid until the
 * sample is released. If status is not 0, only id, tag and status are set. It never grows.
 *
 * Buffers of a reader or loader do not exist in a child after fork(): accessors return
 * -EOWNERDEAD for such a sample, and touching data or key raises SIGSEGV. The kernel would
 * otherwise copy them for each child, because they are registered, and writes by a device
 * could miss the child's copy. Results of stele_dataset_read() and views, and memory of the
 * caller's own, are available in a child. Nor do buffers exist once the reader is closed.
 */
struct stele_reader;

struct stele_sample {
	uint64_t id;
	uint64_t tag;	   /* the caller's, from submit */
	int status;	   /* 0 or negative errno: per sample, never per batch */
	uint32_t key_size;
	const void *data;  /* bytes of all fields, one after another */
	uint64_t size;
	const char *key;   /* not terminated */
	const void *tail;  /* for the accessors below */
	const struct stele_dataset *ds;
	void *buffer;	   /* for release */
	struct stele_reader *reader; /* that owns the buffer; NULL: none */
	uint64_t serial;   /* of that reader, for release */
	uint64_t reserved;
};

/**
 * Bytes of a bytes, utf8 or tensor field, never outside the sample; elements of a tensor
 * may begin at any byte, not aligned to their size. Return: 0;
 * -ERANGE; -EINVAL (another type); -EUCLEAN (the memory shown by a view was modified);
 * -EOWNERDEAD (see above).
 */
STELE_API int stele_sample_bytes(const struct stele_sample *sample,
				 uint32_t field, const void **data,
				 uint64_t *size);
/**
 * stele_sample_shape() - the dimensions of a tensor in one sample, its first worked out
 * Return: its rank, 0 to STELE_RANK_MAX; else as stele_sample_bytes(); -EUCLEAN (a length
 * that does not fit the shape).
 */
STELE_API int stele_sample_shape(const struct stele_sample *sample,
				 uint32_t field,
				 uint64_t dims[STELE_RANK_MAX]);
/** One scalar. Return: 0; -ERANGE; -EINVAL (another type); -EOWNERDEAD. */
STELE_API int stele_sample_i64(const struct stele_sample *sample,
			       uint32_t field, int64_t *value);
STELE_API int stele_sample_f64(const struct stele_sample *sample,
			       uint32_t field, double *value);

/**
 * stele_dataset_read() - one sample, one read (large ones are split), its own
 * buffer
 *
 * Any thread. Release with stele_sample_release().
 * Return: 0; -ERANGE; -EBADMSG; -EUCLEAN; -ENOMEM; device errno. The return
 * equals sample->status.
 */
STELE_API int stele_dataset_read(struct stele_dataset *ds, uint64_t id,
				 struct stele_sample *sample);
/**
 * stele_sample_release() - release what a sample owns, and zero it; idempotent
 *
 * For a reader's sample the same as stele_reader_release(), on the reader's thread, also once
 * the reader is closed; for those of a loader or view there is nothing to release.
 */
STELE_API void stele_sample_release(struct stele_sample *sample);

/**
 * stele_dataset_key() - id to key, from sections alone: of a sample that is damaged, too
 * @key: not terminated
 *
 * Takes a few reads; where the source was not in the order of its keys, a walk of all.
 * Return: 0; -ERANGE; -ENOMEM; -EBADMSG, -EUCLEAN; device errno.
 */
STELE_API int stele_dataset_key(struct stele_dataset *ds, uint64_t id,
				char key[STELE_KEY_SIZE_MAX], size_t *size);

/**
 * stele_dataset_column() - a scalar field of @count samples from @id on, from sections alone
 * @values: @count of int64_t or double, as the field's type is
 * Return: 0; -ERANGE (samples or field); -EINVAL (no scalar); -EBADMSG, -EUCLEAN, -ENOMEM;
 * device errno.
 */
STELE_API int stele_dataset_column(struct stele_dataset *ds, uint32_t field,
				   uint64_t id, uint64_t count, void *values);

/* Nonzero ends the stream; it is then the return value. */
typedef int (*stele_stream_fn)(void *user, const void *data, size_t size);
/**
 * stele_dataset_stream() - the bytes of one sample, piece by piece
 *
 * For samples too large for memory: at most 8 MiB are held. Pieces are handed
 * out before the checksum is known: until this returns 0 they may be corrupt.
 * Return: 0; what @fn returned; errors of stele_dataset_read().
 */
STELE_API int stele_dataset_stream(struct stele_dataset *ds, uint64_t id,
				   stele_stream_fn fn, void *user);

/**
 * stele_dataset_read_range() - up to @size bytes of one sample, from @offset on
 *
 * Any thread; @buffer is the caller's, and at most 8 MiB are held besides. The bytes are
 * as sure as those of stele_dataset_read(): checksum and digest are of whole samples, so all
 * of it is read, and only the part kept. With STELE_VERIFY_NONE (not on RBD) only the
 * record's end and the part itself are read, and nothing is checked.
 * @got: bytes, fewer than @size only at the end of the sample
 * Return: 0; errors of stele_dataset_read(), after which @buffer may hold anything;
 * -EINVAL (no buffer).
 */
STELE_API int stele_dataset_read_range(struct stele_dataset *ds, uint64_t id,
				       uint64_t offset, uint64_t size,
				       void *buffer, uint64_t *got);

/* ---- cursor over keys ---------------------------------------------------- */

struct stele_cursor;

/* It never grows. */
struct stele_cursor_entry {
	const char *key; /* valid until the next call */
	size_t key_size;
	uint64_t id;
	uint64_t size;	 /* bytes of the sample */
	uint64_t reserved[2];
};

/**
 * stele_cursor_open() - iterate over live keys in byte order, reading only sections
 * @prefix: only keys that begin with it; may be NULL
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
/**
 * stele_cursor_seek() - go on at the first key that is not less than @key; never back
 *
 * Reads as many blocks as the logarithm of the distance. Return: 0; -EINVAL (@key over
 * STELE_KEY_SIZE_MAX); errors of stele_cursor_next(), final like those.
 */
STELE_API int stele_cursor_seek(struct stele_cursor *cursor, const char *key,
				size_t key_size);
STELE_API void stele_cursor_close(struct stele_cursor *cursor);

/* ---- samples as files ---------------------------------------------------- */

/*
 * Keys as paths: what is before a slash is a directory. These are the names that an image
 * has where it is mounted, too, see stele_posix(): keys with a component that is empty, . or
 * .., or longer than 255 bytes are left out, and so are those that are directories as well.
 */
struct stele_directory;

/* It never grows. */
struct stele_directory_entry {
	const char *name; /* not terminated; valid until the next call */
	size_t name_size;
	uint64_t id, size; /* of a file: its sample, and the bytes of that */
	uint32_t is_directory;
	uint32_t reserved[5];
};

/**
 * stele_directory_open() - list a directory, in the byte order of keys
 * @path: no slash at either end; "": the top
 * Reads one section as it goes; what is below a directory is skipped.
 * Return: 0 (also: there is no such directory, which has no entries); -EINVAL (path over
 * STELE_KEY_SIZE_MAX); errors of stele_cursor_open().
 */
STELE_API int stele_directory_open(struct stele_dataset *ds, const char *path,
				   size_t path_size, struct stele_directory **out);
/** Threads and return values as of stele_cursor_next(). */
STELE_API int stele_directory_next(struct stele_directory *directory,
				   struct stele_directory_entry *entry);
STELE_API void stele_directory_close(struct stele_directory *directory);
/**
 * stele_directory_lookup() - what a path leads to
 * Without reading the sample. entry->name is left NULL. Return: 0; -ENOENT; errors of
 * stele_cursor_next().
 */
STELE_API int stele_directory_lookup(struct stele_dataset *ds, const char *path,
				     size_t path_size,
				     struct stele_directory_entry *entry);

#ifdef __cplusplus
}
#endif

#include "stele_reader.h"   /* many samples in flight, or by pointer */
#include "stele_image.h"    /* images: listed, built, verified */
#include "stele_backing.h"  /* files that no other may take the place of */
#include "stele_write.h" /* append, snapshots, diff, gc, resize, copy */
#include "stele_source.h"   /* images of what a program makes */
#include "stele_txn.h"      /* several changes at once */
#include "stele_mapping.h"  /* names of this machine */
#include "stele_loader.h"   /* batches in a random order */
#include "stele_query.h"    /* samples found by their fields, in SQL */
#include "stele_tune.h"     /* how deep a queue, by which backend */

#endif
