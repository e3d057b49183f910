/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - the samples of a source: keys and sizes, by ordinal
 *
 * Filled in any order, then sorted by key: from then on the place of a sample
 * is its ordinal, whatever order the source had. 16 bytes a sample and its
 * key, and 8 for its place unless that is 0, in arrays that spill.
 */
#ifndef STELE_SEGMENT_TABLE_H
#define STELE_SEGMENT_TABLE_H

#include "lib/segment/spill.h"
#include "lib/source/source.h"

struct stele_table {
	struct stele_spill keys;    /* bytes of all keys */
	struct stele_spill entries; /* struct table_entry, see table.c */
	uint64_t keys_size;
	uint64_t count;
	uint64_t payload_size; /* sum */
	int64_t since;	       /* see STELE_MARK_SETTLED; set before any is added */
};

/* A few bits for each sample; from several threads if of different samples. */
enum stele_mark {
	STELE_MARK_SETTLED = 1 << 0,  /* last changed before table->since */
	STELE_MARK_KNOWN = 1 << 1,    /* leave it out: see stele_table_filter() */
	STELE_MARK_REPLACES = 1 << 2, /* stands for an older one of its key */
	STELE_MARK_PLACE = 1 << 3,    /* the table's own: its place is kept */
};
#define STELE_MARKS 4u /* bits */

void stele_table_init(struct stele_table *table, struct stele_spill_pool *pool);
void stele_table_release(struct stele_table *table);

/* data_size at most STELE_SAMPLE_SIZE_MAX. Return: 0; errors of grow. */
int stele_table_add(struct stele_table *table,
		    const struct stele_source_entry *entry);
/*
 * Sort. Of a key that is there twice *repeated is the second one's ordinal, else it
 * is the count. Return: 0; -ECANCELED; errors of grow.
 */
int stele_table_sort(struct stele_table *table, int (*tick)(void *user),
		     void *user, uint64_t *repeated);
/* Drop all but the first one of each key of a sorted table. */
void stele_table_drop_repeated(struct stele_table *table);
/*
 * Of a sorted table, from *repeated on, drop all but the last one of each key, as the source's
 * replace() says. *repeated: the ordinal of one that it does not take, or the count. Return: 0;
 * what replace() returned; -EINVAL (what it changed cannot be).
 */
int stele_table_replace(struct stele_table *table, const struct stele_source *source,
			uint64_t *repeated);
/*
 * `ordinal` < count; the key lives as long as nothing is added. Does not set
 * entry->changed.
 */
void stele_table_get(const struct stele_table *table, uint64_t ordinal,
		     struct stele_source_entry *entry);
bool stele_table_marked(const struct stele_table *table, uint64_t ordinal,
			enum stele_mark mark);
void stele_table_mark(struct stele_table *table, uint64_t ordinal,
		      enum stele_mark mark);
/* The first ordinal from `from` on whose key is not before `key`; or count. */
uint64_t stele_table_seek(const struct stele_table *table, uint64_t from,
			  const char *key, size_t key_size);
/* Drop the samples that are KNOWN; ordinals change, nothing else does. */
void stele_table_filter(struct stele_table *table);

#endif
