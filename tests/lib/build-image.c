/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build-image.c - what is built reads back, and is the same every time
 */
#include "lib/ops/build.h"
#include "tests/fixture/built.h"
#include "tests/device/fault.h"
#include "tests/fixture/fake.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_SIZE (UINT64_C(64) << 20)

static const uint8_t uuid[16] = "\x01\x02 of a build.";

static struct stele_build_opts options(void)
{
	return (struct stele_build_opts){
		.size = sizeof(struct stele_build_opts),
		.uuid = uuid,
		.time = 1700000000,
		.label = "test",
	};
}

/* Bytes that the build left on a device of memory; free() them. */
static void *build_bytes(struct fake *fake, const struct stele_build_opts *opts,
			 struct stele_build_report *report)
{
	struct stele_device *dev = test_memory(DEVICE_SIZE, 512, 0);
	void *bytes = malloc(DEVICE_SIZE);

	if (!bytes || stele_build_on(dev, &fake->source, "v1", opts, report))
		bail("cannot build");
	memcpy(bytes, stele_device_memory(dev), DEVICE_SIZE);
	stele_device_close(dev);
	return bytes;
}

static void test_one(const char *what, struct fake *fake,
		     const struct stele_build_opts *opts, uint32_t block)
{
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *dev = test_memory(DEVICE_SIZE, block, 0);
	int ret = stele_build_on(dev, &fake->source, "v1", opts, &report);

	is_int(0, ret, "%s: builds", what);
	is_uint(0, fake->opened, "%s: all files are closed", what);
	if (!ret)
		built_check(dev, fake, NULL, what);
	stele_device_close(dev);
}

static void test_shapes(void)
{
	struct stele_build_opts opts = options();
	struct fake fake;

	fake_init(&fake);
	test_one("no sample", &fake, &opts, 512);
	fake_add(&fake, "k", 0);
	test_one("one empty sample", &fake, &opts, 512);
	fake_release(&fake);
	fake_add(&fake, "k", 1);
	test_one("one byte", &fake, &opts, 4096);
	fake_release(&fake);
	fake_add(&fake, "a/k", 30 << 20);
	test_one("one large sample", &fake, &opts, 512);
	opts.memory_size = 1 << 20;
	test_one("larger than memory", &fake, &opts, 512);
	opts.memory_size = 0;
	fake_add_many(&fake, "b", 100, 300000);
	fake_add_many(&fake, "c", 100, 0);
	test_one("large and small", &fake, &opts, 512);
	fake_release(&fake);
	fake_add_many(&fake, "tiny/ones", 3000, 40);
	fake_add_many(&fake, "Tiny", 3000, 40);
	test_one("tiny ones", &fake, &opts, 4096);
	opts.order = STELE_ORDER_SOURCE;
	test_one("in source order", &fake, &opts, 512);
	opts.order = STELE_ORDER_SIZE;
	opts.granule = 4096;
	test_one("pages", &fake, &opts, 512);
	opts.granule = 0;
	fake.label_from = STELE_LABEL_FROM_NONE;
	test_one("without labels", &fake, &opts, 512);
	fake_add(&fake, "at the top", 12345);
	fake.label_from = 1;
	test_one("with labels all the same", &fake, &opts, 512);
	fake_release(&fake);
}

static void test_same_bytes(void)
{
	static const unsigned int jobs[] = {1, 3, 16};
	struct stele_build_opts opts = options();
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;
	uint8_t *first, *again;

	fake_init(&fake);
	fake_add_many(&fake, "a", 2000, 3000);
	fake_add_many(&fake, "b", 100, 200000);
	fake_add(&fake, "c/large", 9 << 20);
	first = build_bytes(&fake, &opts, &report);
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		opts.jobs = jobs[i];
		fake.backwards = i & 1;
		opts.memory_size = i == 1 ? 1 << 20 : 0;
		again = build_bytes(&fake, &opts, &report);
		ok(!memcmp(first, again, DEVICE_SIZE),
		   "the same bytes with %u jobs", jobs[i]);
		free(again);
	}
	opts.uuid = NULL;
	again = build_bytes(&fake, &opts, &report);
	ok(memcmp(first, again, DEVICE_SIZE) != 0, "but for another uuid");
	ok(memcmp(report.uuid, uuid, 16) != 0 && report.uuid[6] >> 4 == 4 &&
	   report.uuid[8] >> 6 == 2, "which is random, version 4");
	free(again);
	free(first);
	fake_release(&fake);
}

