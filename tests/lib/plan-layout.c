/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan-layout.c - what must hold of every layout
 */
#include "format/sections.h"
#include "format/superblock.h"
#include "lib/segment/plan.h"
#include "tests/fixture/fake.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct planned {
	struct stele_builder builder;
	struct stele_build_report report;
	struct stele_plan plan;
	int ret;
};

static void make(struct planned *p, struct fake *fake,
		 const struct stele_build_opts *opts)
{
	p->ret = stele_builder_init(&p->builder, opts, STELE_BUILD_FLAGS,
				    &p->report);
	if (p->ret < 0)
		bail("options");
	p->ret = stele_plan_make(&p->plan, &p->builder, &fake->source);
}

static void release(struct planned *p)
{
	stele_plan_release(&p->plan);
	stele_builder_release(&p->builder);
}

/* Numbers are a permutation, slots hold their records and follow each other. */
static void check_slots(const struct stele_plan *plan)
{
	const struct stele_descriptor *d = &plan->descriptor;
	const uint64_t *numbers = plan->numbers.data;
	uint64_t bad_inverse = 0, bad_place = 0, bad_slot = 0, records = 0;
	uint64_t at = d->slots_offset;

	for (uint64_t i = 0; i < d->sample_count; i++) {
		struct stele_plan_sample sample;
		uint64_t size = 0;

		stele_plan_sample(plan, i, &sample);
		bad_inverse += sample.ordinal >= d->sample_count ||
			       numbers[sample.ordinal] != i;
		stele_record_size(&plan->fields.shape, sample.entry.data_size,
				  (uint32_t)sample.entry.key_size, &size);
		records += size;
		bad_slot += sample.slot_size != stele_slot_size(size,
								d->granule);
		bad_place += sample.offset != at;
		bad_place += stele_plan_offset(plan, i) != at;
		at += sample.slot_size;
	}
	is_uint(0, bad_inverse, "numbers are a permutation of ordinals");
	is_uint(0, bad_slot, "each slot is its record's");
	is_uint(0, bad_place, "slots lie one behind the other");
	is_uint(d->slots_offset + d->slots_size, at, "up to the end");
	is_uint(records, d->records_size, "records are summed up");
}

static void check_runs(const struct stele_plan *plan)
{
	const struct stele_descriptor *d = &plan->descriptor;
	const struct stele_run *runs = plan->runs.data;
	unsigned int bad = d->run_count && (runs[0].first != 0 ||
				runs[0].offset != d->slots_offset);

	for (uint32_t i = 1; i < d->run_count; i++)
		bad += runs[i].first <= runs[i - 1].first ||
		       runs[i].offset <= runs[i - 1].offset ||
		       runs[i].slot_size == runs[i - 1].slot_size ||
		       (d->order == STELE_SLOT_ORDER_SIZE &&
			runs[i].slot_size > runs[i - 1].slot_size);
	is_uint(0, bad, "runs ascend, and slot sizes fall");
}

static void check_segment(const struct stele_plan *plan)
{
	const struct stele_descriptor *d = &plan->descriptor;
	uint64_t at = round_up(d->slots_offset + d->slots_size, 4096);
	unsigned int bad = 0;

	for (uint32_t i = 0; i < d->section_count; i++) {
		bad += plan->sections[i].offset != at;
		bad += plan->sections[i].size == 0;
		at += plan->sections[i].size;
	}
	is_uint(0, bad, "sections lie one behind the other");
	is_uint(at + plan->descriptor_size, d->size, "the segment ends");
}

static void check_all(const struct stele_plan *plan)
{
	check_slots(plan);
	check_runs(plan);
	check_segment(plan);
}

