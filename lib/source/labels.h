/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.h - the fields that a directory's own directories give to a sample
 *
 * `label` is the class of a sample, `split` the part of the dataset that it belongs to
 * (train, val, test). Both are names of directories, in sorted order. The scan records
 * directories; which of them are classes and splits is decided when all were seen.
 */
#ifndef STELE_SOURCE_LABELS_H
#define STELE_SOURCE_LABELS_H

#include "lib/base/log.h"
#include "lib/source/source.h"

/* A directory that may turn out to be a class or a split. */
struct stele_label_dir {
	struct stele_label_dir *next;	/* created before this one */
	struct stele_label_dir *parent; /* the nearest that is recorded; NULL: none */
	uint32_t level;	 /* 1: right at the top */
	bool used;	 /* since the choice: holds samples at any depth */
	uint64_t samples; /* in it, and in none that is recorded below it */
	char *first; /* owned; the first key of these, in order; NULL: not known */
	char name[];
};

/* Sorted names of directories, and the field that they are the classes of. */
struct stele_label_names {
	const char **list; /* owned; the names are those of directories */
	uint32_t count;
};

struct stele_labels {
	uint32_t from; /* enum stele_label_from */
	struct stele_label_dir *dirs; /* owned; the latest first */
	uint64_t at_top; /* samples in none that is recorded */
	char *first_at_top; /* as of a directory */
	/* Since the choice. */
	uint32_t level; /* of classes, or STELE_LABEL_FROM_PARENT */
	uint32_t split_level; /* of splits, if there are any */
	bool has_label, has_split;
	struct stele_label_names classes, splits;
};

/*
 * A directory below `parent` (NULL: the top) at this level. *dir: itself, or what it
 * inherits if directories of that level do not matter. Return: 0; -ENOMEM.
 */
int stele_labels_record(struct stele_labels *labels,
			struct stele_label_dir *parent, uint32_t level,
			const char *name, struct stele_label_dir **dir);
/* A sample with this key lies in `dir`. */
void stele_labels_count(struct stele_labels *labels, struct stele_label_dir *dir,
			const char *key, size_t key_size);

#define STELE_LABELS_FIELDS_MAX 3 /* data, label, split: as many as there are */
/*
 * ops->schema, of a source with labels. `base`: of the snapshot that is appended to, or
 * NULL. Return: 0; -EOPNOTSUPP (labels would not mean what those of the base do);
 * -EOVERFLOW (more names than a section holds); both logged; -ENOMEM.
 */
int stele_labels_schema(struct stele_labels *labels, struct stele_field *fields,
			const struct stele_schema *base,
			const struct stele_log *log, struct stele_schema *out);
/* Of ops->open: by key, STELE_NO_CLASS where it has none. */
void stele_labels_values(const struct stele_labels *labels,
			 const struct stele_source_entry *entry,
			 union stele_value *values);
/* The first of these. */
int64_t stele_labels_label(const struct stele_labels *labels,
			   const struct stele_source_entry *entry);
/* Idempotent on a zeroed struct. */
void stele_labels_release(struct stele_labels *labels);

#endif
