/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - where every byte of an image will lie, before one is written
 *
 * Sizes -> records -> slots -> numbers -> runs -> sections -> the exact end.
 * Numbers go by slot size, the largest first: each slot is then aligned to the
 * spacing of its own class, so large samples begin on block boundaries without
 * padding. Within a slot size they go by the SHA-256 of the key: neighbours
 * share no directory, and nothing but the keys decides. Or, told so, numbers
 * are ordinals.
 *
 * Immutable once made, but for what the writer finds out: sums, digests, root.
 */
#ifndef STELE_SEGMENT_PLAN_H
#define STELE_SEGMENT_PLAN_H

#include "format/segment.h"
#include "lib/segment/builder.h"
#include "lib/segment/table.h"
#include "lib/source/fields.h"

/* Keys, order, digests, tree; a column and names for each field. */
#define STELE_PLAN_SECTIONS_MAX (4u + 2 * STELE_FIELD_COUNT_MAX)

struct stele_plan {
	struct stele_spill_pool pool;
	struct stele_table table;
	struct stele_table unread; /* what the scan could not look at: keys, or directories */
	struct stele_spill ordinals; /* uint64_t, by number */
	struct stele_spill numbers;  /* uint64_t, by ordinal */
	struct stele_spill runs;     /* struct stele_run */
	struct stele_fields fields; /* the source's, as the segment has them */

	/* The geometry; sums as if every sample were stored. */
	struct stele_descriptor descriptor;
	uint64_t descriptor_size; /* of one copy */
	struct stele_section sections[STELE_PLAN_SECTIONS_MAX];
	uint64_t sections_size;
};

/* Where the sample of a number comes from and goes to. */
struct stele_plan_sample {
	struct stele_source_entry entry;
	uint64_t ordinal;
	uint64_t offset; /* of its slot, from the segment's start */
	uint64_t slot_size;
};

void stele_plan_init(struct stele_plan *plan,
		     const struct stele_builder *builder);
/*
 * Fill the table, sorted, and take the fields, which have to be those of `base`
 * (NULL: none; or without segments). Return: 0; -ECANCELED; -EFBIG (a sample is
 * larger than the format allows); -EINVAL (a key that no sample may have); -EEXIST (one twice);
 * errors of scan, grow and stele_fields_take().
 */
int stele_plan_scan(struct stele_plan *plan, struct stele_builder *builder,
		    const struct stele_source *source,
		    const struct stele_base *base);
/*
 * Lay out what is in the table. Fills the report.
 * Return: 0; -ECANCELED; -EFBIG; -EOVERFLOW (too many runs); -ENOSPC and the
 * like of grow.
 */
int stele_plan_layout(struct stele_plan *plan, struct stele_builder *builder);
/* All three, without a base. Release also on errors. */
int stele_plan_make(struct stele_plan *plan, struct stele_builder *builder,
		    const struct stele_source *source);
void stele_plan_release(struct stele_plan *plan);

/* Only arithmetic and look-ups; any thread. */
void stele_plan_sample(const struct stele_plan *plan, uint64_t number,
		       struct stele_plan_sample *out);
/* Of a slot, from the segment's start. number == count: end of the slots. */
uint64_t stele_plan_offset(const struct stele_plan *plan, uint64_t number);

#endif
