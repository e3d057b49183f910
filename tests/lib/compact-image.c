/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact-image.c - a snapshot laid out anew beside itself
 *
 * Same samples; the old snapshot stays, and so does every byte that a
 * superblock leads to; what fails leaves the image as it was.
 */
#include "lib/ops/compact.h"
#include "lib/txn/intent.h"
#include "lib/txn/txn.h"
#include "tests/device/fault.h"
#include "tests/fixture/many.h"
#include "tests/device/memory.h"
#include "tests/fixture/rich.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ops/build.h"

#define SIZE (UINT64_C(64) << 20)

static struct test_log messages;

/* The bytes of a device as another one, which a dataset then owns. */
static struct stele_dataset *look(struct stele_device *dev, const char *name)
{
	struct stele_device *copy = test_memory(SIZE, 512, 0x5a);

	if (stele_device_read(dev, stele_device_memory(copy), 0, SIZE) < 0)
		bail("cannot read a device");
	return many_open(copy, name);
}

struct run {
	struct stele_build_opts opts;
	struct stele_build_report report;
	struct stele_extents used; /* before */
};

static int keep_used(struct run *run, const struct stele_txn *edit)
{
	int ret = 0;

	for (uint32_t i = 0; i < edit->used.count && !ret; i++)
		ret = stele_extents_add(&run->used, edit->used.list[i].offset,
					edit->used.list[i].size);
	return ret;
}

/* Compact "v1" as "v2"; the device stays the caller's. */
static int compact(struct run *run, struct stele_device *dev)
{
	struct stele_builder builder;
	struct stele_txn writer = {0};
	int ret;

	test_log_init(&messages);
	run->opts.size = sizeof(run->opts);
	run->opts.time = 1700000000;
	run->opts.note = "laid out anew";
	run->opts.log = messages.log.fn;
	run->opts.log_user = messages.log.user;
	ret = stele_builder_init(&builder, &run->opts, STELE_DRY_RUN, &run->report);
	if (!ret)
		ret = stele_txn_on_device(&writer, dev, &messages.log);
	if (!ret)
		ret = keep_used(run, &writer);
	writer.time = run->opts.time;
	if (!ret)
		ret = stele_compact_on(&writer, &builder, "v1");
	if (!ret)
		ret = stele_txn_snapshot(&writer, "v2", run->opts.note, NULL);
	if (!ret)
		memcpy(run->report.digest,
		       stele_txn_find(&writer, "v2")->info.digest,
		       STELE_DIGEST_SIZE);
	if (!ret)
		ret = stele_txn_publish(&writer, run->opts.time);
	writer.borrowed = true;
	stele_txn_release(&writer);
	stele_intent_end(dev);
	stele_builder_release(&builder);
	return ret;
}

/* What was in use before has the bytes that it had. */
static void check_untouched(const struct run *run, const uint8_t *before,
			    struct stele_device *dev, const char *what)
{
	const uint8_t *after = stele_device_memory(dev);
	unsigned int changed = 0;

	for (uint32_t i = 0; i < run->used.count; i++) {
		const struct stele_catalog_free *e = &run->used.list[i];

		changed += memcmp(before + e->offset, after + e->offset,
				  e->size) != 0;
	}
	is_uint(0, changed, "%s: what was in use is untouched", what);
}

static uint8_t *bytes_of(struct stele_device *dev)
{
	uint8_t *bytes = malloc(SIZE);

	if (!bytes)
		bail("no memory");
	memcpy(bytes, stele_device_memory(dev), SIZE);
	return bytes;
}

static void check_snapshot(const struct run *run, const struct stele_dataset *a,
			   const struct stele_dataset *b, const char *what)
{
	const struct stele_catalog_snapshot *info = &b->snapshot.info;
	char note[64] = "";

	is_uint(2, b->image.catalog.counts.snapshots, "%s: two snapshots", what);
	is_uint(a->snapshot.info.id, info->parent, "%s: parent", what);
	is_int(1700000000, info->time, "%s: time", what);
	ok(!memcmp(run->report.digest, info->digest, 32), "%s: digest", what);
	stele_catalog_note(&b->image.catalog, 1, note);
	is_string("laid out anew", note, "%s: note", what);
}

static void test_device(struct stele_device *dev, struct stele_build_opts opts,
			const char *what)
{
	struct run run = {.opts = opts};
	uint8_t *before = bytes_of(dev);
	struct stele_dataset *a = look(dev, "v1"), *b;
	int ret = compact(&run, dev);

	is_int(0, ret, "%s: compacts", what);
	if (ret < 0)
		bail("%s", messages.text);
	check_untouched(&run, before, dev, what);
	b = look(dev, "v2");
	many_compare(a, b, what);
	check_snapshot(&run, a, b, what);
	is_uint(opts.boundary, b->snapshot.segments[0].descriptor.boundary,
		"%s: boundary", what);
	ok(!opts.boundary ||
		   b->image.sb.feature_incompat & STELE_FEATURE_BOUNDARY,
	   "%s: its feature", what);
	stele_dataset_close(b);
	b = look(dev, "v1");
	ok(!memcmp(a->snapshot.digest, b->snapshot.digest, 32),
	   "%s: the old one is what it was", what);
	stele_dataset_close(b);
	stele_dataset_close(a);
	stele_device_close(dev);
	stele_extents_release(&run.used);
	free(before);
}

