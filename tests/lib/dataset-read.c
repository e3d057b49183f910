/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset-read.c - a one-shot read is one device read, where the page says
 *
 * Over all granules, logical blocks, a boundary, and several segments with
 * deletions; with transfers that fail, are short, flip a bit or go astray.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture/dataset.h"
#include "tests/tap.h"

/* Every sample, each checked against the log on its own. */
static void check_exact(const struct test_plan *plan, const char *what)
{
	struct test_dataset t;
	uint64_t wrong = 0, unexpected = 0;

	test_dataset_open(&t, plan);
	is_uint(t.count, stele_dataset_count(t.ds), "%s: samples", what);
	for (uint64_t id = 0; id < t.count; id++) {
		struct stele_sample sample;

		stele_fault_log_clear(t.dev);
		stele_dataset_read(t.ds, id, &sample);
		wrong += !test_is_sample(&t, id, &sample);
		unexpected += !test_is_issued(&t, &id, 1, false);
		stele_sample_release(&sample);
	}
	is_uint(0, wrong, "%s: all bytes, keys and labels", what);
	is_uint(0, unexpected, "%s: exactly the predicted reads", what);
	test_dataset_close(&t);
}

static void test_exact(void)
{
	static const uint32_t granules[] = {16, 64, 512, 4096};
	static const uint32_t blocks[] = {512, 4096};
	struct test_plan plan = {.samples = 150, .size_max = 9000};
	char what[64];

	for (unsigned int i = 0; i < 8; i++) {
		plan.granule = granules[i % 4];
		plan.logical_block = blocks[i / 4];
		snprintf(what, sizeof(what), "granule %u, blocks of %u",
			 plan.granule, plan.logical_block);
		check_exact(&plan, what);
	}
	plan.boundary = 16384;
	plan.granule = 64;
	check_exact(&plan, "boundary");
	plan.segments = 3;
	plan.delete_every = 3;
	check_exact(&plan, "boundary, three segments, deletions");
	plan.boundary = 0;
	plan.logical_block = 512;
	check_exact(&plan, "three segments, deletions");
	plan = (struct test_plan){.samples = 12, .size_max = 3000000};
	check_exact(&plan, "samples of several transfers");
}

/* The blocking transfer is split as the queue would be: not once too often. */
static void test_split(void)
{
	struct test_plan plan = {.samples = 12, .size_max = 3000000};
	struct test_read reads[64];
	struct test_dataset t;
	uint64_t largest = 0;
	unsigned int count;

	test_dataset_open(&t, &plan);
	for (uint64_t id = 1; id < t.count; id++)
		if (t.live[id].sample->size > t.live[largest].sample->size)
			largest = id;
	count = test_reads_of(&t, largest, reads, 64);
	ok(count > 3, "the largest takes %u reads", count);
	ok(count <= t.live[largest].sample->size / STELE_FILE_TRANSFER_SIZE_MAX + 2,
	   "and no more than it must");
	test_dataset_close(&t);
}

/* One read of `id` under one rule. */
static int read_with(struct test_dataset *t, uint64_t id,
		     struct stele_fault_rule rule, struct stele_sample *sample)
{
	int ret;

	stele_fault_log_clear(t->dev);
	rule.ops = 1 << STELE_OP_READ;
	rule.first = stele_fault_count(t->dev);
	stele_fault_set_rules(t->dev, &rule, 1);
	ret = stele_dataset_read(t->ds, id, sample);
	stele_fault_set_rules(t->dev, NULL, 0);
	return ret;
}

/* Damage or gone? The superblocks are asked, too. */
#define COPIES STELE_SUPERBLOCK_COPIES
/* And where none is one, their witnesses, and the other blocks at known places. */
#define WITNESSES 2
#define PLACES	  5

static void expect_failure(struct test_dataset *t, struct stele_fault_rule rule,
			   int wanted, size_t reads, const char *what)
{
	struct stele_sample sample;
	size_t count;

	is_int(wanted, read_with(t, 7, rule, &sample), "%s", what);
	is_int(wanted, sample.status, "%s: status", what);
	ok(!sample.data && !sample.key && !sample.buffer && sample.id == 7,
	   "%s: no bytes", what);
	stele_fault_log(t->dev, &count);
	is_uint(reads, count, "%s: reads", what);
	stele_sample_release(&sample);
	stele_sample_release(&sample);
}

/* A bit within the sample's bytes, whatever blocks are around it. */
static uint64_t bit_of(const struct test_dataset *t, uint64_t id)
{
	struct stele_extent extent = {.size = sizeof(extent)};

	stele_dataset_locate(t->ds, id, &extent);
	return (extent.offset % t->dev->limits.logical_block + 5) * 8 + 3;
}

