/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append-versions.c - snapshots on top of each other, against what sources held
 */
#include "tests/fixture/appended.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/segment/builder.h"
#include "tests/device/fault.h"

#define ALL                                                 \
	(STELE_APPEND_UPDATE | STELE_APPEND_DELETE_MISSING | \
	 STELE_FORCE | STELE_BUILD_ALLOW_EMPTY)

/* Bytes written since the log was cleared. */
static uint64_t written(void)
{
	const struct stele_fault_entry *log;
	uint64_t sum = 0;
	size_t count;

	log = stele_fault_log(appended_dev, &count);
	for (size_t i = 0; i < count; i++)
		if (log[i].op == STELE_OP_WRITE)
			sum += log[i].size;
	return sum;
}

/* A file of this size and changed when the base was made, or just before. */
static void set_times(struct fake *fake, int64_t changed)
{
	for (size_t i = 0; i < fake->count; i++)
		fake->files[i].changed = changed;
}

/* Everything is replaced: old segments have nothing left. */
static void replace_all(struct fake *four)
{
	const struct stele_append_opts opts = appended_options(ALL);

	fake_init(four);
	fake_add_many(four, "d", 300, 3000);
	for (size_t i = 0; i < four->count; i++)
		four->files[i].version = 9;
	fake_add(four, "e/new", 5);
	is_int(0, appended(four, "v4", &opts), "nothing stays");
	appended_holds("v4", four, "nothing stays");
	ok(appended_segments("v4") <= 2, "segments without a sample are left out");
}

static void test_life(void)
{
	struct stele_append_opts opts = appended_options(0);
	struct fake one, two, three, four;
	uint8_t before[32], after[32];

	appended_device(24);
	fake_init(&one);
	fake_add_many(&one, "b", 300, 3000);
	fake_add_many(&one, "d", 300, 3000);
	appended_base(&one);
	appended_holds("v1", &one, "built");

	appended_copy(&two, &one);
	fake_add_many(&two, "c", 20, 500);
	fake_add(&two, "a/first", 10);
	fake_add(&two, "top", 70000);
	fake_add(&two, "d/zz", 0);
	stele_fault_log_clear(appended_dev);
	is_int(0, appended(&two, "v2", &opts), "23 samples are added");
	appended_counts(23, 0, 0, 600, "added");
	ok(written() < 250000, "%ju bytes are written", (uintmax_t)written());
	appended_holds("v2", &two, "added");
	appended_holds("v1", &one, "added");

	appended_digest("v2", before);
	stele_fault_log_clear(appended_dev);
	is_int(0, appended(&two, "again", &opts), "the same source again");
	appended_counts(0, 0, 0, 623, "again");
	appended_digest("again", after);
	ok(!memcmp(before, after, 32), "has the same digest");
	is_uint(appended_segments("v2"), appended_segments("again"), "and segments");
	ok(written() <= 5 * 4096, "%ju bytes are written",
	   (uintmax_t)written());

	appended_copy(&three, &two);
	three.files[5].version = 1;
	three.files[305].version = 2;
	three.files[610].version = 3; /* of the second segment */
	three.files[7].size = three.files[7].size_now = 4000;
	appended_remove(&three, 100);
	appended_remove(&three, 615);
	is_int(0, appended(&three, "kept", &opts), "changes are no matter");
	appended_counts(0, 0, 0, 623, "no flags");
	appended_holds("kept", &two, "no flags");
	opts = appended_options(STELE_APPEND_UPDATE);
	is_int(0, appended(&three, "up", &opts), "unless asked for");
	appended_counts(0, 4, 0, 619, "update");
	opts = appended_options(ALL);
	opts.base = "v2";
	is_int(0, appended(&three, "v3", &opts), "and what is missing goes");
	appended_counts(0, 4, 2, 617, "all");
	is_string("v2", appended_report.base, "of the base that was named");
	appended_holds("v3", &three, "all");
	is_uint(3, appended_segments("v3"), "three segments");

	replace_all(&four);
	appended_holds("v1", &one, "in the end");
	appended_holds("v2", &two, "in the end");
	appended_holds("v3", &three, "in the end");
	appended_sound("in the end");
	fake_release(&one);
	fake_release(&two);
	fake_release(&three);
	fake_release(&four);
	stele_device_close(appended_dev);
}
static void test_empty(void)
{
	struct stele_append_opts opts = appended_options(ALL);
	struct fake none, some;

	appended_device(8);
	fake_init(&none);
	fake_init(&some);
	fake_add_many(&some, "x", 10, 100);
	appended_base(&none);
	is_int(0, appended(&none, "none", &opts), "nothing onto nothing");
	appended_holds("none", &none, "nothing");
	is_int(0, appended(&some, "some", &opts), "ten onto nothing");
	appended_holds("some", &some, "ten");
	is_int(0, appended(&none, "gone", &opts), "nothing onto ten");
	appended_counts(0, 0, 10, 0, "gone");
	appended_holds("gone", &none, "gone");
	is_int(0, appended(&some, "back", &opts), "and ten again");
	appended_holds("back", &some, "back");
	appended_sound("empty");
	is_int(-EEXIST, appended(&some, "back", &opts), "a name that is taken");
	opts.base = "nowhere";
	is_int(-ENOENT, appended(&some, "v9", &opts), "a base that is not there");
	fake_release(&none);
	fake_release(&some);
	stele_device_close(appended_dev);
}

