/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_check.h - what decoding a descriptor is made of
 *
 * Private to format/segment*.c. Each check relies on those before it in the
 * order of this file; the accessors are safe as soon as the counts match the
 * stream.
 */
#ifndef STELE_FORMAT_SEGMENT_CHECK_H
#define STELE_FORMAT_SEGMENT_CHECK_H

#include "format/segment.h"

/* Bytes of one copy: whole blocks. */
uint64_t stele_descriptor_size(const struct stele_descriptor *d);

int stele_descriptor_check_fields(const struct stele_descriptor *d,
				  const char **why);
int stele_descriptor_check_runs(const struct stele_descriptor *d,
				const char **why);
int stele_descriptor_check_sections(const struct stele_descriptor *d,
				    const char **why);

/* Raw entries, for what the accessors leave out: reserved bytes. */
void stele_descriptor_get(const struct stele_descriptor *d, uint64_t position,
			  void *data, size_t size);

#endif
