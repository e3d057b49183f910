/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build-boundary.c - no slot crosses a boundary, and gaps are zeros
 *
 * The device is full of rubbish before each build, and verify reads every gap:
 * what the writer left out would show.
 */
#include "lib/image/snapshot.h"
#include "lib/ops/build.h"
#include "lib/verify/verify.h"
#include "tests/fixture/built.h"
#include "tests/device/fault.h"
#include "tests/fixture/fake.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_SIZE (UINT64_C(128) << 20)

static struct stele_device *rubbish(uint32_t wanted)
{
	struct stele_device *dev;

	dev = test_memory(DEVICE_SIZE, 512, 0xa5);
	dev->limits.boundary = wanted;
	return dev;
}

static void say(void *user, const struct stele_damage *damage)
{
	(void)user;
	diag("%s at %" PRIu64 ": %s", damage->what, damage->offset,
	     damage->detail);
}

/* Slots by hand: where the one before ends, or at the next multiple. */
static void check_places(const struct stele_segment *segment, uint64_t boundary,
			 const char *what)
{
	const struct stele_descriptor *d = &segment->descriptor;
	uint64_t end = d->offset + d->block_count * STELE_BLOCK_SIZE;
	uint64_t offset, slot_size, crossing = 0, elsewhere = 0;
	uint64_t gaps = 0, small = 0;

	for (uint64_t i = 0; i < d->sample_count; i++) {
		uint64_t next;

		stele_segment_slot(segment, i, &offset, &slot_size);
		next = end;
		if (boundary && slot_size <= boundary) {
			small++;
			crossing += offset / boundary !=
				    (offset + slot_size - 1) / boundary;
			if (next / boundary !=
			    (next + slot_size - 1) / boundary)
				next = (next / boundary + 1) * boundary;
		}
		elsewhere += offset != next;
		gaps += offset - end;
		end = offset + slot_size;
	}
	is_uint(0, crossing, "%s: no slot crosses", what);
	is_uint(0, elsewhere, "%s: each lies at the first place", what);
	is_uint(d->offset + d->slots_offset + d->slots_size, end,
		"%s: and the slots end there", what);
	ok(!boundary || small < 10 || gaps > 0, "%s: there are gaps", what);
}

static void check_image(struct stele_device *dev, uint64_t boundary,
			const struct stele_build_report *report,
			const char *what)
{
	struct stele_verify_opts opts = {.size = sizeof(opts), .damage = say};
	struct stele_verify_report found = {.size = sizeof(found)};
	struct stele_snapshot snapshot;
	struct stele_image image;
	const struct stele_descriptor *d;

	if (stele_image_load(dev, NULL, &image) < 0 ||
	    stele_snapshot_load(&image, 0, &snapshot) < 0)
		bail("%s: does not load", what);
	d = &snapshot.segments[0].descriptor;
	is_uint(boundary, d->boundary, "%s: boundary", what);
	is_uint(boundary ? STELE_FEATURE_BOUNDARY : 0,
		image.sb.feature_incompat & ~(uint64_t)STELE_FEATURE_MIRROR, "%s: feature", what);
	is_uint(report->slots_size - d->records_size, report->padding_size,
		"%s: gaps count as padding", what);
	check_places(&snapshot.segments[0], boundary, what);
	is_int(0, stele_verify_image(&image, -1, &opts, &found), "%s: sound",
	       what);
	image.dev = NULL;
	stele_snapshot_release(&snapshot);
	stele_image_release(&image);
}

static void test_build(struct fake *fake, struct stele_build_opts opts,
		       uint32_t wanted, uint64_t boundary, const char *what)
{
	struct stele_device *dev = rubbish(wanted);
	struct stele_build_report report = {.size = sizeof(report)};
	int ret;

	opts.size = sizeof(opts);
	opts.time = 1700000000;
	ret = stele_build_on(dev, &fake->source, "v1", &opts, &report);
	is_int(0, ret, "%s: builds", what);
	if (!ret) {
		built_check(dev, fake, NULL, what);
		check_image(dev, boundary, &report, what);
	}
	stele_device_close(dev);
}

