/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - formats of stele export: tar, WebDataset, TFRecord, LMDB
 *
 * What they cannot say is refused before anything is written, but for keys, which are refused
 * one by one.
 */
#ifndef STELE_CMD_TO_FORMAT_H
#define STELE_CMD_TO_FORMAT_H

#include <stdbool.h>

#include "stele.h"
#include "tar.h"

enum to_format {
	TO_TAR, /* bytes of a field, or of all without telling them apart */
	TO_WEBDATASET,
	TO_TFRECORD,
	TO_LMDB,
	TO_EXAMPLE, /* of TFRecord */
};

struct to_lmdb;

struct to {
	enum to_format format;
	const char *prefix; /* of keys */
	const char *field;  /* of records of bytes, and files: the one that is taken; NULL: the
			     * only one; of a tar archive all */
	int64_t time; /* of files */
	bool quiet;   /* no warnings */
	/* Bytes go here; of a tar archive through that. */
	tar_write_fn write;
	void *user;
	struct tar *tar;
	int fd; /* of LMDB, which writes it itself */
	struct to_lmdb *lmdb;
	struct stele_field fields[STELE_FIELDS_MAX];
	uint32_t field_count; /* 0 of a tar archive of all */
	uint32_t taken; /* index of `field` */
	uint8_t *out;	 /* owned; of TFRecord: what is not written yet */
	size_t held;
	uint64_t size;	 /* of this file, with that */
	uint64_t bytes;	 /* of all samples so far, or of the field that is taken */
	uint8_t *buffer; /* owned; of an Example */
	size_t example, room; /* bytes in it; for how many it has room */
	uint64_t rounded;     /* fields of it that lost something: a bit each */
	char last[STELE_KEY_SIZE_MAX + 1]; /* key of WebDataset, terminated */
	bool named[STELE_KEY_SIZE_MAX + 1]; /* by size: a sample has that much of it for a name */
};

/* One on its way. */
struct to_sample {
	const char *path;		 /* prefix and key, terminated */
	const uint8_t *data;		 /* of all fields */
	uint64_t size;
	const union stele_value *values; /* of each field */
};

/* What --to takes, by enum to_format; up to NULL. */
extern const char *const to_words[];
/* Return: NULL; what it has to be. */
const char *to_parse(const char *text, enum to_format *format);
/*
 * `format` is set, and what it needs. Return: 0; negative errno (said), -EOPNOTSUPP: fields or
 * keys that it cannot have. Release.
 */
int to_open(struct to *to, struct stele_dataset *ds);
void to_release(struct to *to);
/* In the order of keys. Return: NULL; why a key cannot be in it. */
const char *to_refusal(struct to *to, const char *key, size_t size);
/* Values for to_sample, one for each field. Return: 0; negative errno. */
int to_values(const struct to *to, const struct stele_sample *sample, union stele_value *values);
/* Of a record of bytes. */
const uint8_t *to_bytes(const struct to *to, const struct to_sample *sample, uint64_t *size);
/* Return: 0; -ENOMEM; -EINTR; what `write`, the tar and LMDB return. */
int to_put(struct to *to, const struct to_sample *sample);
/* Bytes of this file so far, but of LMDB. */
uint64_t to_size(const struct to *to);
/* When there are no more in this file, in any format. Return: as to_put(). */
int to_end(struct to *to);

/* ---- one file each ----------------------------------------------------------- */

/* The place of its first dot in the last component; NULL: none, or it is no key. */
const char *webdataset_dot(const char *path);
/* What a tensor's member is called, behind the key. Returns `name`. */
#define WEBDATASET_NPY_MAX (STELE_NAME_SIZE_MAX + 5)
const char *webdataset_npy(const struct stele_field *field, char name[WEBDATASET_NPY_MAX]);
/* What it is called behind the key, unless that has an extension for `data`. */
const char *webdataset_extension(const struct to *to, const struct stele_field *field,
				 char name[WEBDATASET_NPY_MAX]);
int webdataset_put(struct to *to, const struct to_sample *sample);
int tfrecord_put(struct to *to, const struct to_sample *sample);
int tfrecord_end(struct to *to);
#ifdef HAVE_LMDB
/* Checks all keys and sizes before it writes. Return: 0; negative errno (said). */
int lmdb_begin(struct to *to, struct stele_dataset *ds);
int lmdb_put(struct to_lmdb *lmdb, const struct to *to, const struct to_sample *sample);
int lmdb_end(struct to_lmdb *lmdb);
/* NULL is fine. What was not committed is lost. */
void lmdb_drop(struct to_lmdb *lmdb);
#else
#define lmdb_begin(to, ds)	    (-EOPNOTSUPP)
#define lmdb_put(lmdb, to, sample)  (-EOPNOTSUPP)
#define lmdb_end(lmdb)		    (-EOPNOTSUPP)
#define lmdb_drop(lmdb)		    ((void)(lmdb))
#endif

#endif