/* What is not in this source may have changed in its own. */
static void test_quick_parts(struct fake *fake, struct stele_append_opts *opts)
{
	struct fake part;

	fake_init(&part);
	fake_add(&part, fake->files[0].key, fake->files[0].size);
	opts->time = APPENDED_NOW + 20;
	opts->base = "v6";
	is_int(0, appended(&part, "v7", opts), "quick, of a part");
	fake->files[9].version = 2;
	fake->files[9].changed = APPENDED_NOW + 10;
	opts->time = APPENDED_NOW + 30;
	opts->base = "v7";
	is_int(0, appended(fake, "v8", opts), "quick, of all again");
	appended_counts(0, 1, 0, 199, "what the part said nothing about");
	appended_holds("v8", fake, "quick, of a part");
	fake_release(&part);
}

/* What --quick opens, and what it may and may not miss. */
static void test_quick(void)
{
	struct stele_append_opts opts =
		appended_options(STELE_APPEND_UPDATE | STELE_APPEND_QUICK);
	struct fake fake;

	appended_device(8);
	fake_init(&fake);
	fake_add_many(&fake, "q", 200, 900);
	set_times(&fake, APPENDED_NOW - 1);
	appended_base(&fake);
	fake.opened_total = 0;
	is_int(0, appended(&fake, "v2", &opts), "quick, nothing changed");
	is_uint(0, fake.opened_total, "no file is opened");
	opts.flags = STELE_APPEND_UPDATE;
	is_int(0, appended(&fake, "v3", &opts), "the same, not quick");
	is_uint(200, fake.opened_total, "every file is opened");
	appended_counts(0, 0, 0, 200, "not quick");

	opts.flags |= STELE_APPEND_QUICK;
	fake.files[3].version = 1;
	fake.files[3].changed = APPENDED_NOW;
	fake.files[4].version = 1;
	fake.files[4].changed = INT64_MAX;
	fake.files[5].changed = APPENDED_NOW + 1;
	fake.files[6].size = fake.files[6].size_now = 5000;
	fake.opened_total = 0;
	is_int(0, appended(&fake, "v4", &opts), "quick, some changed");
	appended_counts(0, 3, 0, 197, "quick");
	is_uint(3 + 3, fake.opened_total,
		"three are hashed, and what changed is written");
	appended_holds("v4", &fake, "quick");
	appended_sound("quick");

	opts.time = APPENDED_NOW + 2;
	fake.opened_total = 0;
	is_int(0, appended(&fake, "v5", &opts), "quick, by the build's time");
	is_uint(3, fake.opened_total, "what changed since then is hashed again");
	opts.base = "v5";
	fake.opened_total = 0;
	is_int(0, appended(&fake, "v6", &opts), "quick, by a later time");
	is_uint(1, fake.opened_total, "the last append saw all the others");
	test_quick_parts(&fake, &opts);
	fake_release(&fake);
	stele_device_close(appended_dev);
}

