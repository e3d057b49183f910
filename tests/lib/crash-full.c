/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash-full.c - an image without a free block is deleted from, and power fails
 *
 * There the older generation is given up for room: until the next one is whole
 * the newest is all that there is, and every cut must find it. The image was
 * filled as a writer would that keeps no room; then a snapshot goes, a segment is
 * dropped, and a last commit changes nothing. Once on a device, and once in a file whose
 * filesystem is full, so that it cannot grow. For tests/crash/crash.h.
 */
#include "tests/crash/crash.h"
#include "tests/fixture/edit.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS	   26u
#define IMAGE_SIZE (UINT64_C(0x200000) + BLOCKS * STELE_BLOCK_SIZE)

static struct test_sample *samples;

static void add(struct test_edit *t, const char *name)
{
	uint64_t id;

	if (test_edit_segment(t, samples, 3, &id) < 0 ||
	    test_edit_snapshot(t, name, &id, 1, NULL, 0) < 0)
		bail("cannot add '%s'", name);
}

/* "v1" and "v2", and a segment that takes all but the block for the catalog. */
static uint8_t *make_full(void)
{
	uint8_t *bytes = calloc(1, IMAGE_SIZE);
	struct stele_catalog_segment filler = {
		.id = 4711, .descriptor_size = STELE_BLOCK_SIZE, .sample_count = 1};
	struct test_history h;
	struct test_edit t;

	test_history_open(&h, bytes);
	free(bytes);
	if (test_edit_create(&t, h.fault, IMAGE_SIZE) < 0)
		bail("begin failed");
	add(&t, "v1");
	if (stele_txn_publish(&t.edit, 1) < 0)
		bail("a commit failed");
	add(&t, "v2");
	filler.offset = stele_extents_end(&t.edit.used);
	filler.size = IMAGE_SIZE - filler.offset - STELE_BLOCK_SIZE;
	if (stele_txn_add_segment(&t.edit, &filler) < 0 ||
	    stele_extents_add(&t.edit.used, filler.offset, filler.size) < 0)
		bail("cannot fill the image");
	t.edit.takes = false;
	if (stele_txn_publish(&t.edit, 2) < 0 ||
	    t.image.sb.high_water != IMAGE_SIZE)
		bail("cannot fill the image");
	test_edit_end(&t);
	bytes = stele_device_alloc(h.fault, IMAGE_SIZE);
	if (!bytes || stele_device_read(h.fault, bytes, 0, IMAGE_SIZE) < 0)
		bail("cannot read the image");
	test_history_close(&h);
	return bytes;
}

static void commit(struct test_history *h, struct test_edit *t)
{
	int ret = stele_txn_publish(&t->edit, 3);

	if (ret < 0)
		bail("a commit failed: %s", strerror(-ret));
	test_history_expect(h, TEST_EXPECT_IMAGE, &t->image.sb);
}

static unsigned int refused;

static int cannot_grow(struct stele_device *dev, uint64_t size)
{
	(void)dev, (void)size;
	refused++;
	return -ENOSPC;
}

static void delete_from(const uint8_t *full, bool file)
{
	struct stele_device_ops ops;
	struct test_history h;
	struct test_edit t;

	test_history_open(&h, full);
	h.levels = true;
	if (file) {
		ops = *h.fault->ops;
		ops.resize = ops.grow = cannot_grow;
		h.fault->ops = &ops;
		h.fault->resizable = true;
	}
	if (test_edit_load(&t, h.fault) < 0)
		bail("no image");
	test_history_expect(&h, TEST_EXPECT_IMAGE, &t.image.sb);
	is_int(0, stele_txn_remove_snapshot(&t.edit, "v1"), "delete");
	commit(&h, &t);
	test_edit_collect(&t);
	commit(&h, &t);
	commit(&h, &t);
	is_int(file, refused > 0, "growth was refused");
	add(&t, "v3");
	commit(&h, &t);
	test_edit_end(&t);
	test_crash_name(file ? "deleted from a file that cannot grow" :
			       "deleted from a full image");
	test_crash_explore(&h, false);
	test_crash_report();
	test_history_close(&h);
}

int main(void)
{
	uint8_t *full;

	plan_lazy();
	samples = test_samples(3, 300, 77);
	test_crash_init(IMAGE_SIZE);
	full = make_full();
	delete_from(full, false);
	delete_from(full, true);
	test_crash_release();
	free(full);
	free(samples);
	return done();
}
