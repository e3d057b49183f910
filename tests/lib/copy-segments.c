/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy-segments.c - snapshots between images: what is written, and what is not
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/segment/copy_unit.h"
#include "tests/fixture/copies.h"
#include "tests/device/fault.h"
#include "tests/tap.h"

static void check_shapes(const struct copies_source *s, uint32_t block,
			 unsigned int jobs)
{
	struct stele_device *to = copies_target(block);
	struct stele_copy_report r = {.size = sizeof(r)};
	uint64_t first;
	bool once;

	is_int(0, copies_copy(s->dev, "v1", to, jobs, &r), "blocks of %u, %u jobs: v1",
	       block, jobs);
	ok(copies_same(s->dev, to, "v1"), "is what the source has");
	is_uint(r.total_size, r.sent_size, "all of it was sent");
	is_uint(0, r.resumed_size, "nothing was there");
	is_uint(r.sent_size, copies_written(to, &once), "and nothing else written");
	ok(once, "no block twice");
	first = r.total_size;

	stele_fault_log_clear(to);
	is_int(0, copies_copy(s->dev, "v3", to, jobs, &r), "then v3");
	ok(copies_same(s->dev, to, "v3"), "is what the source has");
	ok(copies_same(s->dev, to, "v1"), "and v1 stays");
	is_uint(2, r.segments_sent, "two of three segments were sent");
	is_uint(r.total_size - first, r.sent_size, "their bytes");
	is_uint(r.sent_size, copies_written(to, &once), "and nothing else");
	stele_fault_log_clear(to);
	is_int(0, copies_copy(s->dev, "v2", to, jobs, &r), "v2 between them");
	ok(copies_same(s->dev, to, "v2"), "is what the source has");
	is_uint(0, r.sent_size + r.segments_sent, "nothing was sent");
	is_uint(0, copies_written(to, &once), "nor written to a segment");
	stele_fault_log_clear(to);
	is_int(0, copies_copy(s->dev, "v2", to, jobs, &r), "once more");
	is_uint(0, copies_writes(to), "not one write");
	stele_device_close(to);
}

static void check_catalog(const struct copies_source *s)
{
	struct stele_device *to = copies_target(512);
	struct stele_catalog_snapshot info;
	struct stele_copy_report r = {.size = sizeof(r)};
	struct stele_image image;

	copies_copy(s->dev, "v3", to, 2, &r);
	copies_copy(s->dev, "v2", to, 2, &r);
	if (stele_image_load(to, NULL, &image))
		bail("no copy");
	stele_catalog_snapshot(&image.catalog, 0, &info);
	is_string("v3", info.name, "copied first");
	is_uint(0, info.parent, "no parent: it was not there");
	is_int(4711, info.time, "the source's time");
	is_int(4242, info.source_time, "and when it was taken over");
	is_int(COPIES_TIME, image.sb.commit_time, "the commit has its own");
	image.dev = NULL;
	stele_image_release(&image);
	stele_device_close(to);

	to = copies_target(512);
	copies_copy(s->dev, "v2", to, 2, &r);
	copies_copy(s->dev, "v3", to, 2, &r);
	stele_image_load(to, NULL, &image);
	stele_catalog_snapshot(&image.catalog, 1, &info);
	is_uint(1, info.parent, "a parent that is there");
	image.dev = NULL;
	stele_image_release(&image);
	stele_device_close(to);
}

/* The same ids, other bytes; the same name, another snapshot; no room. */
static void check_refused(const struct copies_source *s)
{
	struct test_sample *samples = test_samples(40, 3000, 99);
	const struct test_segment other = {.samples = samples, .count = 40,
					   .labels = true};
	struct stele_device *to = test_image_simple(&other, NULL, 0, COPIES_SIZE);
	struct stele_superblock sb;
	struct stele_copy_report r = {.size = sizeof(r)};
	struct stele_image image;
	struct stele_txn edit;

	is_int(-EEXIST, copies_copy(s->dev, "v1", to, 2, &r), "the name is taken");
	is_int(-EEXIST, copies_copy(s->dev, "v2", to, 2, &r), "the id is taken");
	ok(test_log_has(&copies_log, "another segment of the id"), "which is said");
	ok(!copies_has(to, "v2"), "nothing published");
	stele_device_close(to);
	free(samples);

	to = copies_target(512);
	test_superblock(UINT64_C(12) << 20, &sb);
	if (stele_image_begin(to, NULL, &sb, &image) ||
	    stele_txn_attach(&image, &edit) || stele_txn_publish(&edit, COPIES_TIME))
		bail("no target");
	stele_txn_release(&edit);
	image.dev = NULL;
	stele_image_release(&image);
	stele_fault_log_clear(to);
	is_int(-ENOSPC, copies_copy(s->dev, "v3", to, 2, &r), "too small");
	is_uint(0, copies_writes(to), "and not a byte written");
	stele_device_close(to);
}

/* Units cover a segment once, and two at most touch a block. */
static void check_units(const struct copies_source *s)
{
	struct stele_image image;
	unsigned int wrong = 0, kinds = 0;

	if (stele_image_load(s->dev, NULL, &image))
		bail("no source");
	for (uint32_t i = 0; i < COPIES_SEGMENTS; i++) {
		struct stele_catalog_segment where;
		struct stele_segment segment;
		struct stele_copy_units units = {.segment = &segment};
		struct stele_copy_unit unit;
		uint64_t at, touched = 0, index = 0, number = 0;
		unsigned int touching = 0;

		stele_catalog_segment(&image.catalog, i, &where);
		if (stele_segment_load_bare(&image, &where, &segment))
			bail("no segment");
		at = where.descriptor_size;
		while (stele_copy_units_next(&units, &unit)) {
			const uint64_t block = at / STELE_BLOCK_SIZE;

			touching = block == touched ? touching + 1 : 1;
			wrong += unit.offset != at || unit.size == 0 ||
				 unit.index != index++ || touching > 2;
			if (unit.count)
				wrong += unit.first != number;
			wrong += unit.size > STELE_COPY_UNIT_SIZE &&
				 unit.kind != STELE_COPY_LARGE;
			number += unit.count;
			at += unit.size;
			if ((at - 1) / STELE_BLOCK_SIZE != block || touching > 1)
				touching = 1;
			touched = at / STELE_BLOCK_SIZE;
			kinds |= 1u << unit.kind;
		}
		wrong += at != where.size - where.descriptor_size ||
			 number != where.sample_count;
		stele_segment_release(&segment);
	}
	is_uint(0, wrong, "units cover each segment once");
	is_hex(7, kinds, "slots, large ones and sections among them");
	image.dev = NULL;
	stele_image_release(&image);
}

int main(void)
{
	struct copies_source small = {0}, large = {0};

	plan_lazy();
	test_log_init(&copies_log);
	copies_source(&small, 512);
	copies_source(&large, 4096);
	check_units(&small);
	check_shapes(&small, 512, 1);
	check_shapes(&small, 4096, 3);
	check_shapes(&large, 512, 8);
	check_catalog(&small);
	check_refused(&small);
	copies_source_drop(&small);
	copies_source_drop(&large);
	return done();
}
