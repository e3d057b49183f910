/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image-faults.c - the n-th operation fails: never a false success
 *
 * For each way to fail, and each operation of a build, a load and a verify in
 * turn, once and for good. What reports success must be there; what
 * reports failure must have left what was there, or the whole of the new.
 */
#include "tests/fixture/edit.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"
#include "lib/verify/verify.h"
#include "tests/device/fault.h"

#define IMAGE_SIZE (UINT64_C(0x200000) + 64 * 4096)
#define OPS_MAX	   200u
#define COMMITS	   3u

static struct test_sample *samples;
static const char *const names[COMMITS] = {"a", "b", "c"};

static const struct {
	enum stele_fault_kind kind;
	int error;
	uint64_t arg;
	const char *name;
	bool hidden; /* the device claims success */
} ways[] = {
	{STELE_FAULT_FAIL, EIO, 0, "EIO", false},
	{STELE_FAULT_FAIL, ENOSPC, 0, "ENOSPC", false},
	{STELE_FAULT_SHORTEN, 0, 512, "short", false},
	{STELE_FAULT_TEAR, 0, 512, "torn", true},
	{STELE_FAULT_LOSE, 0, 0, "lost", true},
	{STELE_FAULT_MISDIRECT, 0, 4096, "misdirected", true},
};

/*
 * Commits that add a segment, add another one beside it, and free the first.
 * *committed: how many said that they succeeded.
 */
static int build(struct stele_device *dev, unsigned int *committed)
{
	static const uint64_t deleted[] = {2};
	struct test_edit t;
	uint64_t ids[2];
	int ret;

	*committed = 0;
	ret = test_edit_create(&t, dev, IMAGE_SIZE);
	for (uint32_t i = 0; i < COMMITS && ret == 0; i++) {
		if (i < 2)
			ret = test_edit_segment(&t, samples + 5 * i, 5,
						&ids[i]);
		if (ret == 0)
			ret = test_edit_snapshot(&t, names[i],
						 i == 2 ? ids + 1 : ids,
						 i == 1 ? 2 : 1, deleted, 1);
		if (ret == 0 && i == 2) {
			stele_txn_remove_snapshot(&t.edit, names[0]);
			stele_txn_remove_snapshot(&t.edit, names[1]);
			test_edit_collect(&t);
		}
		if (ret == 0)
			ret = stele_txn_publish(&t.edit, 1700000000 + i);
		*committed += ret == 0;
	}
	test_edit_end(&t);
	return ret;
}

/* The newest generation that is there, whole; 0: unfinished; else an error. */
static int64_t recover(struct stele_device *dev)
{
	struct stele_snapshot snapshot;
	struct stele_image image;
	int64_t generation;
	int ret = stele_image_load(dev, NULL, &image);

	if (ret < 0)
		return ret == -EINPROGRESS ? 0 : ret;
	generation = (int64_t)image.sb.generation;
	for (uint32_t i = 0; i < image.catalog.counts.snapshots && !ret; i++) {
		ret = stele_snapshot_load(&image, i, &snapshot);
		if (ret == 0)
			stele_snapshot_release(&snapshot);
	}
	image.dev = NULL;
	stele_image_release(&image);
	return ret < 0 ? ret : generation;
}

static struct stele_device *open_fault(void)
{
	struct stele_device *inner, *dev;

	if (stele_device_open_memory(IMAGE_SIZE, 512, &inner) < 0 ||
	    stele_device_open_fault(inner, NULL, 0, &dev) < 0)
		bail("no device");
	return dev;
}

static void set_fault(struct stele_device *dev, size_t way, uint64_t nth,
		      bool sticky)
{
	const struct stele_fault_rule rule = {
		.kind = ways[way].kind, .first = nth, .count = sticky ? 0 : 1,
		.ops = ways[way].hidden ? 1u << STELE_OP_WRITE : 0,
		.error = ways[way].error, .arg = ways[way].arg,
	};

	if (stele_fault_set_rules(dev, &rule, 1) < 0)
		bail("no rule");
}

/* Of the mirror of a catalog, which a commit can do without? */
static bool is_of_mirror(const struct stele_fault_entry *log, uint64_t nth)
{
	while (log[nth].op == STELE_OP_FLUSH && nth > 0)
		nth--;
	return log[nth].op == STELE_OP_WRITE &&
	       log[nth].offset >= STELE_CATALOG_MIRRORS_OFFSET &&
	       log[nth].offset < STELE_DATA_OFFSET;
}

