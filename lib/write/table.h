/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - the samples of a source: keys and sizes, by ordinal
 *
 * Filled in any order, then sorted by key: from then on the place of a sample
 * is its ordinal, whatever order the source had. 16 bytes a sample and its
 * key, and 8 for its place where the source has places, in arrays that spill.
 */
#ifndef STELE_WRITE_TABLE_H
#define STELE_WRITE_TABLE_H

#include "lib/source/source.h"
#include "lib/write/spill.h"

struct stele_table {
	struct stele_spill keys;    /* bytes of all keys */
	struct stele_spill entries; /* struct table_entry, see table.c */
	uint64_t keys_size;
	uint64_t count;
	uint64_t payload_size; /* sum */
	bool has_places;       /* entry->place is kept; set before any is added */
};

void stele_table_init(struct stele_table *table, struct stele_spill_pool *pool);
void stele_table_release(struct stele_table *table);

/* Return: 0; -EFBIG (size over STELE_SAMPLE_SIZE_MAX); errors of grow. */
int stele_table_add(struct stele_table *table,
		    const struct stele_source_entry *entry);
/*
 * Sort, and drop what is there twice (a directory that changes while it is
 * read may show a name twice). Return: 0; -ECANCELED; errors of grow.
 */
int stele_table_sort(struct stele_table *table, int (*tick)(void *user),
		     void *user);
/* `ordinal` < count; the key lives as long as nothing is added. */
void stele_table_get(const struct stele_table *table, uint64_t ordinal,
		     struct stele_source_entry *entry);

#endif
