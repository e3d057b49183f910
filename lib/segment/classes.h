/* SPDX-License-Identifier: Apache-2.0 */
/*
 * classes.h - labels from top directories
 *
 * A source looks like an ImageFolder when it has samples and each of them lies
 * in a directory below the top. The label of a sample is the place of
 * its top directory among all that hold samples, sorted by name; a sample right
 * at the top has the label -1. Samples of one directory are neighbours in key
 * order, so labels cost memory by directory, not by sample.
 *
 * On top of a base, names that it has keep their labels, and others come
 * behind them.
 */
#ifndef STELE_SEGMENT_CLASSES_H
#define STELE_SEGMENT_CLASSES_H

#include "lib/segment/base.h"
#include "lib/segment/table.h"

struct stele_class {
	uint64_t first;	   /* ordinal of its first sample */
	uint32_t name_size; /* the beginning of that sample's key; 0: none */
	uint32_t label;
	bool known; /* the base has that name */
};

struct stele_classes {
	struct stele_spill list;   /* struct stele_class, by ordinal */
	struct stele_spill sorted; /* uint32_t: place in `list`, of new ones */
	const struct stele_base *base; /* NULL: none */
	uint32_t known_count;	       /* names of the base */
	uint64_t group_count;	   /* of list */
	uint32_t count;		   /* of labels: those of the base, too */
	uint64_t stream_size;	   /* of the NAMES section */
};

void stele_classes_init(struct stele_classes *classes,
			struct stele_spill_pool *pool);
void stele_classes_release(struct stele_classes *classes);
/* Begin with the names of a base, which has labels. 0; -EOVERFLOW. */
int stele_classes_begin(struct stele_classes *classes,
			const struct stele_base *base);
/*
 * Find the classes of a sorted table. Return: 1; 0 (does not look like it, and
 * not `forced`); -EOVERFLOW (more names than a section holds); -ENOMEM and the like.
 */
int stele_classes_find(struct stele_classes *classes,
		       const struct stele_table *table, bool forced);
int64_t stele_classes_label(const struct stele_classes *classes,
			    uint64_t ordinal);
/* Name of a label below count; returns its size. Points into table or base. */
size_t stele_classes_name(const struct stele_classes *classes,
			  const struct stele_table *table, uint32_t label,
			  const char **name);

#endif
