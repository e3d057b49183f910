/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment_layout.h - positions of the descriptor's tables in its stream
 *
 * Private to format/segment*.c. Counts are 32 bits and entries small, so that
 * no position can overflow, whatever a header says.
 */
#ifndef STELE_FORMAT_SEGMENT_LAYOUT_H
#define STELE_FORMAT_SEGMENT_LAYOUT_H

#include "format/segment.h"

struct descriptor_layout {
	uint64_t fields, runs, sections, filter, end;
};

static inline struct descriptor_layout
descriptor_layout(uint32_t field_count, uint32_t run_count,
		  uint32_t section_count, uint32_t filter_size)
{
	struct descriptor_layout l;

	l.fields = sizeof(struct stele_disk_descriptor);
	l.runs = l.fields +
		 (uint64_t)field_count * sizeof(struct stele_disk_field);
	l.sections = l.runs +
		     (uint64_t)run_count * sizeof(struct stele_disk_run);
	l.filter = l.sections +
		   (uint64_t)section_count * sizeof(struct stele_disk_section);
	l.end = l.filter + filter_size;
	return l;
}

static inline struct descriptor_layout
descriptor_layout_of(const struct stele_descriptor *d)
{
	return descriptor_layout(d->field_count, d->run_count,
				 d->section_count, d->filter_size);
}

#endif
