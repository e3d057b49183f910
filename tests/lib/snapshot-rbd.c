/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot-rbd.c - where the storage keeps RBD snapshots: tombstoned, removed, collected
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/txn/txn.h"
#include "lib/txn/rbd.h"
#include "tests/fixture/change.h"
#include "tests/fixture/image.h"
#include "tests/device/memory.h"
#include "tests/device/snaps.h"
#include "tests/tap.h"

#define NOW INT64_C(1700001000)

static struct test_storage *storage;
static struct test_log messages;

/* "v1" of one sample, and "other", which is somebody else's RBD snapshot. */
static void new_storage(void)
{
	static const struct test_sample sample = {.key = "k", .data = "d",
						  .size = 1};
	const struct test_segment segment = {.samples = &sample, .count = 1};

	storage = test_storage_new(test_image_simple(&segment, NULL, 0, 0));
	test_storage_make(storage, "other", false);
	test_storage_make(storage, "v1", true);
}

static void open_writer(struct stele_txn *writer)
{
	test_log_init(&messages);
	memset(writer, 0, sizeof(*writer));
	if (stele_txn_on_device(writer, test_storage_open(storage),
			       &messages.log))
		bail("no writer: %s", messages.text);
}

static struct stele_txn_opts change_at(int64_t time, uint64_t grace,
				     uint32_t flags)
{
	return (struct stele_txn_opts){
		.size = sizeof(struct stele_txn_opts),
		.time = time,
		.grace = grace,
		.flags = flags,
	};
}

static int delete_v1(int64_t time, uint64_t grace, uint32_t flags)
{
	const struct stele_txn_opts change = change_at(time, grace, flags);
	struct stele_txn writer;
	int ret;

	open_writer(&writer);
	ret = test_change_delete(&writer, &change, "v1");
	stele_txn_release(&writer);
	return ret;
}

static int collect(int64_t time, uint64_t grace, uint32_t flags, bool apply,
		   struct stele_gc_report *report)
{
	const struct stele_txn_opts change = change_at(
		time, grace, flags | (apply ? 0 : STELE_DRY_RUN));
	struct stele_txn writer;
	int ret;

	open_writer(&writer);
	ret = test_change_gc(&writer, &change, NULL,
			   NULL, report);
	stele_txn_release(&writer);
	return ret;
}

