/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-commit.c - several changes of an image, seen by readers all at once or never
 *
 * Through the public calls alone: a directory is added twice, samples of the base and
 * of what was just added are deleted, snapshots go and get other names. What other
 * opens of the image see before and after the commit, and without one, is compared.
 */
#include "lib/stele.h"
#include "tests/fixture/files.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char image[512];

static const char *at(const char *name)
{
	static char text[600];

	snprintf(text, sizeof(text), "%s@%s", image, name);
	return text;
}

/* -ENOENT and the like of a snapshot, or how many samples it has. */
static int64_t count_of(const char *name)
{
	struct stele_dataset_info info = {.size = sizeof(info)};
	struct stele_dataset *ds;
	int ret = stele_dataset_open(at(name), NULL, &ds);

	if (ret < 0)
		return ret;
	stele_dataset_info(ds, &info);
	stele_dataset_close(ds);
	return (int64_t)info.sample_count;
}

static struct stele_txn *begin(uint32_t flags)
{
	const struct stele_txn_opts opts = {.size = sizeof(opts),
					    .flags = flags};
	struct stele_txn *txn = NULL;

	if (!is_int(0, stele_txn_open(image, &opts, &txn), "open"))
		bail("%s", stele_errmsg());
	return txn;
}

static void test_all_at_once(void)
{
	const struct stele_key_ref keys[] = {{"0103", 4}, {"0001", 4}};
	const struct stele_key_ref none = {"0001", 4};
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_txn *txn = begin(0), *second = NULL;

	is_int(-EBUSY, stele_txn_open(image, NULL, &second), "one at a time");
	is_int(0, stele_txn_add(txn, test_files("b", 100, 110, 0), NULL, &report),
	       "add");
	is_uint(10, report.added, "all files are new");
	is_int(0, stele_txn_delete(txn, keys, 2),
	       "delete of the base and of what was added");
	is_int(-ENOENT, stele_txn_delete(txn, &none, 1), "and not twice");
	is_int(0, stele_txn_add(txn, test_files("c", 200, 205, 0), NULL, &report),
	       "add again");
	is_int(0, stele_txn_snapshot(txn, "next", NULL, NULL), "snapshot");
	is_int(-EEXIST, stele_txn_snapshot(txn, "next", NULL, NULL),
	       "a name once");
	is_int(0, stele_txn_drop(txn, "v1"), "drop");
	is_int(0, stele_txn_rename(txn, "next", "v1"), "rename to what went");
	is_int(20, count_of("v1"), "before: as it was");
	is_int(-ENOENT, count_of("next"), "before: nothing new");
	is_int(0, stele_txn_commit(txn), "commit");
	is_int(33, count_of("v1"), "after: all of it");
	is_int(-ENOENT, count_of("next"), "after: by its last name");
	is_int(0, stele_txn_commit(txn), "nothing is left to commit");
	stele_txn_close(txn);
	is_int(0, stele_verify(image, NULL, NULL), "sound");
}

static void test_given_up(void)
{
	struct stele_txn *txn = begin(0);

	is_int(0, stele_txn_add(txn, test_files("d", 300, 310, 0), NULL, NULL),
	       "add");
	is_int(0, stele_txn_snapshot(txn, "v2", NULL, NULL), "snapshot");
	is_int(0, stele_txn_drop(txn, "v1"), "drop");
	stele_txn_close(txn);
	is_int(33, count_of("v1"), "close: as it was");
	is_int(-ENOENT, count_of("v2"), "close: nothing new");
	txn = begin(STELE_DRY_RUN);
	is_int(0, stele_txn_add(txn, test_files("e", 300, 310, 0), NULL, NULL),
	       "dry run: add");
	is_int(0, stele_txn_snapshot(txn, "v2", NULL, NULL), "dry run: snapshot");
	is_int(0, stele_txn_commit(txn), "dry run: commit");
	stele_txn_close(txn);
	is_int(-ENOENT, count_of("v2"), "dry run: nothing new");
	is_int(0, stele_verify(image, NULL, NULL), "sound");
}

