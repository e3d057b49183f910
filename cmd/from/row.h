/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - a sample that is put together from values with names
 *
 * One of them may be its key: the column that --key names, else `key`. Without any the key is
 * that of the file and a number. All samples have a key, or none has. In a manifest one is the path
 * of a file, whose bytes become the field `data`.
 */
#ifndef STELE_CMD_FROM_ROW_H
#define STELE_CMD_FROM_ROW_H

#include "from/scan.h"

/* A hint: of a list of files, or a table, that begins with the first of them. */
#define FROM_HEADER                                                          \
	"the first line has to name the columns: put one such as 'path' or 'path,label' in " \
	"front, and --from=manifest takes the files"

struct row {
	struct from_scan *scan;
	uint64_t number;  /* in the shard */
	uint64_t damages; /* of the shard, when it began */
	struct record record;
	bool keyed;
	size_t key_size;
	char key[STELE_KEY_SIZE_MAX + 1];
};

enum row_role {
	ROW_FIELD,
	ROW_CLASS, /* if it is text: `label` and `split`, as of directories */
	ROW_NAMES, /* --type says that it is a class: all but integers are names */
	ROW_KEY,
	ROW_PAYLOAD,
	ROW_TEXT, /* whatever it looks like */
	ROW_REAL, /* an f64, though all are integers */
	ROW_NONE,
};

/* A name that a sample or header has. */
enum row_role row_role(struct from *from, const char *name, size_t size);
/* Does --type name it? */
bool row_has_type(const struct from *from, const char *name);
/* "label" or "split", of a name that is one of these but for its case; else NULL. */
const char *row_name_meant(const char *name);
/*
 * An option names a column that the shard, or the sample at `offset`, does not have. Return:
 * -EINVAL (said): none had it so far; else as from_damaged().
 */
int row_no_column(struct from_scan *scan, uint64_t offset, const char *name);
/* A manifest has no column of paths; headless: its first line names a file. Return: the same. */
int row_no_paths(struct from_scan *scan, uint64_t offset, bool headless);
/* When there are no more samples: was each there? Return: 0; -EINVAL (said). */
int row_check_columns(struct from *from);
/* Is it a manifest's? */
bool row_of_manifest(const struct from *from);

void row_begin(struct row *row, uint64_t offset);
/*
 * What is wrong with a value is damage at the row's offset, after which the row is left out.
 * Return: 0; negative errno (said).
 */
void row_key(struct row *row, const char *text, size_t size);
int row_payload(struct row *row, const char *path, size_t size);
int row_class(struct row *row, const char *name, size_t name_size, const char *text,
	      size_t size);
/* The same, of ROW_NAMES. */
int row_names(struct row *row, const char *name, size_t name_size, const char *text,
	      size_t size);
/* Is it the path of a file, from where the shard is? */
bool row_names_file(const struct from_shard *shard, const char *text, size_t size);
/*
 * Note that the column names files, if this value of the first row does: then the table may be
 * meant to be a manifest.
 */
void row_text(struct row *row, const char *name, size_t name_size, const char *text,
	      size_t size);
/* value->field is set here. */
int row_value(struct row *row, const char *name, size_t name_size,
	      enum record_family family, const struct record_value *value);
/* The same, of bytes that are copied to the store. */
int row_bytes(struct row *row, const char *name, size_t name_size,
	      enum record_family family, enum record_kind kind, const void *data, size_t size);
/* A list of integers or reals, which row_list() copies. */
struct row_list {
	enum record_kind kind;
	const void *elements; /* of 8 bytes */
	size_t count;
	bool large, negative; /* are there integers that no f64 is; below 0? */
};
/* One of its integers. */
void row_list_see(struct row_list *list, int64_t element);
int row_list(struct row *row, const char *name, size_t name_size, const struct row_list *list);
/* It is a sample, unless something was wrong. */
int row_end(struct row *row);

#endif
