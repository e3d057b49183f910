/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.h - from a sorted table to numbers, runs and sections
 *
 * The steps of stele_plan_make() behind the scan, in this order.
 */
#ifndef STELE_SEGMENT_LAYOUT_H
#define STELE_SEGMENT_LAYOUT_H

#include "lib/segment/plan.h"

/* Padding, in hundredths of the records, that a granule may cost. */
#define STELE_PADDING_PERCENT 2u
/* Of files, for 4096, which kernels before 6.4 mount, too: padding is read with its sample. */
#define STELE_POSIX_PADDING_PERCENT 10u

/* Does the one that was asked for suit the target? Return: 0; -EINVAL (logged). */
int stele_layout_check_granule(const struct stele_builder *builder);
/*
 * Choose the granule and sum up. Return: 0; -EINVAL, as above; -EFBIG.
 */
int stele_layout_granule(struct stele_plan *plan,
			 struct stele_builder *builder);
/* Give each ordinal its number, both ways. */
int stele_layout_numbers(struct stele_plan *plan,
			 struct stele_builder *builder);
/* Runs over the numbers, not yet with their places. */
int stele_layout_runs(struct stele_plan *plan, struct stele_builder *builder);
/* Sections, descriptors, sizes, and the places of the runs. */
int stele_layout_segment(struct stele_plan *plan,
			 struct stele_builder *builder);

#endif