static void test_sizes(const char *what, unsigned int count, uint64_t size_max,
		       uint32_t granule)
{
	struct planned p = {0};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "some/where", count, size_max);
	make(&p, &fake, NULL);
	is_int(0, p.ret, "%s", what);
	check_all(&p.plan);
	is_uint(granule, p.report.granule, "granule");
	if (granule > 16)
		ok(p.report.padding_size <= p.plan.descriptor.records_size / 50,
		   "padding of at most 2 %%");
	is_uint(p.report.slots_size - p.plan.descriptor.records_size,
		p.report.padding_size, "padding is what is no record");
	release(&p);
	fake_release(&fake);
}

/* The largest of two granules that both fit must win: just at the border. */
static void test_border(void)
{
	struct planned p = {0};
	struct fake fake;

	/* Record: payload + key of 1 + trailer of 16. Slots of 512: 502 is 1.99 %. */
	fake_init(&fake);
	fake_add(&fake, "k", 502 - 17);
	make(&p, &fake, NULL);
	is_uint(512, p.report.granule, "10 of 502 bytes is within 2 %%");
	release(&p);
	fake_release(&fake);
	fake_add(&fake, "k", 501 - 17);
	make(&p, &fake, NULL);
	is_uint(16, p.report.granule, "11 of 501 bytes is not; 512 is 16's, too");
	release(&p);
	fake_release(&fake);
}

/* Files: a granule that all kernels mount is worth more padding. */
static void test_files(void)
{
	const struct stele_build_opts opts = {.size = sizeof(opts), .flags = STELE_BUILD_POSIX};
	const struct {
		uint64_t record;
		uint32_t granule;
	} rows[] = {{3724, 4096}, {3723, 512}, {40, 512}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct planned p = {0};
		struct fake fake;

		fake_init(&fake);
		fake_add(&fake, "k", rows[i].record - 17);
		make(&p, &fake, &opts);
		is_uint(rows[i].granule, p.report.granule, "files of %u bytes",
			(unsigned int)rows[i].record);
		release(&p);
		fake_release(&fake);
	}
}

static void test_source_order(void)
{
	const struct stele_build_opts opts = {
		.size = sizeof(opts), .order = STELE_ORDER_SOURCE,
		.granule = 512};
	struct planned p = {0};
	struct fake fake;
	const uint64_t *ordinals;
	uint64_t moved = 0;

	fake_init(&fake);
	fake.backwards = true;
	fake_add_many(&fake, "x", 1000, 4000);
	make(&p, &fake, &opts);
	is_int(0, p.ret, "order of the source");
	check_slots(&p.plan);
	check_segment(&p.plan);
	ordinals = p.plan.ordinals.data;
	for (uint64_t i = 0; i < 1000; i++)
		moved += ordinals[i] != i;
	is_uint(0, moved, "numbers are ordinals");
	is_uint(STELE_SLOT_ORDER_SOURCE, p.plan.descriptor.order, "it says so");
	release(&p);
	fake_release(&fake);
}

static void test_shuffled(void)
{
	struct planned p = {0};
	struct fake fake;
	uint64_t next = 0;
	const uint64_t *ordinals;

	fake_init(&fake);
	for (unsigned int i = 0; i < 1000; i++) {
		char key[32];

		snprintf(key, sizeof(key), "class %u/%u", i / 100, i);
		fake_add(&fake, key, 100);
	}
	make(&p, &fake, NULL);
	ordinals = p.plan.ordinals.data;
	for (uint64_t i = 1; i < 1000; i++)
		next += ordinals[i] == ordinals[i - 1] + 1;
	ok(next < 10, "neighbours in the source are none in the image");
	release(&p);
	fake_release(&fake);
}

/* Nothing but keys and sizes may decide. */
static void test_same(void)
{
	struct planned p = {0}, q = {0};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "a", 3000, 100000);
	make(&p, &fake, NULL);
	fake.backwards = true;
	make(&q, &fake, NULL);
	is_blob(p.plan.ordinals.data, q.plan.ordinals.data, 3000 * 8,
		"the order of the scan changes nothing");
	is_uint(p.plan.descriptor.size, q.plan.descriptor.size, "nor the size");
	release(&p);
	release(&q);
	fake_release(&fake);
}