/* The plan's end is the end: highest byte written and a block, and size that suffices. */
static void test_exact_end(void)
{
	const struct stele_build_opts opts = options();
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *inner, *dev;
	const struct stele_fault_entry *log;
	struct fake fake;
	uint64_t end = 0, needed;
	size_t count;

	fake_init(&fake);
	fake_add_many(&fake, "a", 1000, 5000);
	dev = test_memory(DEVICE_SIZE, 512, 0);
	if (stele_device_open_fault(dev, NULL, 0, &dev) < 0)
		bail("no fault device");
	is_int(0, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "builds");
	needed = report.image_end;
	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		if (log[i].op == STELE_OP_WRITE &&
		    log[i].offset + log[i].size > end)
			end = log[i].offset + log[i].size;
	is_uint(needed - 4096, end,
		"the image ends where the plan says, a catalog's room before");
	stele_device_close(dev);

	dev = test_memory(needed, 512, 0);
	is_int(0, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "a device of that size will do");
	stele_device_close(dev);

	inner = test_memory(needed - 4096, 512, 0);
	memset(stele_device_memory(inner), 0xa5, needed - 4096);
	if (stele_device_open_fault(inner, NULL, 0, &dev) < 0)
		bail("no fault device");
	is_int(-ENOSPC, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "a block less will not");
	is_uint(0, stele_fault_count(dev), "nothing was written or read");
	stele_device_close(dev);
	fake_release(&fake);
}

/* Every byte behind the catalog, and of gaps, is as it was or zero. */
static void test_every_block(void)
{
	const struct stele_build_opts opts = options();
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *dev = test_memory(DEVICE_SIZE, 512, 0);
	uint8_t *bytes = stele_device_memory(dev);
	uint64_t touched = 0;
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "a", 1500, 2000);
	memset(bytes, 0xa5, DEVICE_SIZE);
	is_int(0, stele_build_on(dev, &fake.source, "v1", &opts, &report),
	       "builds over old bytes");
	built_check(dev, &fake, NULL, "over old bytes");
	for (uint64_t i = report.image_end; i < DEVICE_SIZE; i++)
		touched += bytes[i] != 0xa5;
	is_uint(0, touched, "nothing behind the end was touched");
	stele_device_close(dev);
	fake_release(&fake);
}

static void test_report(void)
{
	const struct stele_build_opts opts = options();
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *dev = test_memory(DEVICE_SIZE, 512, 0);
	struct fake fake;

	fake_init(&fake);
	fake_add(&fake, "a/1", 100);
	fake_add(&fake, "b/2", 200);
	is_int(0, stele_build_on(dev, &fake.source, "x", &opts, &report),
	       "builds");
	is_uint(2, report.sample_count, "samples");
	is_uint(300, report.payload_size, "payload");
	is_uint(2, report.class_count, "classes");
	/* tail: key 3, label 8, trailer 16 */
	is_uint(report.slots_size - 354, report.padding_size, "padding");
	is_uint(24 * report.run_count, report.table_size, "table");
	/* keys, two of order, column, names, digests, tree */
	is_uint(7 * 4096, report.sections_size, "sections");
	is_uint(0x200000 + 4096 * (2 + 7 + 1 + 2), report.image_end, "end");
	stele_device_close(dev);
	fake_release(&fake);
}

int main(void)
{
	plan_lazy();
	test_shapes();
	test_same_bytes();
	test_exact_end();
	test_every_block();
	test_report();
	return done();
}
