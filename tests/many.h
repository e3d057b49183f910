/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many.h - a snapshot as years of appends leave it, and are two the same?
 *
 * Segments of all granules and orders, with and without a boundary; samples
 * that were deleted, replaced by a later segment, or void.
 */
#ifndef STELE_TESTS_MANY_H
#define STELE_TESTS_MANY_H

#include "lib/read/dataset.h"
#include "tests/image.h"

#define MANY_SEGMENTS 5u
#define MANY_EACH     200u

struct many {
	uint32_t segments;
	struct test_sample *samples[MANY_SEGMENTS];
	uint64_t numbers[MANY_SEGMENTS][MANY_EACH];
};

/* A whole image of one snapshot "v1"; the last segment replaces the first. */
void many_make(struct many *m, struct stele_device *dev, uint64_t size,
	       uint64_t seed);
void many_release(struct many *m);

/* Open what a device holds, which goes with it. `name` NULL: the only one. */
struct stele_dataset *many_open(struct stele_device *dev, const char *name);

/*
 * Is `b` what `a` is, by key, fields, names and digests, in one segment and
 * with no deletions? Is the image of `b` sound?
 */
void many_compare(struct stele_dataset *a, struct stele_dataset *b,
		  const char *what);

#endif
