/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what the parts of verify share
 *
 * Private to verify*.c and check.c. A part returns 0 once it has checked everything that it
 * could, damaged or not; a negative errno only if verify as a whole must
 * stop. Damage is reported through stele_check_damage().
 */
#ifndef STELE_VERIFY_CHECK_H
#define STELE_VERIFY_CHECK_H

#include <pthread.h>

#include "lib/image/lists.h"
#include "lib/image/snapshot.h"

/* A deleted list, whatever refers to it. */
struct stele_check_list {
	const struct stele_list *known;
	struct stele_check_list *first; /* that it is the second one of; or NULL */
	struct stele_deleted deleted;	/* of this list alone; none until loaded */
	uint8_t digest[STELE_DIGEST_SIZE]; /* with those of `first`, as are .counted and: */
	int error;
	uint64_t next;	       /* of the words, up to where samples were seen */
	uint64_t payload_size; /* of those before it */
	const char *why;
	bool tried, reported;
	bool counted; /* is it in `voids`? */
};

/* A segment, whatever refers to it. */
struct stele_check_segment {
	struct stele_segment segment; /* owned; whole */
	bool wanted;
	bool sound;	/* it was loaded */
	bool has_sizes; /* of all its samples, and of its lists */
};

struct stele_check_ref {
	uint32_t snapshot;
	struct stele_check_list *list; /* NULL: nothing is deleted */
	uint64_t first_id;
};

struct stele_check {
	struct stele_image *image;
	const struct stele_verify_opts *opts;
	struct stele_verify_report *report; /* under lock */
	uint64_t bytes_total, samples_total; /* for progress; estimates */
	const char *within;   /* the newest snapshot that has the segment being checked, or NULL */
	bool segments_broken; /* one that could not be loaded; reported */
	/*
	 * Why checking has stopped: -EAGAIN: a commit was made meanwhile, so start
	 * over; errno of storage that does not answer. Under lock.
	 */
	int stopped;
	pthread_mutex_t lock;

	/* check_shared.c */
	struct stele_lists known;
	struct stele_check_list *lists;	      /* as in `known` */
	struct stele_check_segment *segments; /* as in the catalog */
	struct stele_check_ref *refs;	      /* by segment, then by snapshot */
	uint32_t *first_ref; /* of each segment, and one past the last */
};

/* Of one sample, filled while records are scanned, for the keys to compare. */
struct stele_check_entry {
	uint64_t key_hash;
	uint64_t size_and_flags; /* size of the payload, enum below */
};
#define STELE_ENTRY_SIZE_MASK ((UINT64_C(1) << 48) - 1)
#define STELE_ENTRY_NAMED     (UINT64_C(1) << 61) /* a key leads to it */
#define STELE_ENTRY_VOID      (UINT64_C(1) << 62)
#define STELE_ENTRY_DAMAGED   (UINT64_C(1) << 63)

/* A damaged record; reported once the keys have given it a name. */
struct stele_check_bad {
	uint64_t number;
	int error;
	char *key; /* malloced, or NULL */
	size_t key_size;
	char detail[192];
};

struct stele_segment_check {
	struct stele_check *check;
	struct stele_segment segment;
	uint32_t index;	  /* in the catalog */
	int64_t snapshot; /* that is asked about; -1: all */
	const struct stele_catalog_segment *where;
	struct stele_deleted voids; /* in every snapshot */
	bool void_any; /* no snapshot references it: any may be void */

	/* One pass: numbers first ... first + count - 1. */
	uint64_t first, count;
	struct stele_check_entry *entries;
	struct stele_check_bad *bad; /* under check->lock while scanning */
	size_t bad_count;

	/* Over all passes; under check->lock. */
	uint64_t payload_size, records_size;
	bool records_damaged;
	bool keys_damaged;
};

void stele_check_damage(struct stele_check *check,
			const struct stele_damage *damage);
