/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content_id.h - a segment's id, from all that its bytes will be made of
 *
 * For images that shall be reproducible. The id seeds all checksums, so that it must not
 * be that of a segment with other bytes, wherever that was written: on another target,
 * over this one, or from where a copy came. So it follows from the UUID, from layout
 * and keys, and from every sample; the source is read once more for that, before it is
 * written.
 */
#ifndef STELE_SEGMENT_CONTENT_ID_H
#define STELE_SEGMENT_CONTENT_ID_H

#include "lib/segment/plan.h"

/*
 * Return: 0; -ECANCELED; -ENOMEM; errors of grow. A sample that cannot be read counts as
 * one without bytes: what becomes of it, the writing tells.
 */
int stele_content_id(struct stele_builder *builder, struct stele_plan *plan,
		     const struct stele_source *source, uint64_t *id);

#endif
