/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted.h - the deleted samples of a segment in memory: read them, look up numbers
 *
 * Words as on the target, each with the deleted ones before it: so both directions of
 * ids <-> numbers are a binary search, and a set takes 24 bytes for each 64 numbers of
 * which one is deleted. Zeroed: none.
 */
#ifndef STELE_IMAGE_DELETED_H
#define STELE_IMAGE_DELETED_H

#include "lib/image/image.h"

struct stele_deleted_word {
	uint64_t index; /* of the first of 64 numbers, in words */
	uint64_t bits;	/* not 0 */
	uint64_t below; /* deleted ones before these */
};

struct stele_deleted {
	struct stele_deleted_word *words; /* owned; ascending */
	uint64_t word_count;
	uint64_t count; /* of deleted numbers */
};

/*
 * One list, and all of `ref`, whose segment has `sample_count` samples. `why` names what
 * failed. Release in any case.
 * Return: 0; -EBADMSG; -EUCLEAN; -ENOMEM; device errno.
 */
int stele_deleted_load_list(const struct stele_image *image,
			    const struct stele_catalog_list *list,
			    uint64_t sample_count, struct stele_deleted *out,
			    const char **why);
int stele_deleted_load(const struct stele_image *image,
		       const struct stele_catalog_ref *ref,
		       uint64_t sample_count, struct stele_deleted *out,
		       const char **why);
/* Of `count` strictly ascending numbers. Return: 0; -ENOMEM. */
int stele_deleted_make(const uint64_t *numbers, uint64_t count,
		       struct stele_deleted *out);
/* Idempotent on a zeroed struct. */
void stele_deleted_release(struct stele_deleted *deleted);

enum stele_deleted_op {
	STELE_DELETED_OR,
	STELE_DELETED_AND,
	STELE_DELETED_XOR,
	STELE_DELETED_ANDNOT, /* a without b */
};
/* `out` may be neither of them. Return: 0; -ENOMEM. */
int stele_deleted_combine(const struct stele_deleted *a,
			  const struct stele_deleted *b,
			  enum stele_deleted_op op, struct stele_deleted *out);

/* It will be looked up soon. */
void stele_deleted_prefetch(const struct stele_deleted *deleted, uint64_t number);
/* Is `number` deleted? `below` (may be NULL): how many are below it. */
bool stele_deleted_has(const struct stele_deleted *deleted, uint64_t number,
		       uint64_t *below);
/* The n-th number that is not deleted. */
uint64_t stele_deleted_live(const struct stele_deleted *deleted, uint64_t n);
/* All of them, ascending, malloced; NULL: no memory. */
uint64_t *stele_deleted_numbers(const struct stele_deleted *deleted);

#endif
