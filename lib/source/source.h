/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - where samples come from: a list of keys and sizes, then bytes
 *
 * A source is scanned once: it hands every entry to a sink, in any order and
 * from any thread, one call at a time. Afterwards any number of threads open
 * entries by key, each its own. The builder sorts by key, so neither threads
 * nor the order of a directory can show in an image.
 *
 * A source says what became of an entry that cannot be read; the builder
 * decides whether that fails the build.
 */
#ifndef STELE_SOURCE_SOURCE_H
#define STELE_SOURCE_SOURCE_H

#include <sys/types.h>

#include "lib/base/workers.h"
#include "lib/base/log.h"
#include "lib/image/snapshot.h"

struct stele_source;

struct stele_source_entry {
	const char *key; /* not terminated, any bytes but NUL */
	size_t key_size; /* 1 to STELE_KEY_SIZE_MAX */
	uint64_t size;	 /* bytes */
	uint64_t place;	 /* the source's own, from scan to open; see ops->schema */
	/*
	 * When its bytes or its attributes changed last, seconds since 1970; of
	 * an entry that a scan hands out. INT64_MAX: not known.
	 */
	int64_t changed;
};

struct stele_source_sink {
	void *user;
	/* One call at a time, any thread; `key` is the callee's to copy. */
	int (*entry)(void *user, const struct stele_source_entry *entry);
	/*
	 * What is no sample. UNREADABLE and VANISHED: 0 leaves it out, an
	 * errno ends the scan with it. Others cannot fail.
	 */
	int (*skip)(void *user, enum stele_skip_reason reason, const char *key,
		    size_t key_size, int error);
	/* From the thread that scans, every STELE_PROGRESS_MS; nonzero: stop. */
	int (*tick)(void *user);
	unsigned int jobs; /* threads, at least 1 */
};

/*
 * One entry while it is read, and one thread's: it may be opened again and
 * again. Zeroed is closed.
 */
struct stele_source_file {
	struct stele_source *source; /* NULL: closed */
	int handle; /* the source's own, from here on */
	uint64_t at, asked; /* bytes: read so far; asked for ahead */
	void *state; /* stays from entry to entry */
};

/* What samples are made of. All of it the source's. */
struct stele_source_schema {
	const struct stele_descriptor_field *fields;
	const struct stele_names *names; /* by field */
	uint32_t field_count;
};

struct stele_source_ops {
	/* Return: 0; -ENAMETOOLONG (logged); what the sink returned; errno. */
	int (*scan)(struct stele_source *source,
		    const struct stele_source_sink *sink);
	/*
	 * Return: 0; -ETXTBSY (not of that size any more, or no file);
	 * -ENOENT; -EACCES and the like.
	 */
	int (*open)(struct stele_source *source,
		    const struct stele_source_entry *entry,
		    struct stele_source_file *file);
	/* The next bytes; 0 at the end; negative errno. */
	ssize_t (*read)(struct stele_source_file *file, void *data,
			size_t size);
	void (*close)(struct stele_source_file *file);
	void (*release)(struct stele_source *source);

	/*
	 * Optional, all three: samples that are more than their bytes. Their
	 * fields, known after the scan, which then sets entry->place.
	 */
	void (*schema)(struct stele_source *source,
		       struct stele_source_schema *out);
	/* Of an open entry: as format/record.h has them, in host order. */
	void (*tail)(struct stele_source_file *file, uint64_t *ends,
		     uint64_t *scalars);
	/* A closed one is not used any more: release its state. */
	void (*forget)(struct stele_source_file *file);
};

/* Embedded at the head of each kind's own struct. */
struct stele_source {
	const struct stele_source_ops *ops;
	struct stele_log log;
};

/*
 * A directory: every regular file below it is a sample, its key the path below
 * the directory in raw bytes. `avoid_dev` and `avoid_inode` (0: none) is a file
 * to leave out: the target.
 * Return: 0; errno of open(2) (logged).
 */
int stele_source_open_directory(const char *path, uint64_t avoid_dev,
				uint64_t avoid_inode,
				const struct stele_log *log,
				struct stele_source **out);
/*
 * The same; what is left out is `target`, the path of a file that may lie in the
 * directory. NULL: none.
 */
int stele_source_open_beside(const char *path, const char *target,
			     const struct stele_log *log,
			     struct stele_source **out);
/*
 * The live samples of a snapshot, with its fields; a damaged one cannot be read
 * (-EBADMSG, -EUCLEAN; logged). Image and snapshot must outlive it. `memory`:
 * bytes that each thread reads with, at least STELE_RECORD_MEMORY_MIN.
 * Return: 0; -ENOMEM.
 */
int stele_source_open_snapshot(const struct stele_image *image,
			       const struct stele_snapshot *snapshot,
			       uint64_t memory, const struct stele_log *log,
			       struct stele_source **out);
/* NULL is fine. */
void stele_source_close(struct stele_source *source);

/*
 * A key as part of a message: control bytes, '\\', DEL and '\'' escaped, cut with
 * "..." when longer than `text`. Returns text.
 */
#define STELE_QUOTE_SIZE 512
char *stele_source_quote(const char *key, size_t key_size,
			 char text[STELE_QUOTE_SIZE]);

#endif
