/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - all slots of a segment, by many threads at once
 *
 * Each thread takes the next few numbers, and carries their samples from the
 * source to the device: reading, checksums, digests and writing overlap across
 * threads, and writing within each. The first error stops all; whatever is in
 * flight then is waited for. Nothing here depends on who does what when.
 */
#ifndef STELE_SEGMENT_PIPELINE_H
#define STELE_SEGMENT_PIPELINE_H

#include "lib/segment/pack.h"

/* What is known only when all slots are written. */
struct stele_written {
	struct stele_spill digests; /* 32 bytes each, by number */
	struct stele_spill scalars; /* uint64_t by number, field after field */
	struct stele_spill voids;   /* struct stele_void, by number */
	uint64_t void_count;
};

/* Make room for digests and scalars, before anything is written. */
int stele_written_init(struct stele_written *written, struct stele_plan *plan);
void stele_written_release(struct stele_written *written);

/*
 * Write all slots, and zeros up to the block's end. The plan's descriptor has
 * its id and offset; its sums become those of what was stored. A dry run only opens the
 * samples: digests are zero.
 * Return: 0; -ECANCELED; -ETXTBSY, -ENOENT, -EACCES and the like (a source
 * file, logged); errno of the device (logged); -ENOMEM.
 */
int stele_pipeline_run(struct stele_builder *builder, struct stele_plan *plan,
		       const struct stele_source *source, struct stele_device *dev,
		       struct stele_written *written);

#endif