/* Return: was it as it must be? *fired: did the fault happen? */
static bool try_build(size_t way, uint64_t nth, bool sticky, bool *fired)
{
	struct stele_device *dev = open_fault();
	unsigned int committed;
	int64_t generation;
	const struct stele_fault_entry *log;
	bool good, dispensable;
	size_t count;
	int ret;

	set_fault(dev, way, nth, sticky);
	ret = build(dev, &committed);
	*fired = stele_fault_count(dev) > nth;
	log = stele_fault_log(dev, &count);
	dispensable = *fired && (log[nth].op == STELE_OP_READ || is_of_mirror(log, nth));
	stele_fault_set_rules(dev, NULL, 0);
	generation = recover(dev);
	good = ret == 0 ? committed == COMMITS : committed < COMMITS;
	/* Lost writes of a segment are for verify; of metadata for commit. */
	if (!ways[way].hidden && generation != -EMEDIUMTYPE)
		good = good && generation >= committed &&
		       generation <= committed + 1;
	if (generation == -EMEDIUMTYPE)
		good = good && committed == 0;
	if (ways[way].kind == STELE_FAULT_FAIL)
		good = good && (ret == 0 || ret == -ways[way].error);
	/*
	 * Only a read is allowed to fail, where there is another copy to read, or a mirror;
	 * and what block 0 shows, for good.
	 */
	if (ways[way].kind == STELE_FAULT_FAIL && ret == 0 && *fired)
		good = good && dispensable && (!sticky || log[nth].offset == 0);
	stele_device_close(dev);
	return good;
}

static void check_builds(void)
{
	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (int sticky = 0; sticky < 2; sticky++) {
			uint64_t bad = 0, nth;
			bool fired = true;

			for (nth = 0; fired && nth < OPS_MAX; nth++)
				bad += !try_build(way, nth, sticky, &fired);
			is_uint(0, bad, "build: %s%s at each of %ju operations",
				ways[way].name, sticky ? " for good" : "",
				(uintmax_t)nth - 1);
		}
}

/* A commit whose superblock or catalog went astray must not say success. */
static void check_lying(void)
{
	unsigned int wrong = 0, caught = 0;

	for (size_t way = 3; way < sizeof(ways) / sizeof(ways[0]); way++)
		for (uint64_t nth = 0; nth < OPS_MAX; nth++) {
			struct stele_device *dev = open_fault();
			unsigned int committed;

			set_fault(dev, way, nth, false);
			build(dev, &committed);
			stele_fault_set_rules(dev, NULL, 0);
			/* The newest generation that was promised is found. */
			if (committed && recover(dev) == 0)
				wrong++;
			caught += committed < COMMITS;
			stele_device_close(dev);
		}
	is_uint(0, wrong, "no commit is acknowledged and not there");
	ok(caught > 10, "%u lies were caught", caught);
}

static void check_loads(void)
{
	struct stele_device *dev = open_fault();
	unsigned int committed;

	if (build(dev, &committed) < 0)
		bail("build");
	for (size_t way = 0; way < 3; way++)
		for (int sticky = 0; sticky < 2; sticky++) {
			uint64_t before, bad = 0, nth;

			for (nth = 0; nth < OPS_MAX; nth++) {
				int64_t generation;

				before = stele_fault_count(dev);
				set_fault(dev, way, before + nth, sticky);
				generation = recover(dev);
				bad += generation != COMMITS && generation >= 0;
				if (stele_fault_count(dev) <= before + nth)
					break;
			}
			is_uint(0, bad, "load: %s%s at each of %ju operations",
				ways[way].name, sticky ? " for good" : "",
				(uintmax_t)nth);
		}
	stele_device_close(dev);
}

static void count_damage(void *user, const struct stele_damage *damage)
{
	*(unsigned int *)user += damage->error == -EIO;
}

static void check_verify(void)
{
	struct stele_device *dev = open_fault();
	struct stele_image image;
	unsigned int committed, missed = 0;
	uint64_t nth;

	if (build(dev, &committed) < 0 ||
	    stele_image_load(dev, NULL, &image) < 0)
		bail("build");
	for (nth = 0; nth < OPS_MAX; nth++) {
		struct stele_verify_report report = {.size = sizeof(report)};
		unsigned int damaged = 0;
		const struct stele_verify_opts opts = {
			.size = sizeof(opts), .damage = count_damage,
			.damage_user = &damaged, .jobs = 1,
		};
		uint64_t before = stele_fault_count(dev);
		int ret;

		set_fault(dev, 0, before + nth, true);
		ret = stele_verify_image(&image, -1, &opts, &report);
		if (stele_fault_count(dev) <= before + nth)
			break;
		if (ret == 0 || (ret == 1 && damaged == 0)) {
			missed++;
			diag("operation %ju: %d", (uintmax_t)nth, ret);
		}
	}
	is_uint(0, missed, "verify: EIO from each of %ju operations on is said",
		(uintmax_t)nth);
	stele_image_release(&image);
}

int main(void)
{
	plan_lazy();
	samples = test_samples(15, 400, 3);
	check_builds();
	check_lying();
	check_loads();
	check_verify();
	free(samples);
	return done();
}