/* What a dry run was given is there for what follows in it, as in a real one. */
static void test_dry(void)
{
	const struct stele_key_ref keys[] = {{"0703", 4}, {"0012", 4}};
	const struct stele_key_ref gone = {"0703", 4};
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_snapshot_info made = {.size = sizeof(made)};
	struct stele_txn *txn = begin(STELE_DRY_RUN);

	is_int(0, stele_txn_add(txn, test_files("h", 700, 710, 0), NULL, NULL),
	       "dry run: add");
	is_int(0, stele_txn_add(txn, test_files("i", 705, 715, 0), NULL, &report),
	       "dry run: add more");
	is_uint(5, report.added, "dry run: what was added is known");
	is_uint(43, report.unchanged, "dry run: to the second source, too");
	is_int(0, stele_txn_delete(txn, keys, 2), "dry run: delete of both");
	is_int(-ENOENT, stele_txn_delete(txn, &gone, 1), "dry run: it is gone");
	is_int(0, stele_txn_snapshot(txn, "v2", NULL, &made), "dry run: snapshot");
	is_uint(46, made.sample_count, "dry run: so many samples");
	is_int(-EEXIST, stele_txn_snapshot(txn, "v2", NULL, NULL),
	       "dry run: its name is taken");
	is_int(0, stele_txn_base(txn, "v2"), "dry run: start from it");
	is_int(-ENOENT, stele_txn_delete(txn, &gone, 1), "dry run: still gone");
	is_int(0, stele_txn_drop(txn, "v1"), "dry run: drop");
	is_int(0, stele_txn_commit(txn), "dry run: commit");
	is_int(0, stele_txn_drop(txn, "v2"), "dry run: it goes on from there");
	is_int(-EEXIST, stele_txn_commit(txn), "dry run: the last snapshot stays");
	stele_txn_close(txn);
	is_int(33, count_of("v1"), "dry run: as it was");
	is_int(-ENOENT, count_of("v2"), "dry run: nothing new");
}

/* FNV-1a of the image's file. */
static uint64_t sum_of_image(void)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);
	FILE *file = fopen(image, "r");
	int c;

	while (file && (c = getc(file)) != EOF)
		sum = (sum ^ (uint64_t)c) * UINT64_C(0x100000001b3);
	if (!file || fclose(file))
		sysbail("cannot read '%s'", image);
	return sum;
}

static void check_same(struct stele_txn *txn,
		       const struct stele_txn_preview *wanted, const char *when)
{
	struct stele_txn_preview again = {.size = sizeof(again)};

	is_int(0, stele_txn_preview(txn, &again), "preview %s", when);
	ok(!memcmp(wanted, &again, sizeof(again)), "says the same %s", when);
}

/* `flags`: of the transaction. What is foretold is what the commit does. */
static void test_preview(uint32_t flags, const char *dir, unsigned int first)
{
	struct stele_txn_preview report = {.size = sizeof(report)};
	struct stele_build_report added = {.size = sizeof(added)};
	struct stele_txn *txn = begin(flags);
	uint64_t before;

	is_int(0, stele_txn_preview(txn, &report), "preview of nothing");
	is_uint(0, report.metadata_size + report.snapshots_added, "is nothing");
	is_int(0, stele_txn_add(txn, test_files(dir, first, first + 9, 0), NULL,
				&added), "add");
	is_int(0, stele_txn_snapshot(txn, "v9", NULL, NULL), "snapshot");
	is_int(0, stele_txn_rename(txn, "v1", "old"), "rename");
	is_int(0, stele_txn_resize(txn, 128 << 20, NULL), "resize");
	before = sum_of_image();
	is_int(0, stele_txn_preview(txn, &report), "preview");
	is_uint(1, report.snapshots_added, "one snapshot more");
	is_uint(1, report.snapshots_renamed, "one has another name");
	is_uint(0, report.snapshots_dropped, "none goes");
	is_uint(1, report.segments_added, "one segment more");
	ok(report.added_size > 9 && report.added_size < 1 << 20, "so large");
	is_uint(0, report.segments_freed + report.unused_size, "none is freed");
	ok(report.metadata_size >= 3 * 4096, "a catalog and a superblock twice");
	is_uint(128 << 20, report.image_size, "what the image may use");
	check_same(txn, &report, "again");
	is_uint(before, sum_of_image(), "not one byte was changed");
	report.size = 8;
	is_int(-EINVAL, stele_txn_preview(txn, &report), "no size");
	report.size = sizeof(report);
	is_int(0, stele_txn_drop(txn, "old"), "drop");
	is_int(0, stele_txn_drop(txn, "v9"), "drop all");
	is_int(-EEXIST, stele_txn_preview(txn, NULL), "a preview refuses it");
	is_int(-EEXIST, stele_txn_commit(txn), "as the commit does");
	ok(strstr(stele_errmsg(), "no snapshot would be left") != NULL,
	   "with the same message");
	stele_txn_close(txn);
}

