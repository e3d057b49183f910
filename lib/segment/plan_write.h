/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_write.h - a plan becomes a segment of an image's next generation
 *
 * The one way to a new segment, for all who have one to write: space and id
 * from the transaction; slots, sections and descriptors; then its catalog has it.
 * Snapshots that refer to it, and the commit, are the caller's.
 */
#ifndef STELE_SEGMENT_PLAN_WRITE_H
#define STELE_SEGMENT_PLAN_WRITE_H

#include "lib/segment/pipeline.h"
#include "lib/txn/txn.h"

/*
 * `written` is the caller's, initialised. The report gets what became of the
 * samples. Return: 0; errors of stele_txn_allocate(), stele_pipeline_run(),
 * stele_sections_write() and stele_txn_add_segment().
 */
int stele_plan_write(struct stele_builder *builder, struct stele_plan *plan,
		     const struct stele_source *source, struct stele_txn *txn,
		     struct stele_written *written);

/* The numbers of the voids, ascending, into an array of written->void_count. */
void stele_written_voids(const struct stele_written *written,
			 uint64_t *numbers);

#endif
