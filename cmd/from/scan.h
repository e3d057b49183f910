/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - what a format sees of the scan: shards, places, samples
 *
 * A place says where bytes can be read when the image is written: in a shard, or in the
 * store, to which they were copied. A sample is one range of bytes, which is reported at
 * once, or a record, which is kept in the index and reported when all shards are scanned.
 */
#ifndef STELE_CMD_FROM_SCAN_H
#define STELE_CMD_FROM_SCAN_H

#include "from/source.h"
#include "from/input.h"
#include "from/record.h"
#include "from/span.h"
#include "from/version.h"
#include "store.h"

struct from_shard {
	char *path;
	const char *name; /* for messages and keys */
	/* Since it was first looked at. */
	bool seen, regular;
	enum input_compression compression;
	bool watched; /* it is a file: its version has to hold */
	bool torn;    /* it changed while it was scanned: its samples are lost */
	struct version version;
	int pipe;      /* owned: what it was first looked at through; -1: it can be opened again */
	uint64_t size; /* 0 of a pipe */
	int64_t changed; /* seconds; 0: unknown */
	struct lmdb *lmdb; /* owned; a snapshot that has to stay as it is, not the file */
};

/* Shard and offset in 64 bits. */
#define PLACE_SHARD_SHIFT 44
#define PLACE_OFFSET_MAX  ((UINT64_C(1) << PLACE_SHARD_SHIFT) - 1)
#define PLACE_STORE	  ((UINT64_C(1) << (64 - PLACE_SHARD_SHIFT)) - 1)
#define FROM_SHARDS_MAX	  PLACE_STORE

#define FROM_RECORD_SIZE_MAX ((size_t)256 << 20) /* of one that is parsed in memory */

struct from_scan;

/* What a sample is. */
enum from_kind {
	FROM_RECORDS, /* fields */
	FROM_BLOBS,   /* one range of bytes, the field of `struct from` */
	FROM_FILES,   /* one range of bytes, whose key is a path */
};

/* One row of the table. */
struct from_format {
	const char *name;
	/* Do files of this format begin so, decompressed? Up to FROM_HEAD_SIZE bytes. NULL:
	 * it has to be named. */
	bool (*detect)(const uint8_t *data, size_t size);
	/* Report the samples of one shard. Return: 0; negative errno (said). */
	int (*scan)(struct from_scan *scan);
	enum from_kind kind;
	bool verifies; /* samples, each by a checksum of its own: those before damage are sound */
	uint32_t options; /* enum from_options: those that mean something */
};
#define FROM_HEAD_SIZE 4096u

extern const struct from_format from_csv, from_datum, from_example, from_ffrecord, from_hdf5,
	from_jsonl, from_lmdb, from_manifest, from_mindrecord, from_npy, from_npz, from_recordio,
	from_tar, from_text, from_tfrecord, from_webdataset;

enum from_options {
	FROM_KEY = 1 << 0,
	FROM_PAYLOAD = 1 << 1,
	FROM_EXAMPLE = 1 << 2,
	FROM_DATUM = 1 << 3,
	FROM_DATABASE = 1 << 4,
	FROM_TYPES = 1 << 5,
	FROM_ARRAYS = 1 << 6,
};

/* Where keys come from: decided by the first sample. */
enum from_keys {
	FROM_KEYS_UNKNOWN,
	FROM_KEYS_GIVEN,
	FROM_KEYS_NUMBERS,
};

struct from {
	struct from_opts opts; /* columns: sorted by name */
	const struct from_format *format;
	struct from_shard *shards;
	size_t shard_count;
	struct input_first first; /* of a pipe */
	struct store store;	  /* bytes */
	struct store index;	  /* of records */
	struct record_fields fields;
	struct record_entry entry; /* that is at hand, after the scan */
	struct stele_field blob; /* the field of blobs */
	enum from_keys keys;
	bool typed[FROM_COLUMNS_MAX]; /* which of opts.columns were there */
	const char *missing; /* column that an option names, as long as none has it; NULL: none */
	uint64_t done, total; /* bytes of shards; done: atomic */
	bool complained;      /* atomic */
	bool torn;	      /* is any of the shards? */
	uint32_t tables;      /* with a header */
	bool unnamed;	      /* atomic: it was said that columns have no names */
	bool empty;	      /* is the one whose format was looked for? */
	struct from_span target;
	uint64_t replaced;  /* members of archives, by later ones */
	uint64_t unfit;     /* keys that are no path of a file, as tree_refusal() says */
	char unfit_key[STELE_KEY_SIZE_MAX + 1]; /* the first of them */
	bool members_share; /* of a tar: many have a name in common, as WebDataset's have */
	char paths[STELE_NAME_SIZE_MAX + 1]; /* a column that names files; "": none */
	const char *parser; /* option by which the first sample would be fields; NULL: none */
};