static void test_many(void)
{
	static const uint32_t granules[] = {0, 16, 4096};

	for (uint64_t seed = 0; seed < 12; seed++) {
		struct stele_build_opts opts = {
			.granule = granules[seed % 3],
			.boundary = seed % 4 == 1 ? 65536 : 0,
			.order = seed % 5 == 2,
			.jobs = 1 + seed % 4,
			.memory_size = seed % 2 ? 1 << 20 : 0,
		};
		struct stele_device *dev = test_memory(SIZE, 512, 0x5a);
		struct many m;
		char what[32];

		snprintf(what, sizeof(what), "seed %" PRIu64, seed);
		many_make(&m, dev, SIZE, seed * 7 + seed / 5);
		test_device(dev, opts, what);
		many_release(&m);
	}
}

static void test_rich(void)
{
	const struct stele_build_opts build = {.size = sizeof(build),
					       .granule = 16};
	const struct stele_build_opts opts = {.granule = 512};
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_device *dev = test_memory(SIZE, 512, 0x5a);
	struct rich rich;

	rich_init(&rich, 300, 40000);
	if (stele_build_on(dev, &rich.source, "v1", &build, &report) < 0)
		bail("cannot build");
	test_device(dev, opts, "many fields");
}

/* ---- failures --------------------------------------------------------------- */

static void check_old(struct stele_device *dev, const uint8_t digest[32],
		      const char *what)
{
	struct stele_dataset *ds = look(dev, "v1");

	is_uint(1, ds->image.catalog.counts.snapshots, "%s: one snapshot",
		what);
	ok(!memcmp(digest, ds->snapshot.digest, 32), "%s: as it was", what);
	stele_dataset_close(ds);
}

static void test_damaged(void)
{
	struct stele_device *dev = test_memory(SIZE, 512, 0x5a);
	struct run run = {0};
	uint8_t digest[32], *bytes = stele_device_memory(dev);
	struct stele_extent extent = {.size = sizeof(extent)};
	struct stele_dataset *ds;
	struct many m;

	many_make(&m, dev, SIZE, 3);
	ds = look(dev, "v1");
	memcpy(digest, ds->snapshot.digest, 32);
	stele_dataset_locate(ds, ds->snapshot.sample_count - 3, &extent);
	stele_dataset_close(ds);
	bytes[extent.offset] ^= 1;
	is_int(-EBADMSG, compact(&run, dev), "a damaged sample");
	ok(test_log_has(&messages, "cannot verify sample"), "is named");
	check_old(dev, digest, "a damaged sample");
	stele_extents_release(&run.used);
	stele_device_close(dev);
	many_release(&m);
}

static void test_no_space(void)
{
	struct stele_device *dev;
	struct stele_dataset *ds;
	struct run run = {0};
	struct many m;
	uint64_t end;

	/* As much as it takes, and less than twice of that. */
	dev = test_memory(SIZE, 512, 0x5a);
	many_make(&m, dev, SIZE, 2);
	many_release(&m);
	ds = look(dev, "v1");
	end = round_up(ds->image.sb.high_water + (64 << 10), 4096);
	stele_dataset_close(ds);
	stele_device_close(dev);
	dev = test_memory(end, 512, 0);
	many_make(&m, dev, end, 2);
	is_int(-ENOSPC, compact(&run, dev), "no space for it");
	stele_extents_release(&run.used);
	stele_device_close(dev);
	many_release(&m);
}

/* Each write that fails, now and then: the old state stays. */
static void test_faults(void)
{
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL, .count = 1,
					.ops = 1 << STELE_OP_WRITE,
					.error = EIO};
	struct stele_device *bottom = test_memory(SIZE, 512, 0x5a), *dev;
	struct run run = {.opts = {.jobs = 2}};
	struct stele_dataset *ds;
	uint8_t digest[32], *before;
	unsigned int failed = 0;
	struct many m;
	int ret = -EIO;

	many_make(&m, bottom, SIZE, 4);
	before = bytes_of(bottom);
	ds = look(bottom, "v1");
	memcpy(digest, ds->snapshot.digest, 32);
	stele_dataset_close(ds);
	if (stele_device_open_fault(bottom, NULL, 0, &dev) < 0)
		bail("no fault device");
	for (uint64_t n = 0; n < 5; n++) {
		rule.first = stele_fault_count(dev) + 20 + n * 31;
		stele_fault_set_rules(dev, &rule, 1);
		ret = compact(&run, dev);
		if (ret == 0)
			break;
		failed++;
		is_int(-EIO, ret, "write %" PRIu64 " fails", n);
		check_old(bottom, digest, "a failed write");
		check_untouched(&run, before, bottom, "a failed write");
	}
	ok(failed > 1, "some failed");
	stele_fault_set_rules(dev, NULL, 0);
	is_int(0, ret ? compact(&run, dev) : 0, "without them it goes");
	stele_extents_release(&run.used);
	stele_device_close(dev);
	many_release(&m);
	free(before);
}

int main(void)
{
	plan_lazy();
	test_many();
	test_rich();
	test_damaged();
	test_no_space();
	test_faults();
	return done();
}
