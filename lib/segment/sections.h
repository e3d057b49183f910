/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.h - everything of a segment but its slots
 *
 * Sections go out in the plan's order and must end exactly where the plan
 * said: a reader trusts the descriptor for that.
 */
#ifndef STELE_SEGMENT_SECTIONS_H
#define STELE_SEGMENT_SECTIONS_H

#include "lib/segment/pipeline.h"

/*
 * Write sections and both descriptors. Fills the descriptor's tree root and
 * schema digest. Return: 0; -ECANCELED; -ENOMEM; -EUCLEAN (not as planned: a
 * bug); errno of the device (logged).
 */
int stele_sections_write(struct stele_builder *builder, struct stele_plan *plan,
			 const struct stele_written *written,
			 struct stele_device *dev);

#endif
