/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset.h - a dataset over a test image, and what it should hold
 *
 * Segments of random samples with every n-th number deleted, on memory or on a
 * file by a given backend, always below a fault device: tests break what passes
 * and read what was issued. What each id should be is worked out here from the
 * samples, and where it should lie from the run table, without the library.
 * What fails here is the test's fault: it bails.
 */
#ifndef STELE_TESTS_DATASET_H
#define STELE_TESTS_DATASET_H

#include "lib/base/random.h"
#include "lib/read/dataset.h"
#include "tests/device/fault.h"
#include "tests/image.h"

struct test_plan {
	uint32_t segments;	/* 0: 1 */
	uint64_t samples;	/* of each segment */
	uint64_t size_max;	/* of a sample */
	uint32_t granule;	/* 0: 16 */
	uint32_t logical_block; /* of memory; 0: 512 */
	uint64_t boundary;
	uint32_t delete_every;	/* n-th number of each segment; 0: none */
	const char *backend;	/* NULL: memory; else a file, through this */
	enum stele_verify verify;
};

/* What a sample of the dataset should be. */
struct test_live {
	const struct test_sample *sample;
	uint32_t segment; /* index */
	uint64_t number;
};

struct test_dataset {
	struct stele_dataset *ds;
	struct stele_device *dev; /* the fault device */
	struct test_live *live;	  /* by id */
	uint64_t count;
	struct test_sample *samples[TEST_SEGMENTS_MAX];
	struct test_log log;
	char path[512]; /* of the file, or empty */
};

/* The log of operations begins empty. */
void test_dataset_open(struct test_dataset *t, const struct test_plan *plan);
void test_dataset_close(struct test_dataset *t);

/* Is this exactly the sample with this id? Says what is not. */
bool test_is_sample(const struct test_dataset *t, uint64_t id,
		    const struct stele_sample *sample);

/* A read that must be issued: the blocks that a slot touches, or a part. */
struct test_read {
	uint64_t offset, size;
};
/* The reads of this sample, by the run table; returns their count. */
unsigned int test_reads_of(const struct test_dataset *t, uint64_t id,
			   struct test_read *reads, unsigned int max);
/*
 * Is what was issued since the log was cleared exactly the reads of these ids,
 * each once, nothing else, all queued or none? In any order.
 */
bool test_is_issued(const struct test_dataset *t, const uint64_t *ids,
		    uint64_t count, bool queued);

/* 0: the default of either; or the test ends. */
struct stele_reader *test_reader_open(const struct test_dataset *t,
				      uint64_t arena_size, uint32_t depth);
/*
 * Read these through a reader, as many at a time as it takes, and compare
 * each. Returns how many are wrong, lost or come twice.
 */
uint64_t test_read_all(const struct test_dataset *t,
		       struct stele_reader *reader, const uint64_t *ids,
		       uint64_t count);

/* `state` is not 0. */
static inline uint64_t test_random(uint64_t *state)
{
	return stele_random_next(state);
}
/* `count` ids of this dataset, repeats allowed. */
void test_random_ids(const struct test_dataset *t, uint64_t *ids,
		     uint64_t count, uint64_t seed);

#endif
