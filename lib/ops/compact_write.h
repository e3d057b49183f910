/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact_write.h - the live samples of a snapshot, laid out anew as one segment
 *
 * The snapshot is the source, its own image the target: old slots are read
 * while the new segment is written, where nothing leads to yet. To prepare
 * reads sections and writes nothing; to write puts segment and snapshot into
 * the edit. The commit is the caller's.
 */
#ifndef STELE_OPS_COMPACT_WRITE_H
#define STELE_OPS_COMPACT_WRITE_H

#include "lib/segment/plan_write.h"

struct stele_compact {
	struct stele_builder *builder; /* the caller's */
	struct stele_image *image;     /* the caller's */
	struct stele_snapshot snapshot;
	struct stele_source source;
	struct stele_plan plan;
	struct stele_written written;
};

/*
 * Of the snapshot with this index in the catalog. Part of the builder's memory
 * goes to reading. Fills the report. Release in any case, before the image.
 * Return: 0; errors of stele_snapshot_load() and stele_plan_make().
 */
int stele_compact_prepare(struct stele_compact *compact,
			  struct stele_builder *builder,
			  struct stele_image *image, uint32_t index);
/*
 * A sample that is damaged fails it (-EBADMSG, -EUCLEAN; logged).
 * Return: 0; errors of stele_plan_write() and stele_edit_add_snapshot().
 */
int stele_compact_write(struct stele_compact *compact, struct stele_edit *edit,
			const char *name);
/* Idempotent on a zeroed struct. */
void stele_compact_release(struct stele_compact *compact);

#endif