static void test_none(void)
{
	struct planned p = {0};
	struct fake fake;

	fake_init(&fake);
	make(&p, &fake, NULL);
	is_int(0, p.ret, "no sample");
	check_all(&p.plan);
	is_uint(0, p.plan.descriptor.section_count, "no section");
	is_uint(2 * 4096, p.plan.descriptor.size, "two descriptors");
	release(&p);
	fake_release(&fake);
}

static void test_limits(void)
{
	struct planned p = {0};
	struct fake fake;

	fake_init(&fake);
	fake_add(&fake, "large", STELE_SAMPLE_SIZE_MAX);
	make(&p, &fake, NULL);
	is_int(0, p.ret, "the largest sample");
	check_all(&p.plan);
	release(&p);
	fake_add(&fake, "larger", STELE_SAMPLE_SIZE_MAX + 1);
	make(&p, &fake, NULL);
	is_int(-EFBIG, p.ret, "one byte more");
	release(&p);
	fake_release(&fake);
	for (unsigned int i = 0; i < 40000; i++) {
		char key[16];

		snprintf(key, sizeof(key), "%u", i);
		fake_add(&fake, key, STELE_SAMPLE_SIZE_MAX);
	}
	make(&p, &fake, NULL);
	is_int(-EFBIG, p.ret, "more than an image may hold");
	release(&p);
	fake_release(&fake);
}

static void test_twice(void)
{
	struct planned p = {0};
	struct fake fake;

	fake_init(&fake);
	fake_add(&fake, "b", 2);
	fake_add(&fake, "a", 1);
	fake_add(&fake, "b", 2);
	make(&p, &fake, NULL);
	is_uint(2, p.report.written_count, "a key that comes twice counts once");
	is_uint(3, p.report.payload_size, "so does its size");
	check_all(&p.plan);
	release(&p);
	fake_release(&fake);
}

static int stop_late(void *user, const struct stele_progress *progress)
{
	(void)progress;
	return ++*(unsigned int *)user > 1;
}

static void test_cancel(void)
{
	unsigned int calls = 0;
	const struct stele_build_opts opts = {.size = sizeof(opts),
					      .progress = stop_late,
					      .progress_user = &calls};
	struct planned p = {0};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "x", 300000, 10);
	make(&p, &fake, &opts);
	is_int(-ECANCELED, p.ret, "stopped");
	is_uint(2, calls, "and not asked again");
	release(&p);
	fake_release(&fake);
}

/* Lists larger than memory: they spill, and the layout is the same. */
static void test_memory(void)
{
	struct stele_build_opts opts = {.size = sizeof(opts),
					.memory_size = 1 << 20};
	struct planned p = {0}, q = {0};
	struct fake fake;

	fake_init(&fake);
	fake_add_many(&fake, "some/tiny/samples", 100000, 100);
	make(&p, &fake, &opts);
	is_int(0, p.ret, "100000 samples in 1 MiB");
	ok(p.plan.pool.spilled_count > 0, "files were used");
	ok(p.plan.pool.memory_used <= 512 << 10, "memory was not");
	check_all(&p.plan);
	make(&q, &fake, NULL);
	is_uint(0, q.plan.pool.spilled_count, "no files with more memory");
	is_blob(q.plan.ordinals.data, p.plan.ordinals.data, 100000 * 8,
		"the same layout");
	release(&p);
	release(&q);
	fake_release(&fake);
}

int main(void)
{
	plan_lazy();
	test_sizes("tiny", 5000, 100, 16);
	test_sizes("some KB", 5000, 8000, 64);
	test_sizes("some tens of KB", 2000, 60000, 512);
	test_sizes("some hundreds of KB", 2000, 900000, 4096);
	test_border();
	test_files();
	test_source_order();
	test_shuffled();
	test_same();
	test_none();
	test_limits();
	test_twice();
	test_cancel();
	test_memory();
	return done();
}
