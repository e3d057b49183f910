/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted.h - deleted lists in memory: read them, look up numbers
 */
#ifndef STELE_IMAGE_DELETED_H
#define STELE_IMAGE_DELETED_H

#include "lib/image/image.h"

/*
 * The list of `ref`, whose segment has `sample_count` samples: ref->deleted_count
 * numbers, malloced; NULL on errors. `why` names what failed.
 * Return: 0; -EBADMSG; -EUCLEAN; -ENOMEM; device errno.
 */
int stele_deleted_load(struct stele_image *image,
		       const struct stele_catalog_ref *ref,
		       uint64_t sample_count, uint64_t **numbers,
		       const char **why);

/* How many of `count` ascending numbers are below `number`. */
uint64_t stele_deleted_below(const uint64_t *numbers, uint64_t count,
			     uint64_t number);

/*
 * For who looks up more than a few: the same in constant time. `words` of 64 numbers
 * each take a quarter of a byte for each of `sample_count` numbers; free() them. NULL: no memory.
 */
struct stele_deleted_word {
	uint64_t bits;	/* the deleted ones of 64 numbers */
	uint64_t below; /* deleted ones before these */
};
struct stele_deleted_word *stele_deleted_words(const uint64_t *numbers,
					       uint64_t count,
					       uint64_t sample_count);

/* The union of two disjoint ascending lists, malloced; NULL: no memory. */
uint64_t *stele_deleted_merge(const uint64_t *a, uint64_t a_count,
			      const uint64_t *b, uint64_t b_count);

#endif
