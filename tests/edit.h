/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit.h - small images that are changed through edits, for tests
 *
 * Segments come from tests/image.h's encoders, not from the builder; digests
 * from what lies on the device. Nothing is kept but the image and the edit, so
 * that a test goes on with whatever a crash has left.
 */
#ifndef STELE_TESTS_EDIT_H
#define STELE_TESTS_EDIT_H

#include "lib/txn/edit.h"
#include "tests/image.h"

struct test_edit {
	struct stele_image image;
	struct stele_edit edit;
	uint64_t piece; /* segments are written in such pieces; 0: whole */
};

/* Return of all: 0 or what the library said. End in any case. */
int test_edit_create(struct test_edit *t, struct stele_device *dev,
		     uint64_t image_size);
int test_edit_load(struct test_edit *t, struct stele_device *dev);
/* The device stays the caller's. */
void test_edit_end(struct test_edit *t);

/* A segment of the next generation, id as the library gives it. */
int test_edit_segment(struct test_edit *t, const struct test_sample *samples,
		      uint64_t count, uint64_t *id);
/*
 * A snapshot of whole segments, less in the last of them the numbers given;
 * count of samples and digest are worked out.
 */
int test_edit_snapshot(struct test_edit *t, const char *name,
		       const uint64_t *ids, uint32_t count,
		       const uint64_t *deleted, uint64_t deleted_count);
/* Drop what nothing refers to, as gc does. */
void test_edit_collect(struct test_edit *t);

#endif
