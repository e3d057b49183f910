/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog_layout.h - positions of the catalog's tables in its stream
 *
 * Private to format/catalog*.c. Counts are 32 bits and entries small, so that
 * no position can overflow, whatever a header says.
 */
#ifndef STELE_FORMAT_CATALOG_LAYOUT_H
#define STELE_FORMAT_CATALOG_LAYOUT_H

#include "format/catalog.h"

struct catalog_layout {
	uint64_t segments, snapshots, refs, free, signatures, notes, end;
};

static inline struct catalog_layout
catalog_layout(const struct stele_catalog_counts *counts)
{
	struct catalog_layout l;

	l.segments = sizeof(struct stele_disk_catalog);
	l.snapshots = l.segments + (uint64_t)counts->segments *
				sizeof(struct stele_disk_catalog_segment);
	l.refs = l.snapshots + ((uint64_t)counts->snapshots + counts->deleted) *
				sizeof(struct stele_disk_snapshot);
	l.free = l.refs + (uint64_t)counts->refs *
				sizeof(struct stele_disk_ref);
	l.signatures = l.free + (uint64_t)counts->free *
				sizeof(struct stele_disk_free);
	l.notes = l.signatures + (uint64_t)counts->signatures *
				sizeof(struct stele_disk_signature);
	l.end = l.notes + counts->notes_size;
	return l;
}

#endif
