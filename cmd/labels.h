/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labels.h - do the paths of files show the classes of the samples that they are?
 *
 * Whoever builds an image of these files takes classes from directories. A class that no
 * directory of its sample has is lost then, or becomes another one.
 */
#ifndef STELE_CMD_LABELS_H
#define STELE_CMD_LABELS_H

#include <stdbool.h>

#include "stele.h"

struct label {
	uint32_t index;
	struct stele_field field;
	const char **sorted; /* owned; its names */
	uint64_t unlike;     /* samples */
	char *first;	     /* owned, escaped; the key of one of them */
};

/* Fields whose classes paths seem to show. Zero is none yet. */
struct labels {
	struct label list[STELE_FIELDS_MAX];
	uint32_t count;
};

/*
 * Do they, by a few samples? Then it is one more. Return: 1; 0: they do not; negative errno: that
 * cannot be told.
 */
int labels_add(struct labels *labels, struct stele_dataset *ds, uint32_t index,
	       const struct stele_field *field);
/* A sample that is written as a file. From any thread. */
void labels_check(struct labels *labels, const struct stele_sample *sample);
/* The same of one of which only this is at hand. */
void labels_check_key(struct labels *labels, struct stele_dataset *ds, uint64_t id,
		      const char *key, size_t key_size);
/* Warn of those that they did not show. Return: were there any? */
bool labels_warn(const struct labels *labels);
void labels_release(struct labels *labels);

#endif