static void test_shapes(void)
{
	struct stele_build_opts opts = {.boundary = 4096};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "a", 1500, 3000);
	fake_add_many(&fake, "b", 40, 90000);
	fake_add_many(&fake, "c", 3, 5 << 20);
	test_build(&fake, opts, 0, 4096, "a page");
	opts.boundary = 65536;
	test_build(&fake, opts, 0, 65536, "64 KiB");
	opts.granule = 4096;
	test_build(&fake, opts, 0, 65536, "64 KiB, pages");
	opts.granule = 16;
	opts.order = STELE_ORDER_SOURCE;
	opts.jobs = 5;
	test_build(&fake, opts, 0, 65536, "64 KiB, source order");
	opts.boundary = 4 << 20;
	opts.order = STELE_ORDER_SIZE;
	opts.memory_size = 1 << 20;
	test_build(&fake, opts, 0, 4 << 20, "4 MiB, little memory");
	fake_release(&fake);
}

/* The first slot does not fit behind the descriptor; one sample, or none. */
static void test_first(void)
{
	const struct stele_build_opts opts = {.boundary = 65536};
	struct fake fake;

	fake_init(&fake);
	test_build(&fake, opts, 0, 65536, "no sample");
	fake_add(&fake, "k", 65536 - 17);
	fake_add(&fake, "l", 65536 - 17);
	test_build(&fake, opts, 0, 65536, "slots that fill it");
	fake_add(&fake, "m", 65536);
	test_build(&fake, opts, 0, 65536, "and one that is larger");
	fake_release(&fake);
}

static void test_wanted(void)
{
	struct stele_build_opts opts = {0};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "a", 300, 9000);
	test_build(&fake, opts, 0, 0, "a target without");
	test_build(&fake, opts, 1 << 20, 1 << 20, "a target's own");
	opts.boundary = 16384;
	test_build(&fake, opts, 1 << 20, 16384, "told otherwise");
	opts.boundary = 1;
	test_build(&fake, opts, 1 << 20, 0, "told none");
	fake_release(&fake);
}

static void test_refused(void)
{
	static const uint32_t bad[] = {2, 512, 2048, 4097, 12288, 0xffffffff};
	struct stele_device *dev = rubbish(0);
	struct stele_build_report report = {.size = sizeof(report)};
	struct fake fake;

	fake_init(&fake);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_int(-22,
		       stele_build_on(dev, &fake.source, "v1",
				      &STELE_OPTS(stele_build_opts,
						  .boundary = bad[i]),
				      &report),
		       "a boundary of %" PRIu32, bad[i]);
	fake_release(&fake);
	stele_device_close(dev);
}

/* Every byte of the segment is written once, whoever has the gaps. */
static void test_writes(void)
{
	const struct stele_build_opts opts = {
		.size = sizeof(opts), .boundary = 1 << 20, .jobs = 3};
	static uint8_t seen[DEVICE_SIZE / 512];
	const struct stele_fault_entry *log;
	struct stele_device *bottom = rubbish(0), *dev;
	struct stele_build_report report = {.size = sizeof(report)};
	uint64_t missing = 0, twice = 0, end;
	struct stele_image image;
	struct fake fake;
	size_t count;

	fake_init(&fake);
	fake_add_many(&fake, "a", 100, 700000);
	fake_add_many(&fake, "b", 1000, 700);
	if (stele_device_open_fault(bottom, NULL, 0, &dev) < 0 ||
	    stele_build_on(dev, &fake.source, "v1", &opts, &report) < 0)
		bail("cannot build");
	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		if (log[i].op == STELE_OP_WRITE)
			for (uint64_t b = 0; b < log[i].size / 512; b++)
				seen[log[i].offset / 512 + b]++;
	if (stele_image_load(dev, NULL, &image) < 0)
		bail("no image");
	end = image.sb.high_water;
	image.dev = NULL; /* ours */
	stele_image_release(&image);
	ok(end < report.image_end, "with room for the next catalog");
	for (uint64_t b = STELE_DATA_OFFSET / 512; b < end / 512; b++) {
		missing += !seen[b];
		twice += seen[b] > 1;
	}
	is_uint(0, twice, "nothing is written twice");
	is_uint(0, missing, "nothing is left out");
	stele_device_close(dev);
	fake_release(&fake);
}

int main(void)
{
	plan_lazy();
	test_shapes();
	test_first();
	test_wanted();
	test_refused();
	test_writes();
	return done();
}