/* One shard, while it is read. */
struct from_scan {
	struct from *from;
	const struct stele_source_sink *sink;
	const struct from_shard *shard;
	uint64_t index; /* of the shard */
	struct input input;
	struct tar_reader *reader; /* of a tar archive */
	void *user;		   /* of the format */
	uint64_t reported; /* samples of this shard */
	uint64_t damages;  /* that were skipped */
};

/* ---- for formats ----------------------------------------------------------- */

/* Of bytes of the shard, which is read again only if it is neither compressed nor a pipe. */
bool from_is_plain(const struct from_scan *scan);
uint64_t from_place(const struct from_scan *scan, uint64_t offset);
/*
 * Begin to append to the store what the shard has at `offset`. Return: 0, *place of what is
 * appended next; errors of the store (said).
 */
int from_store(struct from_scan *scan, uint64_t offset, uint64_t *place);
/* Append to the store. Return: 0; errors of it (said). */
int from_append(struct from_scan *scan, const void *data, size_t size);
/* As tar does: below where it is unpacked, without "/" and "./" in front. */
const char *from_below(const char *path);

/* A key that is the shard's name and a number. */
#define FROM_NUMBER_KEY_MAX (STELE_KEY_SIZE_MAX + 32)
int from_number_key(const struct from_scan *scan, uint64_t number,
		    char key[FROM_NUMBER_KEY_MAX]);

/* Return: 1: it is one; 0: damage that is skipped; negative errno (said). */
int from_check_key(struct from_scan *scan, uint64_t offset, const char *key, size_t key_size);
/* A range of bytes that begins at `place`, with such a key. Return: 0; what the sink returned. */
int from_sample(struct from_scan *scan, const char *key, size_t key_size,
		uint64_t size, uint64_t place);
/* Return: 0, also if its key is damage that is skipped; negative errno (said). */
int from_record(struct from_scan *scan, const char *key, size_t key_size,
		const struct record *record);
/* Something that is no sample, but no damage either. */
int from_skip(struct from_scan *scan, enum stele_skip_reason reason,
	      const char *key, size_t key_size);

/* Is it one of Stele, which begins with zeros? Return: 0; negative errno (said). */
int from_no_image(const struct from_scan *scan);

/*
 * Something is wrong with the shard at `offset`, of its bytes when they are decompressed.
 * Return: 0: it is skipped, and reported; -EBADMSG, or -ETXTBSY if it has changed (said).
 */
int from_damaged(struct from_scan *scan, uint64_t offset, const char *format,
		 ...) __attribute__((format(printf, 3, 4)));
/*
 * Of an error of record_class(): the class of a sample, `what`, cannot be a name. Return: as
 * from_damaged(), or negative errno (said).
 */
int from_no_class(struct from_scan *scan, uint64_t offset, int error, const char *what);
/* A warning about it. */
void from_warn(struct from_scan *scan, uint64_t offset, const char *text);
/* After a negative errno of the input. Return: as from_damaged(), or that errno (said). */
int from_input_failed(struct from_scan *scan, int error);
/*
 * What `name` says is of two versions: the shard, or what goes with it. Return: 0: its samples
 * will be skipped; -ETXTBSY (said).
 */
int from_changed(struct from_scan *scan, const char *name);
/* The shard itself. Return: `error`. */
int from_cannot_read(struct from_scan *scan, int error);
/* It is not the shard's fault. Return: `error`. */
int from_failed(struct from *from, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The shard has more fields than an image. Return: -EOVERFLOW. */
int from_too_many(struct from_scan *scan);

/*
 * What it has is not what an option names (-EINVAL), or does not fit what it is appended to.
 * Return: `error`.
 */
int from_refused(struct from *from, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- for the source -------------------------------------------------------- */

/* `input` for the shard, which is looked at if it never was. Return: 0; negative errno. */
int from_shard_open(struct from *from, struct from_shard *shard, struct input *input);
void from_shard_seen(struct from_shard *shard, const struct stat *st);
/* `path` is a file of the source: is it the target? Return: 0; -EINVAL (said). */
int from_spare(struct from *from, const char *path, const struct stat *st);
int from_shard_descriptor(const struct from_shard *shard);
/* Is what lies at the descriptor still what the scan began with? Of any thread. */
bool from_shard_holds(const struct from_shard *shard, int fd);
/* What a sample that is no record came from. Return: 0; negative errno. */
int from_origin(const struct from *from, const struct stele_source_entry *entry,
		uint64_t *origin);
/* `path`: `source`, without a snapshot. Return: 0: there is no image; -EMEDIUMTYPE (said). */
int from_refuse_image(const char *source, const char *path);
/* Return: `error`. */
int from_shard_failed(struct from *from, const struct from_shard *shard, int error);
/* Of stele_source_ops; `user` is the struct from. */
int from_scan_all(void *user, const struct stele_source_sink *sink);
void from_describe(void *user, const struct stele_source_entry *entry, char *text,
		   size_t size);

#endif
