/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - samples out of archives and record files, for stele build and append
 *
 * A source of stele_source.h over one or more files, shards, in one of the formats of a
 * table; a directory is the library's own. Where bytes can be read again from a shard, only
 * their places are noted; what comes compressed or through a pipe is copied to a temporary
 * file. So memory is bounded, and a target is planned to the last byte in any case.
 */
#ifndef STELE_CMD_FROM_SOURCE_H
#define STELE_CMD_FROM_SOURCE_H

#include "stele.h"

#include <stdbool.h>
#include <stddef.h>

struct from;

#define FROM_COLUMNS_MAX 4096u /* of a table, most of which may be left out */

/* What becomes of a column of a table, other than what its values say. */
enum from_type {
	FROM_TYPE_CLASS,
	FROM_TYPE_TEXT,
	FROM_TYPE_F64,
	FROM_TYPE_NONE, /* it is left out */
};

struct from_column {
	char name[STELE_NAME_SIZE_MAX + 1];
	uint32_t type;
};

/* What they are called that --key and --payload name, without these. */
#define FROM_KEY_COLUMN	    "key"
#define FROM_PAYLOAD_COLUMN "path"

/* A hint at what is JSON, but not in lines. */
#define FROM_OBJECTS                                                         \
	"each line is a whole object of its own: \"jq -c . FILE\" makes such lines of objects, " \
	"\"jq -c '.[]' FILE\" of a list"

/* As given on the command line. */
struct from_opts {
	const char *format;  /* NULL: detected */
	const char *target;  /* that must be no file of the source; NULL: none */
	const char *key;     /* column that keys are taken from; NULL: "key", if there is one */
	const char *payload; /* column of a manifest that has paths; NULL: "path" */
	const char *database; /* of an LMDB environment; NULL: the one without a name */
	struct from_column columns[FROM_COLUMNS_MAX]; /* whose type is given */
	uint32_t column_count;
	const char *arrays; /* names of arrays and groups, with commas; NULL: all */
	bool example;	     /* TFRecords are tf.train.Example */
	bool datum;	     /* values of LMDB are Datum */
	bool skip;	     /* what is damaged, instead of failing */
};

/* Is there a format of this name? Return: NULL; what it has to be. */
const char *from_parse(const char *text, const char **format);
/* COLUMN:TYPE, one more. Return: NULL; what it has to be. */
const char *from_parse_type(const char *text, struct from_opts *opts);

/* The format that a regular file seems to have, of which nothing is said. NULL: none. */
const char *from_guess(const char *path);

/* Each name of a format. */
void from_each(void (*fn)(const char *name, void *user), void *user);

/*
 * `sources`: files, "-", or patterns of files with braces. *out: NULL if it is one
 * directory, for the library. Return: 0; negative errno (said).
 */
int from_open(char *const *sources, size_t count, const struct from_opts *opts,
	      struct from **out);
/* NULL is fine. */
void from_close(struct from *from);

/* The source; its `user` is the struct from. */
const struct stele_source_ops *from_ops(const struct from *from);

/* Has it said itself why it failed? */
bool from_complained(const struct from *from);
/* Are its samples put together of members of one name? NULL: no. */
bool from_groups(const struct from *from);
/* Members of archives for which later ones of the same name stand. NULL: none. */
uint64_t from_replaced(const struct from *from);
/* Warn of keys that extract refuses. NULL is fine. */
void from_warn_keys(const struct from *from);
/*
 * Hint at another format, or an option of this one, if what is taken may not be what was
 * meant. NULL is fine.
 */
void from_hint(const struct from *from);
/* Does --type go with it? NULL, a directory: no. */
bool from_has_types(const struct from *from);
/* During the scan: how many bytes of all shards are read. */
void from_progress(const struct from *from, struct stele_progress *progress);

#endif
