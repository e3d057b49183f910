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
#include "lib/segment/classes.h"
#include "lib/segment/table.h"

/* Keys, order, digests, tree; a column and names for each field. */
#define STELE_PLAN_SECTIONS_MAX (4u + 2 * STELE_FIELD_COUNT_MAX)

/* Of a field's values 0, 1, ... */
struct stele_plan_names {
	uint32_t count;
	uint64_t stream_size;
};

#define STELE_PLAN_FIELDS_MAX  2u /* of what a directory makes */
#define STELE_PLAN_FIELD_LABEL 1u
#define STELE_PLAN_DATA_NAME   "data"
#define STELE_PLAN_LABEL_NAME  "label"

struct stele_plan {
	struct stele_spill_pool pool;
	struct stele_table table;
	struct stele_classes classes;
	struct stele_spill ordinals; /* uint64_t, by number */
	struct stele_spill numbers;  /* uint64_t, by ordinal */
	struct stele_spill runs;     /* struct stele_run */
	bool has_labels; /* the field behind the data is by classes */
	struct stele_source_schema schema; /* else the source's, if it has one */

	/* The geometry; sums as if every sample were stored. */
	struct stele_descriptor descriptor;
	uint64_t descriptor_size; /* of one copy */
	struct stele_descriptor_field fields[STELE_FIELD_COUNT_MAX];
	struct stele_plan_names names[STELE_FIELD_COUNT_MAX];
	struct stele_record_shape shape;
	struct stele_section sections[STELE_PLAN_SECTIONS_MAX];
	uint64_t sections_size;
};

/* Where the sample of a number comes from and goes to. */
struct stele_plan_sample {
	struct stele_source_entry entry;
	uint64_t ordinal;
	uint64_t offset; /* of its slot, from the segment's start */
	uint64_t slot_size;
	int64_t label;
};

void stele_plan_init(struct stele_plan *plan,
		     const struct stele_builder *builder);
/*
 * Fill the table, sorted. Return: 0; -ECANCELED; -EFBIG (a sample is larger than
 * the format allows); errors of scan and grow.
 */
int stele_plan_scan(struct stele_plan *plan, struct stele_builder *builder,
		    struct stele_source *source);
/*
 * Lay out what is in the table, with the fields and labels of `base` (NULL: as
 * the options and the source want them). Fills the report.
 * Return: 0; -ECANCELED; -EFBIG; -EOVERFLOW (too many runs or names); -ENOSPC
 * and the like of grow.
 */
int stele_plan_layout(struct stele_plan *plan, struct stele_builder *builder,
		      const struct stele_base *base);
/* All three. Release also on errors. */
int stele_plan_make(struct stele_plan *plan, struct stele_builder *builder,
		    struct stele_source *source);
void stele_plan_release(struct stele_plan *plan);

/* Only arithmetic and look-ups; any thread. */
void stele_plan_sample(const struct stele_plan *plan, uint64_t number,
		       struct stele_plan_sample *out);
/* Of a slot, from the segment's start. number == count: end of the slots. */
uint64_t stele_plan_offset(const struct stele_plan *plan, uint64_t number);
/* Name of a value that has one; returns its size. Lives as long as the plan. */
size_t stele_plan_name(const struct stele_plan *plan, uint32_t field,
		       uint32_t value, const char **name);

#endif
