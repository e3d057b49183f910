/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_probe.h - can all samples of a plan be opened?
 *
 * Asked before what a target holds is given up: a file without read permission would
 * else be found when the old image is gone.
 */
#ifndef STELE_SEGMENT_PLAN_PROBE_H
#define STELE_SEGMENT_PLAN_PROBE_H

#include "lib/segment/plan.h"

/*
 * Where samples may be skipped, one is enough. Return: 0; 1 (all would be, which is reported, and
 * not allowed); -ECANCELED; -ENOMEM; what opening a sample returned (logged).
 */
int stele_plan_probe(struct stele_builder *builder,
		     const struct stele_plan *plan,
		     const struct stele_source *source);

#endif