static void check_names(void)
{
	static const struct {
		const char *snap;
		int64_t until;
		const char *name; /* NULL: it is none */
	} cases[] = {
		{"stele-tombstone-1700001000-v1", 1700001000, "v1"},
		{"stele-tombstone-5-a-b", 5, "a-b"},
		{"stele-tombstone-5-", 0, NULL},
		{"stele-tombstone--5-v1", 0, NULL},
		{"stele-tombstone-v1", 0, NULL},
		{"stele-tombstone-99999999999999999999-v1", 0, NULL},
		{"stele-tombstoned", 0, NULL},
		{"my-stele-tombstone-5-v1", 0, NULL},
		{"v1", 0, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *name = NULL;
		int64_t until = 0;
		bool is = stele_tombstone_parse(cases[i].snap, &until, &name);

		ok(is == (cases[i].name != NULL) &&
			   (!is || (until == cases[i].until &&
				    !strcmp(name, cases[i].name))),
		   "'%s'", cases[i].snap);
	}
}

static void check_delete(void)
{
	struct stele_gc_report report = {.size = sizeof(report)};
	struct stele_txn writer;

	new_storage();
	is_int(-EBUSY, delete_v1(NOW, 0, 0), "neither grace nor force");
	ok(test_log_has(&messages, "readers on other machines"), "it says why");
	is_string("other- v1+", test_storage_list(storage), "nothing happened");
	is_int(0, delete_v1(NOW, 60, 0), "with a grace period");
	is_string("other- stele-tombstone-1700001060-v1+",
		  test_storage_list(storage), "tombstoned, and protected");
	is_int(0, collect(NOW + 60, 1, 0, false, &report), "a dry run");
	is_uint(2, report.unused_count, "lists the segment and the RBD snapshot");
	is_int(0, collect(NOW + 59, 3600, 0, true, &report), "too early");
	is_uint(0, report.freed_count, "nothing is freed");
	is_int(0, collect(NOW + 60, 3600, 0, true, &report), "in time");
	is_uint(1, report.freed_count, "the RBD snapshot, not yet the segment");
	is_string("other-", test_storage_list(storage),
		  "removed; that of others is not touched");
	test_storage_free(storage);

	new_storage();
	open_writer(&writer);
	is_int(0, stele_txn_publish(&writer, NOW), "a commit");
	stele_txn_release(&writer);
	is_int(0, delete_v1(5, 60, 0), "and a clock that is slow");
	is_string("other- stele-tombstone-1700001060-v1+",
		  test_storage_list(storage), "readers have their grace");
	test_storage_free(storage);

	new_storage();
	is_int(0, delete_v1(NOW, 0, STELE_FORCE), "with force");
	is_string("other-", test_storage_list(storage), "removed at once");
	test_storage_free(storage);

	new_storage();
	is_int(0, delete_v1(NOW, 1000000, 0), "a long grace period");
	is_int(0, collect(NOW, 0, STELE_FORCE, true, &report),
	       "and force to collect");
	is_string("other-", test_storage_list(storage), "removed");
	test_storage_free(storage);
}

static void check_rename(void)
{
	struct stele_txn_opts change;
	struct stele_txn writer;

	new_storage();
	open_writer(&writer);
	change = change_at(NOW, 0, 0);
	is_int(-EBUSY, test_change_rename(&writer, &change, "v1", "w"),
	       "rename: neither grace nor force");
	stele_txn_release(&writer);
	open_writer(&writer);
	change = change_at(NOW, 60, 0);
	is_int(0, test_change_rename(&writer, &change, "v1", "w"), "rename");
	is_string("other- stele-tombstone-1700001060-v1+ w+",
		  test_storage_list(storage),
		  "the old RBD snapshot is tombstoned, a new one made");
	/* The same name again, tombstoned until the same second. */
	is_int(0, test_change_rename(&writer, &change, "w", "v1"), "and back");
	is_int(0, test_change_rename(&writer, &change, "v1", "w"), "and again");
	is_string("other- stele-tombstone-1700001060-v1+ "
		  "stele-tombstone-1700001060-w+ "
		  "stele-tombstone-1700001061-v1+ w+",
		  test_storage_list(storage), "each has a name of its own");
	is_int(-EEXIST, test_change_rename(&writer, &change, "w", "other"),
	       "somebody else's RBD snapshot has that name");
	ok(strstr(test_storage_list(storage), " w+") != NULL,
	   "and the old one is as it was");
	stele_txn_release(&writer);
	test_storage_free(storage);
}

/*
 * An image from before such names were reserved: snapshots "v1" and "x", and
 * one that is called as "x" would be, were it tombstoned until 1700001060.
 */
#define CLASHING "stele-tombstone-1700001060-x"

static void new_clashing(void)
{
	static const struct test_sample sample = {.key = "k", .data = "d",
						  .size = 1};
	static const char *const names[] = {"v1", "x", CLASHING};
	const struct test_segment segment = {.samples = &sample, .count = 1};
	const uint64_t size = UINT64_C(4) << 20;
	static struct test_image t;

	if (test_image_begin(&t, test_memory(size, 512, 0), size) < 0 ||
	    test_image_segment(&t, &segment) < 0)
		bail("test image: failed");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (test_image_snapshot(&t, names[i], NULL, 0) < 0)
			bail("test image: no snapshot");
	if (test_image_commit(&t) < 0)
		bail("test image: no commit");
	storage = test_storage_new(test_image_end(&t));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		test_storage_make(storage, names[i], true);
}

static void check_clash(void)
{
	struct stele_txn_opts change = change_at(NOW, 60, 0);
	struct stele_gc_report report = {.size = sizeof(report)};
	struct stele_txn writer;

	new_clashing();
	is_int(0, collect(NOW, 0, STELE_FORCE, true, &report),
	       "gc by force, with a snapshot that is called like a tombstoned one");
	is_uint(0, report.unused_count, "it is none");
	is_string("v1+ x+ " CLASHING "+", test_storage_list(storage),
		  "and keeps its RBD snapshot");
	open_writer(&writer);
	is_int(0, test_change_delete(&writer, &change, "x"),
	       "one that goes, whose name as a tombstoned one is taken");
	stele_txn_release(&writer);
	is_string("v1+ stele-tombstone-1700001061-x+ " CLASHING "+",
		  test_storage_list(storage), "takes the next");
	open_writer(&writer);
	is_int(0, test_change_delete(&writer, &change, CLASHING),
	       "and the other goes, too");
	stele_txn_release(&writer);
	is_string("v1+ stele-tombstone-1700001061-x+ "
		  "stele-tombstone-1700001060-" CLASHING "+",
		  test_storage_list(storage), "under a name like all");
	is_int(0, collect(NOW + 61, 3600, 0, true, &report), "gc in time");
	is_string("v1+", test_storage_list(storage), "removes both");
	open_writer(&writer);
	is_int(-EINVAL, test_change_rename(&writer, &change, "v1", CLASHING),
	       "no snapshot gets such a name");
	stele_txn_release(&writer);
	test_storage_free(storage);
}

/*
 * Each change of an RBD snapshot fails in turn: the next writer finds one of both, the
 * snapshot with its RBD snapshot or neither.
 */
static void check_cut_short(uint64_t grace, uint32_t flags)
{
	unsigned int n;
	int ret = -EIO;

	for (n = 1; ret; n++) {
		struct stele_txn writer;
		bool there;

		new_storage();
		test_storage_fail(storage, n, -EIO);
		ret = delete_v1(NOW, grace, flags);
		test_storage_fail(storage, 0, 0);
		open_writer(&writer);
		there = stele_txn_find(&writer, "v1") != NULL;
		stele_txn_release(&writer);
		ok(there == (strstr(test_storage_list(storage), " v1+") != NULL),
		   "change %u fails (%d): %s, '%s'", n, ret,
		   there ? "there" : "gone", test_storage_list(storage));
		ok(!ret == !there, "as is said");
		test_storage_free(storage);
		if (n > 20)
			bail("never succeeds");
	}
}

int main(void)
{
	plan_lazy();
	setenv("STELE_RUN_DIR", test_tmpdir(), 1);
	check_names();
	check_delete();
	check_rename();
	check_clash();
	check_cut_short(60, 0);
	check_cut_short(0, STELE_FORCE);
	return done();
}
