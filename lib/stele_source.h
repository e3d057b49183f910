/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_source.h - samples that a program makes; part of stele.h
 *
 * A *source* is a set of callbacks: stele_build_from() and stele_append_from() pull samples
 * from it as stele_build() and stele_append() do from a directory. They call scan() first,
 * which reports each sample's key and size; then schema(); then many threads open and read
 * samples in any order, some of them more than once (a build with a UUID and an append with
 * UPDATE read twice).
 *
 * Threads. scan() and schema() run in the calling thread, one after the other; scan() may
 * start threads of its own. Each thread that reads has a reader of its own, from
 * reader_new() to reader_free(); other callbacks may run in several threads at once.
 *
 * Errors. Callbacks return 0 or a negative errno, which ends the build: nothing is
 * published, and an image that was there is as it was. With SKIP_CHANGED a sample that
 * cannot be opened or read is left out instead, unless memory or descriptors ran out or it
 * breaks a rule of this page. What is read is held against the scan and the schema: other
 * sizes, texts that are not UTF-8 and tensors of another shape are errors (-ETXTBSY when a
 * sample has become longer or shorter, else -EINVAL).
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_SOURCE_H
#define STELE_SOURCE_H

#ifdef __cplusplus
extern "C" {
#endif

/** One field's value in one sample; its type says which member counts. */
union stele_value {
	uint64_t size; /* bytes, utf8, tensor: how many of the sample's bytes are its */
	int64_t i64;
	double f64;
};

struct stele_source_entry {
	size_t size;	    /* sizeof(struct stele_source_entry) */
	const char *key;    /* not terminated; any bytes but NUL */
	size_t key_size;    /* 1 to STELE_KEY_SIZE_MAX */
	uint64_t data_size; /* of all fields but scalars: what read() will deliver */
	uint64_t place;	    /* the source's own, handed back to open() and read() */
	int64_t changed;    /* last, in seconds since 1970, for QUICK; 0: not known */
};

/** What scan() hands samples to. The functions are thread-safe. */
struct stele_source_sink {
	size_t size;
	void *user;
	/* A sample, in any order; all of @entry is copied. Nonzero: return it from scan(). */
	int (*entry)(void *user, const struct stele_source_entry *entry);
	/*
	 * Something that is no sample. UNREADABLE, VANISHED, CHANGED: 0 leaves it out.
	 * Nonzero: return it from scan().
	 */
	int (*skip)(void *user, enum stele_skip_reason reason, const char *key,
		    size_t key_size, int error);
	/* Call it now and then, from scan()'s own thread. Nonzero: return -ECANCELED. */
	int (*tick)(void *user);
	uint32_t jobs; /* how many threads a scan may use */
	uint32_t reserved;
};

/** The fields of all samples, in order; each of fields[0].size bytes. */
struct stele_schema {
	size_t size;
	const struct stele_field *fields;
	uint32_t count; /* 1 to STELE_FIELDS_MAX */
	uint32_t reserved;
};

enum stele_source_flags {
	/* A key that is reported again is the same sample, else it is an error. */
	STELE_SOURCE_REPEATS = 1 << 0,
	/*
	 * Keys are paths: without schema(), which has to be NULL, samples get the fields
	 * that files of these paths below a directory have, labels as label_from says.
	 */
	STELE_SOURCE_PATHS = 1 << 1,
};

struct stele_source_ops {
	size_t size;	/* sizeof(struct stele_source_ops) */
	uint32_t flags; /* enum stele_source_flags */
	uint32_t reserved;
	/* Report all samples. */
	int (*scan)(void *user, const struct stele_source_sink *sink);
	/*
	 * May be NULL: one field `data` of type bytes. @base: the fields of the snapshot
	 * that is appended to, or NULL; those of @out must be the same, but for names, of
	 * which it may have others, in any order: values follow their names. What @out
	 * points to is the source's, and stays as long as the build takes.
	 */
	int (*schema)(void *user, const struct stele_schema *base,
		      struct stele_schema *out);
	/* May be NULL, both: then @reader below is @user. */
	int (*reader_new)(void *user, void **reader);
	void (*reader_free)(void *reader);
	/*
	 * Go to a sample and set the values of its fields, by index. They are zero before,
	 * but that the first field with bytes has all of them; may be NULL where that will
	 * do. A reader has at most one sample open.
	 */
	int (*open)(void *reader, const struct stele_source_entry *entry,
		    union stele_value *values);
	/*
	 * Up to @size of the sample's bytes, from @offset on, which counts on from 0 call by
	 * call. Return: how many, fewer than @size anywhere; 0 at the end; negative errno.
	 */
	int64_t (*read)(void *reader, const struct stele_source_entry *entry,
			uint64_t offset, void *data, size_t size);
	/* After a successful open(). May be NULL. */
	void (*close)(void *reader);
	/*
	 * May be NULL. For messages, after scan(): where a sample comes from, such as a file
	 * and an offset, as terminated text.
	 */
	void (*describe)(void *user, const struct stele_source_entry *entry, char *text,
			 size_t size);
	/*
	 * May be NULL, and has to be with REPEATS. After scan(): a key was reported again.
	 * Return: 1: @later, which may be given another place and data_size, stands for both;
	 * 0: it is an error; negative errno.
	 */
	int (*replace)(void *user, const struct stele_source_entry *earlier,
		       struct stele_source_entry *later);
};

/**
 * stele_build_from() - stele_build() of what a source has
 * @user: handed to scan(), schema() and reader_new()
 * @opts: label_from must be unset, unless the source has PATHS: the schema says what
 * fields there are
 *
 * Return: as stele_build(); what a callback returned; -EINVAL (a key, size, field or
 * sample that breaks a rule); -EEXIST (a key twice); -ENAMETOOLONG.
 */
STELE_API int stele_build_from(const struct stele_source_ops *ops, void *user,
			       const char *target,
			       const struct stele_build_opts *opts,
			       struct stele_build_report *report);
/**
 * stele_append_from() - stele_append() of what a source has
 * Return: as stele_append() and stele_build_from(); -EOPNOTSUPP (the fields are not those
 * of the snapshot that is appended to).
 */
STELE_API int stele_append_from(const struct stele_source_ops *ops, void *user,
				const char *target,
				const struct stele_append_opts *opts,
				struct stele_build_report *report);

#ifdef __cplusplus
}
#endif

#endif
