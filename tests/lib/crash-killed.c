/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash-killed.c - a writer dies, the next one goes on, then the power fails
 *
 * What a killed process wrote is there to be read, and may be in a volatile
 * cache: the device saw no flush. So one is killed before each of its
 * operations; the next one opens the image, as a command does that finds its
 * work done already and says so, and then changes it. With tests/crash/crash.h all
 * of that is cut: what was found by the second is what was promised.
 */
#include "tests/crash/crash.h"
#include "tests/fixture/edit.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define IMAGE_SIZE (UINT64_C(0x200000) + 60 * 4096)

static struct test_sample *samples;

/* A segment and a snapshot of it; the older of two goes. */
static int add_generation(struct test_edit *t)
{
	unsigned int number = (unsigned int)t->edit.next_snapshot_id;
	char name[16];
	uint64_t id;
	int ret;

	snprintf(name, sizeof(name), "v%u", number);
	if (t->edit.snapshot_count == 2)
		stele_txn_remove_snapshot(&t->edit, t->edit.snapshots[0].info.name);
	ret = test_edit_segment(t, samples + number % 8, 3, &id);
	if (ret == 0)
		ret = test_edit_snapshot(t, name, &id, 1, NULL, 0);
	test_edit_collect(t);
	return ret < 0 ? ret : stele_txn_publish(&t->edit, 1700000000 + number);
}

/* An image of three generations, all of it durable. */
static uint8_t *make_base(void)
{
	uint8_t *blank = calloc(1, IMAGE_SIZE), *base;
	struct test_history h;
	struct test_edit t;

	if (!blank)
		bail("no memory");
	test_history_open(&h, blank);
	free(blank);
	if (test_edit_create(&t, h.fault, IMAGE_SIZE) < 0)
		bail("begin failed");
	t.piece = 4096;
	for (unsigned int i = 0; i < 3; i++)
		if (add_generation(&t) < 0)
			bail("a commit failed");
	test_edit_end(&t);
	base = stele_device_alloc(h.fault, IMAGE_SIZE);
	if (!base || stele_device_read(h.fault, base, 0, IMAGE_SIZE) < 0)
		bail("no base");
	test_history_close(&h);
	return base;
}

static void set_killed(struct test_history *h, uint64_t after)
{
	const struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL,
		.first = stele_fault_count(h->fault) + after,
		.error = EIO,
	};

	stele_fault_set_rules(h->fault, &rule, 1);
}

/*
 * One is killed after so many operations, the next finds what is there, and
 * commits once. Return: did the first get done?
 */
static bool record(struct test_history *h, const uint8_t *base, uint64_t after)
{
	struct test_edit t;
	uint64_t before;
	bool done;

	test_history_open(h, base);
	if (test_edit_load(&t, h->fault) < 0)
		bail("no image");
	before = t.image.sb.generation;
	test_history_expect(h, TEST_EXPECT_IMAGE, &t.image.sb);
	t.piece = 4096;
	set_killed(h, after);
	done = add_generation(&t) == 0;
	test_edit_end(&t);
	stele_fault_set_rules(h->fault, NULL, 0);
	if (test_edit_load(&t, h->fault) < 0)
		bail("the image is lost");
	if (t.image.sb.generation != before)
		test_history_expect(h, TEST_EXPECT_IMAGE, &t.image.sb);
	t.piece = 4096;
	if (add_generation(&t) < 0)
		bail("a commit failed");
	test_history_expect(h, TEST_EXPECT_IMAGE, &t.image.sb);
	test_edit_end(&t);
	return done;
}

/* Cut short, a build over an image leaves its newest generation, or none. */
static void check_begin(const uint8_t *base)
{
	const struct stele_fault_entry *log;
	struct test_history h;
	struct test_edit t;
	size_t count, at;

	test_history_open(&h, base);
	if (test_edit_create(&t, h.fault, IMAGE_SIZE) < 0)
		bail("begin failed");
	log = stele_fault_log(h.fault, &count);
	for (at = 0; at < count && log[at].op == STELE_OP_READ; at++)
		;
	ok(at < count && log[at].op == STELE_OP_FLUSH,
	   "what a build finds is durable before it is written over");
	test_edit_end(&t);
	test_history_close(&h);
}

static void explore(const uint8_t *base)
{
	bool done = false;
	uint64_t kills;

	test_crash_name("killed, found, power lost");
	for (kills = 0; !done; kills++) {
		struct test_history h;

		done = record(&h, base, kills);
		test_crash_explore(&h, false);
		test_history_close(&h);
	}
	ok(kills > 8, "killed at %" PRIu64 " operations", kills);
	test_crash_report();
}

int main(void)
{
	uint8_t *base;

	plan_lazy();
	samples = test_samples(24, 300, 77);
	test_crash_init(IMAGE_SIZE);
	base = make_base();
	explore(base);
	check_begin(base);
	test_crash_release();
	free(base);
	free(samples);
	return done();
}
