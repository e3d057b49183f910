/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_check.h - what decoding a catalog is made of
 *
 * Private to format/catalog*.c. Each check relies on those before it in the
 * order of this file; the accessors are safe as soon as the counts match the
 * stream.
 */
#ifndef STELE_FORMAT_CATALOG_CHECK_H
#define STELE_FORMAT_CATALOG_CHECK_H

#include "format/catalog.h"

/* Segments, and free extents: bounds, order, overlap with each other. */
int stele_catalog_check_space(const struct stele_catalog *catalog,
			      const struct stele_superblock *sb,
			      const char **why);
/* Snapshots with their refs, notes and signatures. */
int stele_catalog_check_snapshots(const struct stele_catalog *catalog,
				  const struct stele_superblock *sb,
				  const char **why);

/* Parts of trees that are in use: they are one tree, whole. */
int stele_catalog_check_parts(const struct stele_catalog *catalog,
			      const char **why);

bool stele_catalog_names_unique(const struct stele_catalog *catalog);
bool stele_catalog_ids_unique(const struct stele_catalog *catalog);
/* Is each reference one of a snapshot, at least? */
bool stele_catalog_refs_used(const struct stele_catalog *catalog);

/*
 * Indices of a table in descending order of what `compare` says, without an allocation: equal
 * ones come together.
 */
typedef int stele_catalog_compare_fn(const struct stele_catalog *catalog, uint32_t a,
				     uint32_t b);
struct stele_catalog_heap {
	const struct stele_catalog *catalog;
	stele_catalog_compare_fn *compare;
	uint32_t left;
	uint16_t list[STELE_SEGMENTS_MAX];
};
void stele_catalog_heap_fill(struct stele_catalog_heap *heap,
			     const struct stele_catalog *catalog, uint32_t count,
			     stele_catalog_compare_fn *compare);
/* The next one, while some are left. */
uint32_t stele_catalog_heap_take(struct stele_catalog_heap *heap);

/* May an extent hold something: whole blocks, from DATA_OFFSET to high_water? */
bool stele_catalog_extent_ok(uint64_t offset, uint64_t size,
			     const struct stele_superblock *sb);
/* Is it apart from all segments, all free extents and the catalog? */
bool stele_catalog_extent_apart(const struct stele_catalog *catalog,
				const struct stele_superblock *sb,
				uint64_t offset, uint64_t size);

/* Raw entries, for what the accessors leave out: reserved bytes, signatures. */
void stele_catalog_get(const struct stele_catalog *catalog, uint64_t position,
		       void *data, size_t size);

#endif
