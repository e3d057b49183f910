/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - small valid images for tests, made without the builder
 *
 * Straight from the encoders of format/ and the commit of lib/image/: one
 * sample after the other, blocking writes, everything in memory, everything
 * behind the high-water mark: free space is listed, and never used. An image
 * grows by test_image_segment(), test_image_snapshot() and
 * test_image_commit(); test_image_simple() does all for one segment. What
 * fails here is the test's fault: it bails.
 */
#ifndef STELE_TESTS_IMAGE_H
#define STELE_TESTS_IMAGE_H

#include "lib/image/digest.h"
#include "lib/image/image.h"
#include "lib/txn/space.h"
#include "tests/device/memory.h"
#include "tests/log.h"

#define TEST_SEGMENTS_MAX  8u
#define TEST_SNAPSHOTS_MAX 8u

struct test_sample {
	const char *key;
	const void *data;
	size_t size;
	int64_t label;	 /* where the segment has labels */
	bool gone;	 /* a void record: leave it out of every snapshot */
	uint32_t key_size; /* 0: strlen(key) */
};

/*
 * Samples in source order. They get numbers by slot size, and source order
 * within; or in source order if told so.
 */
struct test_segment {
	const struct test_sample *samples;
	uint64_t count;
	uint32_t granule;	  /* 0: 16 */
	uint32_t order;		  /* enum stele_slot_order */
	uint64_t boundary;	  /* 0: none */
	bool labels;		  /* an i64 field `label` behind `data` */
	const char *const *names; /* its class names, NULL at the end, or NULL */
	uint64_t id;		  /* 0: 0x5e60000 + index + 1 */
	uint64_t *numbers;	  /* filled if not NULL: by source ordinal */
};

/* What becomes of it; bytes is malloced. */
struct test_composed {
	struct stele_descriptor d; /* its view is not set */
	uint64_t descriptor_size;  /* of one copy */
	uint8_t *bytes;
};
/* Leaf digest of a whole record in memory: payload, then tail but the crc. */
void test_hash_record(struct stele_hash *hash, const void *slot,
		      uint64_t slot_size, const struct stele_record *record,
		      uint8_t digest[32]);
/* For the place `offset` on the target. Bails rather than fail. */
void test_segment_compose(const struct test_segment *segment, uint64_t id,
			  uint64_t offset, struct test_composed *out);

struct test_image {
	struct stele_image image;
	struct stele_catalog_segment segments[TEST_SEGMENTS_MAX];
	struct stele_catalog_snapshot snapshots[TEST_SNAPSHOTS_MAX];
	struct stele_catalog_ref refs[TEST_SNAPSHOTS_MAX * TEST_SEGMENTS_MAX];
	struct stele_digest_part parts[TEST_SEGMENTS_MAX];
	uint64_t *sizes[TEST_SEGMENTS_MAX]; /* owned: payloads, by number */
	struct stele_catalog_counts counts;
	uint64_t incompat;
	struct stele_extents free;
	uint64_t piece; /* segments are written in such pieces; 0: whole */
};

/* One segment of a snapshot, and the numbers that it leaves out. */
struct test_ref {
	uint32_t segment;
	const uint64_t *deleted;
	uint64_t deleted_count;
};

/* uuid, label, sizes and times that all test images begin with. */
void test_superblock(uint64_t image_size, struct stele_superblock *out);

/* Return of these: 0 or what the library said (fault tests want to know). */
int test_image_begin(struct test_image *t, struct stele_device *dev,
		     uint64_t image_size);
int test_image_segment(struct test_image *t, const struct test_segment *segment);
/* `refs` NULL: all segments whole. */
int test_image_snapshot(struct test_image *t, const char *name,
			const struct test_ref *refs, uint32_t count);
int test_image_commit(struct test_image *t);
/* Hands the device back; the image is on it. */
struct stele_device *test_image_end(struct test_image *t);

/* Go on with what is on a device; later snapshots can only hold new segments. */
int test_image_resume(struct test_image *t, struct stele_device *dev);

/* The draft that test_image_commit() commits. */
void test_image_draft(struct test_image *t, struct stele_catalog_draft *draft);

/*
 * All in one: one segment, one snapshot "v1" with `deleted` left out, on a
 * memory device of `size` bytes (0: 4 MiB). Bails when anything fails.
 */
struct stele_device *test_image_simple(const struct test_segment *segment,
				       const uint64_t *deleted,
				       uint64_t deleted_count, uint64_t size);

/* `count` samples of varied sizes and reproducible bytes; release with free(). */
struct test_sample *test_samples(uint64_t count, uint64_t size_max,
				 uint64_t seed);

#endif
