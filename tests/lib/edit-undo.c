/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit-undo.c - a file that an edit made larger is no larger when that failed
 *
 * The commit's catalog cannot be written; or its superblock, or what comes behind:
 * then it may be there, and the file has to be as large as it says. What somebody
 * else put there meanwhile, whom no lock held off, stays as well.
 */
#include "lib/txn/intent.h"
#include "tests/device/fault.h"
#include "tests/fixture/change.h"
#include "tests/fixture/edit.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA UINT64_C(0x200000)
#define SIZE (DATA + 64 * 4096)

static struct test_sample *samples;

/* A file with an image of one snapshot, behind a device with faults. */
static struct stele_device *make(void)
{
	static unsigned int count;
	struct stele_device *dev;
	struct test_edit t;
	char path[4096];
	uint64_t id;

	snprintf(path, sizeof(path), "%s/image%u", test_tmpdir(), count++);
	if (stele_device_open_file(path,
				   STELE_DEVICE_WRITE | STELE_DEVICE_CREATE,
				   NULL, NULL, &dev) < 0 ||
	    stele_device_resize(dev, SIZE) < 0 ||
	    stele_device_open_fault(dev, NULL, 0, &dev) < 0)
		bail("no file");
	if (test_edit_create(&t, dev, SIZE) < 0 ||
	    test_edit_segment(&t, samples, 4, &id) < 0 ||
	    test_edit_snapshot(&t, "v1", &id, 1, NULL, 0) < 0 ||
	    stele_txn_publish(&t.edit, 1) < 0)
		bail("cannot make an image");
	test_edit_end(&t);
	return dev;
}

static uint64_t size_of(struct stele_device *dev)
{
	uint64_t size = 0;

	stele_device_size(dev, &size);
	return size;
}

/* Writes to that range fail. */
static void break_device(struct stele_device *dev, uint64_t from, uint64_t to)
{
	const struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .error = ENOSPC,
		.ops = 1u << STELE_OP_WRITE, .offset = from, .size = to - from};

	stele_fault_set_rules(dev, &rule, 1);
}

/* One that grows, and whose commit fails at writes to that range. */
static void check(const char *what, uint64_t from, uint64_t to, bool grown)
{
	struct stele_device *dev = make();
	struct test_edit t;
	uint64_t at;

	if (test_edit_load(&t, dev) < 0)
		bail("no image");
	is_int(0, stele_txn_allocate(&t.edit, SIZE, 0, &at), "%s: larger", what);
	ok(size_of(dev) > SIZE, "it has grown");
	break_device(dev, from, to);
	is_int(-ENOSPC, stele_txn_publish(&t.edit, 2), "the commit fails");
	stele_fault_set_rules(dev, NULL, 0);
	test_edit_end(&t);
	ok((size_of(dev) > SIZE) == grown, "the file is %s",
	   grown ? "as large as it may have to be" : "no larger");
	is_int(0, test_edit_load(&t, dev), "the image is there");
	test_edit_end(&t);
	stele_device_close(dev);
}

/* No place for a mirror is no reason to fail; there may be another one. */
static void check_mirror(uint64_t from, uint64_t to, uint64_t second)
{
	struct stele_device *dev = make();
	struct test_edit t;

	if (test_edit_load(&t, dev) < 0)
		bail("no image");
	is_hex(STELE_CATALOG_MIRRORS_OFFSET, t.image.sb.mirror_offset, "a mirror");
	break_device(dev, from, to);
	is_int(0, stele_txn_publish(&t.edit, 2), "its next place cannot be written");
	is_hex(0, t.image.sb.mirror_offset, "so it has none");
	is_uint(1, stele_image_wrong_catalogs(&t.image), "which is not as it should be");
	is_int(0, stele_txn_publish(&t.edit, 3), "the one after that");
	is_hex(second, t.image.sb.mirror_offset, "has one where it can");
	stele_fault_set_rules(dev, NULL, 0);
	is_int(0, stele_txn_publish(&t.edit, 4), "the device was mended");
	ok(t.image.sb.mirror_offset != 0, "a mirror");
	is_uint(0, stele_image_wrong_catalogs(&t.image), "all is as it should be");
	test_edit_end(&t);
	is_int(0, test_edit_load(&t, dev), "and can be loaded");
	test_edit_end(&t);
	stele_device_close(dev);
}