/* A preview, then what it was of. */
static void test_foretold(void)
{
	struct stele_txn_preview report = {.size = sizeof(report)};
	struct stele_image_info info = {.size = sizeof(info)};
	struct stele_txn *txn = begin(STELE_FORCE);
	struct stele_image *opened;
	uint32_t segments;

	is_int(0, stele_image_open(image, NULL, &opened), "open");
	stele_image_info(opened, &info);
	stele_image_close(opened);
	segments = info.segment_count;
	is_int(0, stele_txn_add(txn, test_files("x", 950, 960, 0), NULL, NULL), "add");
	is_int(0, stele_txn_snapshot(txn, "v3", NULL, NULL), "snapshot");
	is_int(0, stele_txn_snapshot(txn, "v4", NULL, NULL), "another one");
	is_int(0, stele_txn_drop(txn, "v1"), "drop");
	is_int(0, stele_txn_free(txn, NULL, NULL, NULL), "free");
	is_int(0, stele_txn_preview(txn, &report), "preview");
	check_same(txn, &report, "again");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);
	is_int(0, stele_image_open(image, NULL, &opened), "open");
	stele_image_info(opened, &info);
	stele_image_close(opened);
	is_uint(segments + report.segments_added - report.segments_freed,
		info.segment_count, "as many segments as foretold");
	is_uint(report.image_size, info.image_size, "and as large");
	is_int(0, stele_verify(image, NULL, NULL), "sound");
}

/* Its feature is not the image's before the commit. */
static void test_boundary(void)
{
	const struct stele_add_opts opts = {.size = sizeof(opts),
					    .boundary = 1 << 20};
	struct stele_build_report report = {.size = sizeof(report)};
	struct stele_txn *txn = begin(0);
	const struct stele_key_ref key = {"0401", 4};

	is_int(0, stele_txn_add(txn, test_files("f", 400, 410, 0), &opts, &report),
	       "add with a boundary");
	is_int(0, stele_txn_delete(txn, &key, 1), "delete of it");
	is_int(0, stele_txn_snapshot(txn, "v2", NULL, NULL), "snapshot");
	is_int(0, stele_txn_base(txn, "v2"), "start from it");
	is_int(0, stele_txn_commit(txn), "commit");
	stele_txn_close(txn);
	is_int(42, count_of("v2"), "all of it");
	is_int(0, stele_verify(image, NULL, NULL), "sound");
}

int main(void)
{
	plan_lazy();
	snprintf(image, sizeof(image), "%s/image", test_tmpdir());
	if (stele_build(test_files("a", 0, 20, 0), at("v1"),
			&STELE_OPTS(stele_build_opts, .file_size = 64 << 20),
			NULL) < 0)
		bail("%s", stele_errmsg());
	test_all_at_once();
	test_given_up();
	test_dry();
	test_preview(0, "p", 900);
	test_preview(STELE_DRY_RUN, "q", 920);
	test_boundary();
	test_foretold();
	return done();
}
