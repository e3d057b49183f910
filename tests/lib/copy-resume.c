/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy-resume.c - a copy that was cut short goes on, and sends no more than needed
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/segment/copy_unit.h"
#include "lib/segment/segment_copy.h"
#include "tests/fixture/copies.h"
#include "tests/device/fault.h"
#include "tests/tap.h"

#define LAST_COMMITS 64u /* operations of them */

/*
 * The n-th operation fails, and all that follow: then without faults it goes
 * on, and what units were sent whole before is not sent again.
 */
static void check_resume(const struct copies_source *s, enum stele_fault_kind kind,
			 unsigned int jobs, unsigned int step)
{
	const uint64_t slack = 2 * 5000000 + 2 * jobs * STELE_COPY_UNIT_SIZE;
	struct stele_copy_report first = {.size = sizeof(first)};
	struct stele_copy_report r = {.size = sizeof(r)};
	unsigned int wrong = 0, resumed = 0, runs = 0;
	uint64_t operations, before;
	struct stele_device *to = copies_target(4096);

	copies_copy(s->dev, "v3", to, jobs, &r);
	operations = stele_fault_count(to);
	stele_device_close(to);
	for (uint64_t n = 40; n < operations; n += step, runs++) {
		struct stele_fault_rule rule = {
			.kind = kind, .first = n, .error = EIO,
			.ops = 1 << STELE_OP_WRITE | 1 << STELE_OP_FLUSH};
		int ret;

		to = copies_target(4096);
		stele_fault_set_rules(to, &rule, 1);
		ret = copies_copy(s->dev, "v3", to, jobs, &first);
		stele_fault_set_rules(to, NULL, 0);
		/* That the intent could not be cleared is the next writer's to mend. */
		wrong += ret == 0 && kind == STELE_FAULT_FAIL &&
			 !(copies_has(to, "v3") && copies_same(s->dev, to, "v3"));
		ret = copies_copy(s->dev, "v3", to, jobs, &r);
		before = r.total_size - r.sent_size;
		/* A mirror may lack a commit whose acknowledgement was lost. */
		if (ret || !copies_has(to, "v3") ||
		    (r.sent_size && !copies_same(s->dev, to, "v3")) ||
		    (kind == STELE_FAULT_FAIL &&
		     before + slack < first.sent_size)) {
			diag("operation %ju: %d, sent %ju, then %ju of %ju",
			     (uintmax_t)n, ret, (uintmax_t)first.sent_size,
			     (uintmax_t)r.sent_size, (uintmax_t)r.total_size);
			wrong++;
		}
		resumed += r.resumed_size > 0;
		stele_device_close(to);
	}
	is_uint(0, wrong, "%u jobs, %u points of %ju: goes on, and is whole",
		jobs, runs, (uintmax_t)operations);
	ok(resumed > runs / 5, "%u of them within a segment", resumed);
}

/* One thread: what was sent and what is sent then is all, but for one unit. */
static void check_exact_resume(const struct copies_source *s)
{
	struct stele_copy_report first = {.size = sizeof(first)};
	struct stele_copy_report r = {.size = sizeof(r)};
	unsigned int wrong = 0, runs = 0;
	struct stele_device *to = copies_target(4096);
	uint64_t operations;

	copies_copy(s->dev, "v1", to, 1, &r);
	operations = stele_fault_count(to) - LAST_COMMITS;
	stele_device_close(to);
	for (uint64_t n = 40; n < operations; n += 3, runs++) {
		const struct stele_fault_rule rule = {
			.kind = STELE_FAULT_FAIL, .first = n, .error = EIO};
		bool once;

		to = copies_target(4096);

		stele_fault_set_rules(to, &rule, 1);
		copies_copy(s->dev, "v1", to, 1, &first);
		stele_fault_set_rules(to, NULL, 0);
		stele_fault_log_clear(to);
		wrong += copies_copy(s->dev, "v1", to, 1, &r) != 0;
		/* Its last unit may lack a block that it shares. */
		if (r.resumed_size + 5100000 < first.sent_size ||
		    r.sent_size + r.resumed_size != r.total_size ||
		    copies_written(to, &once) > r.sent_size + 2 * STELE_BLOCK_SIZE)
			wrong++;
		stele_device_close(to);
	}
	is_uint(0, wrong, "one job, %u points: no more than needed", runs);
}

static int stop_soon(void *user, const struct stele_progress *p)
{
	struct stele_progress *seen = user;

	*seen = *p;
	return p->bytes_done != 0;
}

static void check_progress(const struct copies_source *s)
{
	struct stele_device *to = copies_target(512);
	struct stele_copy_report r = {.size = sizeof(r)};
	struct stele_progress seen = {0};

	copies_progress = stop_soon;
	copies_user = &seen;
	is_int(-ECANCELED, copies_copy(s->dev, "v3", to, 1, &r), "stopped");
	ok(seen.bytes_done && seen.bytes_done <= seen.bytes_total &&
		   seen.bytes_total == r.total_size,
	   "having been told %ju of %ju bytes", (uintmax_t)seen.bytes_done,
	   (uintmax_t)seen.bytes_total);
	ok(seen.phase == STELE_PHASE_COPY && seen.size == sizeof(seen),
	   "of a copy");
	ok(!copies_has(to, "v3"), "no snapshot yet");
	copies_progress = NULL;
	is_int(0, copies_copy(s->dev, "v3", to, 1, &r), "goes on");
	ok(copies_same(s->dev, to, "v3"), "to the end");
	ok(r.sent_size < r.total_size, "and sends less");
	stele_device_close(to);
}