/* Writes that the device claims to have done: both catalogs are read back. */
static void check_lost(void)
{
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_LOSE, .ops = 1u << STELE_OP_WRITE, .offset = DATA,
		.size = SIZE - DATA};
	struct stele_device *dev = make();
	struct test_edit t;

	if (test_edit_load(&t, dev) < 0)
		bail("no image");
	stele_fault_set_rules(dev, &rule, 1);
	is_int(-EIO, stele_txn_publish(&t.edit, 2), "a catalog that is lost");
	stele_fault_set_rules(dev, NULL, 0);
	test_edit_end(&t);
	if (test_edit_load(&t, dev) < 0)
		bail("no image");
	is_uint(1, t.image.sb.generation, "is not published");
	rule.offset = STELE_CATALOG_MIRRORS_OFFSET;
	rule.size = DATA - STELE_CATALOG_MIRRORS_OFFSET;
	stele_fault_set_rules(dev, &rule, 1);
	is_int(0, stele_txn_publish(&t.edit, 2), "a mirror that is lost");
	is_hex(0, t.image.sb.mirror_offset, "is not counted on");
	stele_fault_set_rules(dev, NULL, 0);
	test_edit_end(&t);
	stele_device_close(dev);
}

static void check_resize(void)
{
	const struct stele_txn_opts change = {.time = 5};
	struct stele_device *dev = make();
	struct stele_resize_report report = {.size = sizeof(report)};
	struct stele_txn writer = {0};

	if (stele_txn_on_device(&writer, dev, NULL) < 0)
		bail("no writer");
	break_device(dev, DATA, 2 * SIZE);
	is_int(-ENOSPC,
	       test_change_resize(&writer, &change, 2 * SIZE, &report),
	       "a resize fails");
	stele_fault_set_rules(dev, NULL, 0);
	writer.borrowed = true;
	stele_txn_release(&writer);
	is_uint(SIZE, size_of(dev), "the file is no larger");
	stele_intent_end(dev);
	stele_device_close(dev);
}

static void check_other_writer(void)
{
	struct stele_device *dev = make();
	struct test_edit late, other;
	uint64_t at, size;

	if (test_edit_load(&late, dev) < 0 || test_edit_load(&other, dev) < 0)
		bail("no image");
	is_int(0, stele_txn_allocate(&late.edit, SIZE, 0, &at), "larger");
	is_int(0, stele_txn_allocate(&other.edit, SIZE, 0, &at), "so for another");
	is_int(0, stele_txn_publish(&other.edit, 2), "who commits");
	test_edit_end(&other);
	size = size_of(dev);
	test_edit_end(&late);
	is_uint(size, size_of(dev), "his image is not cut off");
	is_int(0, test_edit_load(&other, dev), "and is there");
	test_edit_end(&other);
	stele_device_close(dev);
}

int main(void)
{
	plan_lazy();
	samples = test_samples(4, 300, 5);
	check("catalog", DATA, 2 * SIZE, false);
	check_mirror(STELE_CATALOG_MIRRORS_OFFSET, DATA, 0);
	check_mirror(STELE_CATALOG_MIRRORS_OFFSET + STELE_CATALOG_MIRROR_SIZE +
			     STELE_BLOCK_SIZE, DATA,
		     STELE_CATALOG_MIRRORS_OFFSET);
	check_lost();
	check("superblock", 0, STELE_CATALOG_MIRRORS_OFFSET, true);
	check_resize();
	check_other_writer();
	free(samples);
	return done();
}
