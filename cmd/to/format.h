/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - formats of stele export that have fields: WebDataset, TFRecord
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
	TO_TAR, /* not here: it has no fields */
	TO_WEBDATASET,
	TO_TFRECORD,
	TO_EXAMPLE, /* of TFRecord */
};

struct to {
	enum to_format format;
	int64_t time; /* of files */
	/* Bytes go here; of a tar archive through that. */
	tar_write_fn write;
	void *user;
	struct tar *tar;
	struct stele_field fields[STELE_FIELDS_MAX];
	uint32_t field_count;
	uint8_t *out;	 /* owned; of TFRecord: what is not written yet */
	size_t held;
	uint8_t *buffer; /* owned; of an Example */
	size_t size, room;
	char last[STELE_KEY_SIZE_MAX + 1]; /* key of WebDataset, terminated */
};

/* One on its way. */
struct to_sample {
	const char *path;		 /* prefix and key, terminated */
	const uint8_t *data;		 /* of all fields */
	const union stele_value *values; /* of each field */
};

/* Return: NULL; what it has to be. */
const char *to_parse(const char *text, enum to_format *format);
/* `format` is set. Return: 0; -EOPNOTSUPP (said): fields that it cannot have. Release. */
int to_open(struct to *to, const struct stele_dataset *ds);
void to_release(struct to *to);
/* In the order of keys. Return: NULL; why a key cannot be in it. */
const char *to_refusal(struct to *to, const char *key, size_t size);
/* Values for to_sample, one for each field. Return: 0; negative errno. */
int to_values(const struct to *to, const struct stele_sample *sample, union stele_value *values);
/* Return: 0; -ENOMEM; what `write` and the tar return. */
int to_put(struct to *to, const struct to_sample *sample);
/* When there are no more, in any format. Return: as to_put(). */
int to_end(struct to *to);

/* ---- one file each ----------------------------------------------------------- */

/* The place of its first dot in the last component; NULL: none, or it is no key. */
const char *webdataset_dot(const char *path);
int webdataset_put(struct to *to, const struct to_sample *sample);
int tfrecord_put(struct to *to, const struct to_sample *sample);
int tfrecord_end(struct to *to);

#endif