/* The same for what is not a sample. */
void stele_check_report(struct stele_check *check, int error, const char *what,
			uint64_t offset, uint64_t size, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
/* Count bytes, report progress. Return: 0; -ECANCELED; why it has stopped. */
int stele_check_progress(struct stele_check *check, uint64_t bytes,
			 uint64_t blocks, uint64_t samples);
/*
 * Like stele_device_read(); but once the storage failed to answer, nobody waits for it any
 * more, and nothing on it is reported as damage.
 */
int stele_check_read(struct stele_check *check, void *data, uint64_t offset,
		     uint64_t size);
/* Report where [offset, offset + size) is not zero, or cannot be read. */
int stele_check_zero(struct stele_check *check, uint64_t offset, uint64_t size);

/*
 * Blocks of a section for a comparison, forward. A damaged one is NULL
 * and not logged: stele_verify_sections() has reported it, or it is reported here.
 */
struct stele_check_window {
	const struct stele_segment_check *sc;
	struct stele_section section;
	struct stele_disk_block *blocks;
	bool *good;
	uint64_t first, count, capacity;
};
/* Return: 0; -ENOENT (no such section); -ENOMEM. */
int stele_check_window_open(const struct stele_segment_check *sc, uint32_t type,
			    uint32_t field, uint64_t capacity,
			    struct stele_check_window *window);
const struct stele_disk_block *
stele_check_window_get(struct stele_check_window *window, uint64_t index);
/* Offset of that block on the target. */
uint64_t stele_check_window_offset(const struct stele_check_window *window,
				   uint64_t index);
void stele_check_window_release(struct stele_check_window *window);

/*
 * A record is damaged. Reported with its key once the keys have been read; at once
 * if there are too many.
 */
void stele_check_bad(struct stele_segment_check *sc, uint64_t number, int error,
		     const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Report damage of a sample, by place, and id in the snapshot asked about or the newest one. */
void stele_check_sample(const struct stele_segment_check *sc, uint64_t number,
			struct stele_damage *damage);

/* FNV-1a. */
uint64_t stele_check_key_hash(const char *key, size_t size);

/* check_shared.c: by the catalog; nothing is read. Return: 0; -ENOMEM. Release in any case. */
int stele_check_shared_init(struct stele_check *check);
void stele_check_shared_release(struct stele_check *check);
/* Load a list and its first one, unless tried before. Return: as stele_deleted_load(). */
int stele_check_list_load(struct stele_check *check,
			  struct stele_check_list *list);
/* What both of a loaded one delete. Return: 0; -ENOMEM. Release in any case. */
int stele_check_list_all(const struct stele_check_list *list,
			 struct stele_deleted *out);
/* Load it, and report it unless done before. Return: 0; -ENOMEM; -ECANCELED. */
int stele_check_list_report(struct stele_check *check,
			    struct stele_check_list *list);
/*
 * A snapshot made of loaded segments. Return: as stele_snapshot_check(); -ENODATA: one of
 * its segments is not loaded. Free it with the next function.
 */
int stele_check_snapshot_make(struct stele_check *check, uint32_t index,
			      struct stele_snapshot *out);
/* Have it know, too, which samples it deletes, not only how many. Return: 0; -ENOMEM. */
int stele_check_snapshot_deleted(const struct stele_check *check,
				 struct stele_snapshot *snapshot);
void stele_check_snapshot_free(struct stele_snapshot *snapshot);

/* verify_segment.c */
int stele_verify_segment(struct stele_check *check, uint32_t index,
			 int64_t snapshot);
/* verify_posix.c: once all segments were looked at. */
int stele_verify_posix(struct stele_check *check);
/* verify_sections.c: blocks of all sections; order; columns; then the tree. */
int stele_verify_sections(struct stele_segment_check *sc);
/* verify_tree.c: digests, tree, root. */
int stele_verify_tree(struct stele_segment_check *sc);
/* verify_records.c: the records of one pass. */
int stele_verify_records(struct stele_segment_check *sc);
/* verify_keys.c: keys against the entries of one pass. */
int stele_verify_keys(struct stele_segment_check *sc);
/* verify_unique.c: keys are unique in a snapshot. */
int stele_verify_unique(struct stele_check *check,
			const struct stele_snapshot *snapshot);

#endif
