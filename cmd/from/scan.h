/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - what a format sees of the scan: shards, places, samples
 *
 * A place says where bytes can be read when the image is written: in a shard, or in the
 * store, to which they were copied. A sample without fields is one range of bytes; one
 * with fields is a record in the store, which has the place of each field's bytes.
 */
#ifndef STELE_CMD_FROM_SCAN_H
#define STELE_CMD_FROM_SCAN_H

#include "from/source.h"
#include "from/input.h"
#include "from/record.h"
#include "from/store.h"

#include <sys/types.h>

struct from_shard {
	char *path;
	const char *name; /* for messages and keys */
	/* Since it was first looked at. */
	bool seen, regular;
	enum input_compression compression;
	dev_t dev;
	ino_t inode;
	uint64_t size; /* 0 of a pipe */
	struct timespec modified;
	int64_t changed; /* seconds; 0: unknown */
};

/* Shard and offset in 64 bits. */
#define PLACE_SHARD_SHIFT 44
#define PLACE_OFFSET_MAX  ((UINT64_C(1) << PLACE_SHARD_SHIFT) - 1)
#define PLACE_STORE	  ((UINT64_C(1) << (64 - PLACE_SHARD_SHIFT)) - 1)
#define FROM_SHARDS_MAX	  PLACE_STORE

struct from_scan;

/* What a sample is. */
enum from_kind {
	FROM_RECORDS, /* fields */
	FROM_BLOBS,   /* one range of bytes */
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
};
#define FROM_HEAD_SIZE 4096u

extern const struct from_format from_tar, from_tfrecord, from_webdataset;

struct from {
	struct from_opts opts;
	const struct from_format *format;
	struct from_shard *shards;
	size_t shard_count;
	struct input_first first; /* of a pipe */
	struct store store;
	struct record_fields fields;
	uint64_t done, total; /* bytes of shards; done: atomic */
	bool complained;      /* atomic */
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

/* Of bytes of the shard, which is read again only if it is neither compressed nor a pipe. */
bool from_is_plain(const struct from_scan *scan);
uint64_t from_place(const struct from_scan *scan, uint64_t offset);
/* Bytes of the store. */
static inline uint64_t from_stored(uint64_t offset)
{
	return PLACE_STORE << PLACE_SHARD_SHIFT | offset;
}

/* Return: 0; what the sink returned. */
int from_sample(struct from_scan *scan, const char *key, size_t key_size,
		uint64_t size, uint64_t place);
int from_record(struct from_scan *scan, const char *key, size_t key_size,
		const struct record *record);
/* Something that is no sample, but no damage either. */
int from_skip(struct from_scan *scan, enum stele_skip_reason reason,
	      const char *key, size_t key_size);

/*
 * Something is wrong with the shard at `offset`, of its bytes when they are decompressed.
 * Return: 0: it is skipped, and reported; -EBADMSG (said).
 */
int from_damaged(struct from_scan *scan, uint64_t offset, const char *format,
		 ...) __attribute__((format(printf, 3, 4)));
/* The shard itself. Return: `error`. */
int from_cannot_read(struct from_scan *scan, int error);
/* The store. Return: `error`. */
int from_cannot_keep(struct from_scan *scan, int error);
/* It is not the shard's fault. Return: `error`. */
int from_failed(struct from *from, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
