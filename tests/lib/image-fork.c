/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image-fork.c - two writers have published one generation
 *
 * Each on a copy of the image, in space of its own; then the blocks of both lie on one
 * device, the slot from the one and its mirror from the other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/image/snapshot.h"
#include "lib/txn/txn.h"
#include "lib/verify/verify.h"
#include "tests/device/fault.h"
#include "tests/fixture/edit.h"
#include "tests/device/memory.h"
#include "tests/crash/model.h"
#include "tests/tap.h"

#define IMAGE_SIZE (UINT64_C(0x200000) + 80 * 4096)

static const uint64_t offsets[] = STELE_SUPERBLOCK_OFFSETS;
static struct test_sample *samples;
static uint8_t *before; /* both writers */
static uint8_t *forked;
static struct test_log messages;

static uint8_t *bytes_of(struct stele_device *dev)
{
	uint8_t *copy = malloc(IMAGE_SIZE);

	if (!copy)
		bail("no memory");
	return memcpy(copy, stele_device_memory(dev), IMAGE_SIZE);
}

static void add(struct test_edit *t, const char *name, unsigned int first,
		bool drop_old)
{
	uint64_t id;

	if (drop_old)
		stele_txn_remove_snapshot(&t->edit, "old");
	if (test_edit_segment(t, samples + first, 3, &id) ||
	    test_edit_snapshot(t, name, &id, 1, NULL, 0) ||
	    stele_txn_publish(&t->edit, 1700000000 + first))
		bail("a commit failed");
}

/* "old" goes on one branch only; the other one begins behind some space. */
static uint8_t *make_branch(struct stele_device *dev, const char *name,
			  unsigned int first)
{
	struct test_edit t;
	uint64_t pad;

	memcpy(stele_device_memory(dev), before, IMAGE_SIZE);
	if (test_edit_load(&t, dev) ||
	    (first > 9 && stele_txn_allocate(&t.edit, 24 * 4096, 0, &pad)))
		bail("a branch does not load");
	add(&t, name, first, first > 9);
	test_edit_end(&t);
	return bytes_of(dev);
}

static bool same(const uint8_t *a, const uint8_t *b, uint64_t offset)
{
	return !memcmp(a + offset, b + offset, STELE_BLOCK_SIZE);
}

static void make_fork(void)
{
	struct stele_device *dev = test_memory(IMAGE_SIZE, 512, 0);
	unsigned int both = 0;
	struct test_edit t;
	uint8_t *a, *b;

	if (test_edit_create(&t, dev, IMAGE_SIZE))
		bail("no image");
	add(&t, "old", 0, false);
	add(&t, "base", 3, false);
	test_edit_end(&t);
	before = bytes_of(dev);
	a = make_branch(dev, "a", 6);
	b = make_branch(dev, "b", 12);
	forked = bytes_of(dev);
	memcpy(forked, a, IMAGE_SIZE);
	for (uint64_t at = 0; at < IMAGE_SIZE; at += STELE_BLOCK_SIZE) {
		bool is_b = !same(b, before, at);

		if (is_b && at >= STELE_DATA_OFFSET)
			both += !same(a, before, at);
		if (is_b && (at >= STELE_DATA_OFFSET || at == offsets[2] ||
			     at == offsets[3]))
			memcpy(forked + at, b + at, STELE_BLOCK_SIZE);
	}
	is_uint(0, both, "each branch has space of its own");
	free(a);
	free(b);
	stele_device_close(dev);
}

static struct stele_device *open_fork(void)
{
	struct stele_device *inner = test_memory(IMAGE_SIZE, 512, 0), *dev;

	memcpy(stele_device_memory(inner), forked, IMAGE_SIZE);
	if (stele_device_open_fault(inner, NULL, 0, &dev))
		bail("no device");
	return dev;
}

static int find(const struct stele_image *image, const char *name)
{
	uint32_t index;

	return stele_snapshot_find(image, name, NULL, &index);
}

static void tell(void *user, const struct stele_damage *damage)
{
	(void)user;
	diag("%s: %s", damage->what, damage->detail);
}