/*
 * All of a segment is there, but for a block in its middle, and the commit: what
 * lies behind the gap is found as well.
 */
static void check_gap(const struct copies_source *s)
{
	static const uint8_t zeros[2 * STELE_BLOCK_SIZE];
	uint8_t *bytes = stele_device_memory(s->dev);
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .ops = 1 << STELE_OP_WRITE,
		.offset = 0, .size = STELE_DATA_OFFSET, .error = EIO};
	struct stele_device *to = copies_target(512);
	struct stele_copy_report r = {.size = sizeof(r)};
	void *block = stele_device_alloc(to, STELE_BLOCK_SIZE);

	/* An empty image: not even the first sample is right. */
	bytes[STELE_DATA_OFFSET + 2 * STELE_BLOCK_SIZE] ^= 1;
	copies_copy(s->dev, "v1", to, 1, &r);
	bytes[STELE_DATA_OFFSET + 2 * STELE_BLOCK_SIZE] ^= 1;
	stele_fault_set_rules(to, &rule, 1);
	is_int(-EIO, copies_copy(s->dev, "v1", to, 4, &r), "no commit");
	is_uint(r.total_size, r.sent_size + r.resumed_size, "but all is there");
	stele_fault_set_rules(to, NULL, 0);
	memcpy(block, zeros, STELE_BLOCK_SIZE);
	stele_device_write(to, block,
			   STELE_DATA_OFFSET + (UINT64_C(4) << 20),
			   STELE_BLOCK_SIZE);
	is_int(0, copies_copy(s->dev, "v1", to, 4, &r), "a gap: goes on");
	ok(copies_same(s->dev, to, "v1"), "and is whole");
	ok(r.sent_size && r.sent_size <= 5100000,
	   "having sent one unit, %ju bytes of %ju", (uintmax_t)r.sent_size,
	   (uintmax_t)r.total_size);
	free(block);
	stele_device_close(to);
}

static int stop_at(void *user, const struct stele_progress *p)
{
	return p->bytes_done > *(const uint64_t *)user;
}

/* The place of the first segment that is there; *count: of how many. */
static struct stele_catalog_segment find_segment(struct stele_device *dev, uint32_t *count)
{
	struct stele_catalog_segment segment = {0};
	struct stele_image image;

	if (stele_image_load(dev, NULL, &image))
		bail("cannot load the copy");
	*count = image.catalog.counts.segments;
	if (!*count || *count == COPIES_SEGMENTS)
		bail("%u segments", *count);
	stele_catalog_segment(&image.catalog, 0, &segment);
	image.dev = NULL;
	stele_image_release(&image);
	return segment;
}

/* A segment was sent and committed, the snapshot was not; then a byte of it went bad. */
static void check_gone_bad(const struct copies_source *s)
{
	const unsigned int points = 29;
	struct stele_copy_report first = {.size = sizeof(first)};
	unsigned int wrong = 0, silent = 0;

	for (unsigned int i = 0; i <= points; i++) {
		struct stele_device *to = copies_target(4096);
		struct stele_copy_report r = {.size = sizeof(r)};
		struct stele_catalog_segment segment;
		uint8_t *block = stele_device_alloc(to, STELE_BLOCK_SIZE);
		uint64_t size, at;
		uint32_t left;

		if (copies_copy(s->dev, "v1", to, 1, &first))
			bail("cannot copy");
		size = first.total_size;
		stele_device_close(to);
		to = copies_target(4096);
		copies_progress = stop_at;
		copies_user = &size;
		if (copies_copy(s->dev, "v3", to, 2, &r) != -ECANCELED)
			bail("was not stopped");
		copies_progress = NULL;
		segment = find_segment(to, &left);
		at = segment.offset + round_down((segment.size - 1) * i / points, 4096);
		stele_device_read(to, block, at, STELE_BLOCK_SIZE);
		block[i * 4095 / points] ^= i != points;
		stele_device_write(to, block, at, STELE_BLOCK_SIZE);
		copies_log.text[0] = copies_log.size = 0;
		wrong += copies_copy(s->dev, "v3", to, 2, &r) || !copies_same(s->dev, to, "v3");
		silent += test_log_has(&copies_log, "is damaged: it is sent again") !=
			  (i != points);
		if (i == points) {
			is_uint(COPIES_SEGMENTS - left, r.segments_sent,
				"a sound segment is not sent again");
			ok(r.resumed_size >= size, "but was looked at: %ju bytes",
			   (uintmax_t)r.resumed_size);
		} else if (r.segments_sent != COPIES_SEGMENTS - left + 1) {
			wrong++;
		}
		free(block);
		stele_device_close(to);
	}
	is_uint(0, wrong, "%u segments that went bad are sent again", points);
	is_uint(0, silent, "which is said");
}

int main(void)
{
	struct copies_source small = {0};

	plan_lazy();
	test_log_init(&copies_log);
	copies_source(&small, 512);
	check_progress(&small);
	check_gap(&small);
	check_gone_bad(&small);
	check_exact_resume(&small);
	check_resume(&small, STELE_FAULT_FAIL, 1, 11);
	check_resume(&small, STELE_FAULT_FAIL, 4, 13);
	check_resume(&small, STELE_FAULT_LOSE, 2, 17);
	copies_source_drop(&small);
	return done();
}
