/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - where samples come from: the callbacks of stele_source.h, and who is behind them
 *
 * Directories and snapshots are sources like those of programs. fields.h takes
 * over what a source says of its fields, reader.h what it says of its samples:
 * nobody else calls schema(), open() and read().
 */
#ifndef STELE_SOURCE_SOURCE_H
#define STELE_SOURCE_SOURCE_H

#include "lib/base/workers.h"
#include "lib/base/log.h"
#include "lib/image/snapshot.h"

struct stele_source {
	struct stele_source_ops ops; /* in the size that is known here */
	void *user;
	void (*release)(void *user); /* NULL: it is the caller's */
	bool stored; /* in an image: to look at a sample is to read it, so a dry run does not */
	/*
	 * Optional: these places, which stay the caller's until the next call, will be opened
	 * one after the other, so that they can be read together. `window`: bytes of samples
	 * for which that pays, each with `window_entry` more. *stop is atomic.
	 */
	void (*expect)(void *reader, const uint64_t *places, uint64_t count, const bool *stop);
	uint64_t window, window_entry;
	/*
	 * One by one, by a program that means each of them: a key that is there twice, or
	 * that the base has when there is nothing to update, is -EEXIST.
	 */
	bool puts;
	bool keeps; /* but the base keeps its sample of such a key */
	/*
	 * Of directories: the class of that key, as open() says it. NULL: they are no classes.
	 * `label_told`: somebody said which of them are.
	 */
	int64_t (*label)(void *user, const struct stele_source_entry *entry);
	bool label_told;
	bool ends_short; /* a read() that returns less than it was asked for was the last */
};

/* Of a program. Return: 0; -EINVAL, -E2BIG (logged). */
int stele_source_from(const struct stele_source_ops *ops, void *user,
		      const struct stele_log *log, struct stele_source *out);

/*
 * The same source, whose keys are paths, with the labels of a directory; it owns the
 * given one. `from`: enum stele_label_from. Return: 0; -ENOMEM.
 */
int stele_source_label_paths(struct stele_source *source, uint32_t from,
			     const struct stele_log *log);

/*
 * Can an entry be a sample? Return: 0; -EINVAL, -ENAMETOOLONG (the key), -EFBIG; all
 * logged.
 */
int stele_source_check_entry(const struct stele_source_entry *entry,
			     const struct stele_log *log);

/* The label or split of a file that lies in no directory of one. */
#define STELE_NO_CLASS INT64_C(-1)

#define STELE_PATTERN_SIZE_MAX 4096 /* bytes of an exclude pattern */
/*
 * A directory: every regular file below it is a sample, its key the path below
 * the directory in raw bytes. `avoid_dev` and `avoid_inode` (0: none) is a file
 * to leave out: the target. Of `opts` count label_from, FOLLOW and exclude, which
 * must outlive it. Appended to a snapshot, it has the fields of that one.
 * Return: 0; errno of open(2) (logged).
 */
int stele_source_open_directory(const char *path, uint64_t avoid_dev,
				uint64_t avoid_inode,
				const struct stele_build_opts *opts,
				const struct stele_log *log,
				struct stele_source *out);
/*
 * The same; what is left out is `target`, the path of a file that may lie in the
 * directory. NULL: none.
 */
int stele_source_open_beside(const char *path, const char *target,
			     const struct stele_build_opts *opts,
			     const struct stele_log *log,
			     struct stele_source *out);
#define STELE_SNAPSHOT_MEMORY_MIN (128u << 10)
/*
 * The live samples of a snapshot, with its fields; a damaged one cannot be read
 * (-EBADMSG, -EUCLEAN; logged). Image and snapshot must outlive it. `memory`:
 * bytes that each thread reads with, at least STELE_SNAPSHOT_MEMORY_MIN.
 * Return: 0; -ENOMEM.
 */
int stele_source_open_snapshot(const struct stele_image *image,
			       const struct stele_snapshot *snapshot,
			       uint64_t memory, const struct stele_log *log,
			       struct stele_source *out);
/* Idempotent on a zeroed struct. */
void stele_source_close(struct stele_source *source);

/*
 * A key as part of a message: control bytes, '\\', DEL and '\'' escaped, cut with
 * "..." when longer than `text`. Returns text.
 */
#define STELE_QUOTE_SIZE 512
char *stele_source_quote(const char *key, size_t key_size,
			 char text[STELE_QUOTE_SIZE]);

#endif