static void check_readers(void)
{
	const struct stele_verify_opts opts = {.jobs = 1, .damage = tell};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_device *dev = open_fork();
	struct stele_snapshot snapshot;
	struct stele_image image;
	uint32_t index;

	test_log_init(&messages);
	is_int(0, stele_image_load(dev, &messages.log, &image), "a fork loads");
	ok(test_log_has(&messages, "two writers published at once"), "and is said");
	is_uint(1, image.catalog.counts.snapshots, "with what is in common");
	is_int(0, stele_snapshot_find(&image, "base", NULL, &index), "that");
	is_int(0, stele_snapshot_load(&image, index, &snapshot), "is read");
	stele_snapshot_release(&snapshot);
	is_int(-ENOTUNIQ, find(&image, "a"), "what one branch has is refused");
	is_int(-ENOTUNIQ, find(&image, "b"), "and of the other one");
	is_int(-ENOTUNIQ, find(&image, "old"), "what one branch has deleted");
	is_int(-ENOTUNIQ, find(&image, NULL), "the only one is not known");
	is_int(-ENOENT, find(&image, "c"), "what no branch has is not there");
	is_int(1, stele_verify_image(&image, -1, &opts, &report),
	       "verify says so");
	is_uint(1, report.damaged, "once, and nothing else");
	is_int(-ENOTUNIQ, stele_image_check_writable(&image), "no writer");
	stele_image_release(&image);
}

/* Return: what the writer said. */
static int choose(struct stele_device *dev, uint32_t branch)
{
	struct stele_txn writer = {.branch = branch};
	int ret = stele_txn_on_device(&writer, model_device(dev, 0), NULL);

	if (ret == 0)
		ret = stele_txn_publish(&writer, 1700000100);
	stele_txn_release(&writer);
	return ret;
}

static bool is_branch(struct stele_device *dev, uint32_t branch)
{
	const struct stele_verify_opts opts = {.jobs = 1};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;
	bool good;

	if (stele_image_load(dev, NULL, &image))
		return false;
	good = !image.fork && image.sb.generation == 4 &&
	       !find(&image, branch == 1 ? "a" : "b") &&
	       find(&image, branch == 1 ? "b" : "a") == -ENOENT &&
	       find(&image, "old") == (branch == 1 ? 0 : -ENOENT) &&
	       !find(&image, "base") &&
	       !stele_verify_image(&image, -1, &opts, &report) && !report.notes;
	image.dev = NULL;
	stele_image_release(&image);
	return good;
}

/* Cut short at each operation, for good, and done again. */
static void check_choices(uint32_t branch)
{
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.error = EIO};
	unsigned int n, bad = 0, failed = 0;
	int ret = -EIO;

	for (n = 0; ret && n < 500; n++) {
		struct stele_device *dev = open_fork();
		struct stele_image image;

		rule.first = n;
		stele_fault_set_rules(dev, &rule, 1);
		ret = choose(dev, branch);
		failed += ret != 0;
		stele_fault_set_rules(dev, NULL, 0);
		if (stele_image_load(dev, NULL, &image))
			bad++;
		else
			bad += find(&image, "base") != 0;
		image.dev = NULL;
		stele_image_release(&image);
		/* It may have been resolved before: then branch is of no account. */
		bad += ret && choose(dev, branch) != 0;
		stele_fault_log_clear(dev);
		if (ret == 0)
			ok(is_branch(dev, branch), "branch %u is the image", branch);
		stele_device_close(dev);
	}
	ok(failed > 10, "branch %u: %u operations fail", branch, failed);
	is_uint(0, bad, "and it can always be done again");
}

static void check_public(void)
{
	struct stele_repair_report report = {.size = sizeof(report)};
	struct stele_device *dev = open_fork();
	char path[4200];

	snprintf(path, sizeof(path), "%s/fork", test_tmpdir());
	stele_device_close(dev);
	dev = test_memory(IMAGE_SIZE, 512, 0);
	memcpy(stele_device_memory(dev), forked, IMAGE_SIZE);
	test_memory_save(dev, path);
	stele_device_close(dev);
	is_int(-ENOTUNIQ, stele_repair(path, &STELE_OPTS(stele_repair_opts,
			.flags = STELE_DRY_RUN), &report), "a look");
	is_uint(2, report.branches, "two branches");
	is_int(-ENOTUNIQ, stele_repair(path, NULL, &report), "none chosen");
	is_int(-ENOENT, stele_repair(path, &STELE_OPTS(stele_repair_opts,
			.choose = 3), &report),
	       "none of that number");
	is_int(0, stele_repair(path, &STELE_OPTS(stele_repair_opts,
			.choose = 2), &report),
	       "the second one");
	ok(report.changed && report.generation == 4, "is the next generation");
	is_int(-ENOENT, stele_repair(path, &STELE_OPTS(stele_repair_opts,
			.choose = 2), &report),
	       "once more: there is nothing to choose");
	ok(!report.changed && !report.branches, "changes nothing");
	is_int(0, stele_verify(path, NULL, NULL), "it is sound");
	unlink(path);
}

int main(void)
{
	plan_lazy();
	samples = test_samples(24, 300, 5);
	make_fork();
	check_readers();
	check_choices(1);
	check_choices(2);
	check_public();
	free(samples);
	free(before);
	free(forked);
	return done();
}
