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

bool stele_catalog_names_unique(const struct stele_catalog *catalog);
bool stele_catalog_ids_unique(const struct stele_catalog *catalog);
/* Is each reference one of a snapshot, at least? */
bool stele_catalog_refs_used(const struct stele_catalog *catalog);

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