/* Files that cannot be read any more: the sample that is there stays. */
static void test_lost(void)
{
	struct stele_append_opts opts = appended_options(STELE_APPEND_UPDATE);
	struct fake fake, model;

	appended_device(8);
	fake_init(&fake);
	fake_add_many(&fake, "q", 50, 900);
	appended_base(&fake);
	appended_copy(&model, &fake);
	fake.files[7].open_error = -EACCES; /* of the same size: when hashed */
	is_int(-EACCES, appended(&fake, "v2", &opts),
	       "a file that cannot be hashed");
	fake.files[8].size_now--;
	fake.files[9].size = fake.files[9].size_now = 3000; /* when written */
	fake.files[9].open_error = -ENOENT;
	fake_add(&fake, "q/new", 100)->open_error = -ENOENT;
	fake_add(&fake, "q/newer", 100);
	fake_add(&model, "q/newer", 100);
	opts.flags |= STELE_BUILD_SKIP_CHANGED;
	is_int(0, appended(&fake, "v2", &opts), "or is left out");
	appended_counts(1, 0, 0, 50, "left out");
	is_uint(4, appended_report.skipped[STELE_SKIP_UNREADABLE] +
			   appended_report.skipped[STELE_SKIP_CHANGED] +
			   appended_report.skipped[STELE_SKIP_VANISHED],
		"each is told");
	appended_holds("v2", &model, "left out");
	/* Nothing of the new segment lives: it is as if it had not been. */
	fake.files[51].size = 0;
	appended_remove(&fake, 51);
	is_int(0, appended(&fake, "v3", &opts), "all that is new goes away");
	appended_counts(0, 0, 0, 51, "all goes");
	is_uint(appended_segments("v2"), appended_segments("v3"), "no segment is left");
	appended_holds("v3", &model, "all goes");
	appended_sound("left out");
	fake_release(&fake);
	fake_release(&model);
	stele_device_close(appended_dev);
}

/* However little memory there is, the digests of the base are read once. */
static void test_digests(void)
{
	struct stele_append_opts opts = appended_options(STELE_APPEND_UPDATE);
	const struct stele_fault_entry *log;
	struct stele_section section;
	struct stele_dataset *ds;
	uint64_t begin, bytes = 0;
	struct fake fake;
	size_t count;

	appended_device(64);
	fake_init(&fake);
	fake_add_many(&fake, "a", 40000, 20);
	appended_base(&fake);
	ds = appended_open("v1");
	if (!ds || stele_descriptor_find_section(
			   &ds->snapshot.segments[0].descriptor,
			   STELE_BLOCK_DIGESTS, STELE_NO_FIELD, &section) < 0)
		bail("no digests");
	begin = ds->snapshot.segments[0].descriptor.offset + section.offset;
	stele_dataset_close(ds);
	opts.memory_size = STELE_MEMORY_MIN;
	stele_fault_log_clear(appended_dev);
	is_int(0, appended(&fake, "v2", &opts), "nothing has changed");
	appended_counts(0, 0, 0, 40000, "little memory");
	log = stele_fault_log(appended_dev, &count);
	for (size_t i = 0; i < count; i++)
		if (log[i].op == STELE_OP_READ && log[i].offset >= begin &&
		    log[i].offset < begin + section.size)
			bytes += log[i].size;
	is_uint(section.size, bytes, "its digests are read once");
	fake_release(&fake);
	stele_device_close(appended_dev);
}

int main(void)
{
	plan_lazy();
	test_digests();
	test_life();
	test_empty();
	test_quick();
	test_lost();
	return done();
}