static void test_faults(void)
{
	struct test_plan plan = {.samples = 60, .size_max = 9000};
	struct test_dataset t;
	struct stele_sample sample;
	struct stele_fault_rule flip = {.kind = STELE_FAULT_FLIP, .count = 1};

	test_dataset_open(&t, &plan);
	flip.arg = bit_of(&t, 7);
	expect_failure(&t,
		       (struct stele_fault_rule){.kind = STELE_FAULT_FAIL,
						 .count = 1,
						 .error = EREMOTEIO},
		       -EREMOTEIO, 1, "a failing read");
	is_int(0, read_with(&t, 7, flip, &sample), "a bit flips once");
	ok(test_is_sample(&t, 7, &sample), "the second read heals it");
	ok(test_log_has(&t.log, "2 sample 7 at offset"), "that is a warning");
	stele_sample_release(&sample);
	flip.count = 0;
	expect_failure(&t, flip, -EBADMSG, 2 + COPIES + WITNESSES, "a bit is always wrong");
	ok(test_log_has(&t.log, "1 sample 7 at offset"), "that is an error");
	ok(test_log_has(&t.log, "expected 0x"), "with both checksums");
	expect_failure(&t,
		       (struct stele_fault_rule){.kind =
							 STELE_FAULT_MISDIRECT,
						 .arg = 3 * 4096},
		       -EBADMSG, 2 + COPIES + WITNESSES + PLACES, "a misdirected read");
	expect_failure(&t, (struct stele_fault_rule){.kind = STELE_FAULT_LOSE},
		       -EBADMSG, 2 + COPIES + WITNESSES + PLACES, "a read that brings nothing");
	is_int(0,
	       read_with(&t, 7,
			 (struct stele_fault_rule){.kind = STELE_FAULT_SHORTEN,
						   .count = 1,
						   .arg = 512},
			 &sample),
	       "a short read goes on");
	ok(test_is_sample(&t, 7, &sample), "and brings the rest");
	stele_sample_release(&sample);
	is_int(-ERANGE, stele_dataset_read(t.ds, t.count, &sample), "no such id");
	is_int(-ERANGE, sample.status, "status too");
	is_int(-ERANGE, stele_dataset_read(t.ds, UINT64_MAX, &sample), "nor that");
	test_dataset_close(&t);
}

/* Damage on the device itself: any byte of a slot. */
static void test_damage(enum stele_verify verify)
{
	struct test_plan plan = {
		.samples = 30, .size_max = 700, .verify = verify};
	struct stele_sample sample;
	struct stele_extent extent = {.size = sizeof(extent)};
	struct test_dataset t;
	uint64_t seen = 0;
	int refused = 0;

	test_dataset_open(&t, &plan);
	stele_dataset_locate(t.ds, 20, &extent);
	for (uint64_t i = 0; i < extent.slot_size; i++) {
		struct stele_fault_rule rule = {.kind = STELE_FAULT_FLIP};
		int ret;

		rule.offset = extent.offset / 512 * 512;
		rule.size = 512;
		rule.arg = (extent.offset % 512 + i) * 8 + i % 8;
		stele_fault_set_rules(t.dev, &rule, 1);
		ret = stele_dataset_read(t.ds, 20, &sample);
		refused += ret == -EBADMSG;
		seen += ret == 0;
		stele_sample_release(&sample);
	}
	if (verify == STELE_VERIFY_NONE)
		ok(seen > 0, "checks off: damaged bytes are seen, nothing worse");
	else
		is_uint(extent.slot_size, refused, "any damaged byte: refused");
	test_dataset_close(&t);
}

static void test_digest(void)
{
	struct test_plan plan = {.samples = 300,
				 .size_max = 900,
				 .verify = STELE_VERIFY_DIGEST};
	struct test_dataset t;
	struct stele_sample sample;
	uint64_t wrong = 0;

	test_dataset_open(&t, &plan);
	for (uint64_t id = 0; id < t.count; id++) {
		stele_dataset_read(t.ds, id, &sample);
		wrong += !test_is_sample(&t, id, &sample);
		stele_sample_release(&sample);
	}
	is_uint(0, wrong, "all digests up to the root");
	/* As if another image's root had been pinned. */
	t.ds->snapshot.segments[0].descriptor.tree_root[3] ^= 1;
	is_int(-EBADMSG, stele_dataset_read(t.ds, 5, &sample), "another root");
	ok(!sample.data, "no bytes");
	test_dataset_close(&t);
}

/* A deleted list that lies: the id is live, the record never was a sample. */
static void test_void(void)
{
	struct test_sample samples[2] = {
		{.key = "a", .data = "x", .size = 1},
		{.key = "b", .data = "y", .size = 1, .gone = true}};
	struct test_segment segment = {.samples = samples, .count = 2};
	struct stele_device *dev = test_image_simple(&segment, NULL, 0, 0);
	struct stele_target target = {0};
	struct stele_sample sample;
	struct stele_dataset *ds;
	uint64_t failed = 0;

	for (int verify = STELE_VERIFY_NONE; verify <= STELE_VERIFY_CRC;
	     verify++) {
		if (verify == STELE_VERIFY_NONE &&
		    stele_dataset_create(dev, &target, NULL, &ds))
			bail("cannot open");
		ds->verify = verify;
		failed = 0;
		for (uint64_t id = 0; id < 2; id++) {
			failed += stele_dataset_read(ds, id, &sample) ==
				  -EUCLEAN;
			stele_sample_release(&sample);
		}
		is_uint(1, failed, "a void record is no sample (verify %d)",
			verify);
	}
	stele_dataset_close(ds);
}

int main(void)
{
	plan_lazy();
	test_exact();
	test_split();
	test_faults();
	test_damage(STELE_VERIFY_CRC);
	test_damage(STELE_VERIFY_NONE);
	test_digest();
	test_void();
	return done();
}
