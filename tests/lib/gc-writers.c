/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc-writers.c - a gc that discards, overtaken by a writer of another machine
 *
 * Before any one of its operations, discards among them, the other one comes, takes
 * the turn, publishes, and is gone; then that operation is carried out. Whatever gc
 * says: what the other one has published is there, byte for byte; and gc fails when
 * it was overtaken, unless it had nothing more to do. Nor does it discard where one that
 * it has replaced may still write.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"
#include "lib/txn/intent.h"
#include "lib/verify/verify.h"
#include "tests/fixture/change.h"
#include "tests/fixture/edit.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#define IMAGE_SIZE (UINT64_C(8) << 20)
#define NEVER	   UINT32_MAX
#define TOLD_MAX   8u
enum { SAMPLES = 100, OTHER = 2 /* machine */ };

static struct test_sample *samples;
static struct stele_device *disk;
static uint8_t *base; /* bytes of the image before */
static unsigned int done_before, overtaken_at, discards, told;
static uint64_t kept; /* offset of a block that no discard may touch; 0: none */
static unsigned int destroyed;
static bool discarding; /* when it was overtaken */

/* ---- the device of gc ------------------------------------------------------------ */

static void init_device(struct stele_device *dev, const struct stele_device_ops *ops)
{
	memset(dev, 0, sizeof(*dev));
	dev->ops = ops;
	dev->limits = disk->limits;
	dev->writable = true;
	dev->fd = -1;
}

static ssize_t pass(struct stele_device *dev, enum stele_op op, void *data,
		    uint64_t offset, size_t size)
{
	int ret = 0;

	(void)dev;
	if (op == STELE_OP_READ)
		ret = stele_device_read(disk, data, offset, size);
	else if (op == STELE_OP_WRITE)
		ret = stele_device_write(disk, data, offset, size);
	else if (op == STELE_OP_DISCARD)
		ret = stele_device_discard(disk, offset, size);
	destroyed += op == STELE_OP_DISCARD && kept >= offset && kept < offset + size;
	return ret ? ret : (ssize_t)size;
}

static int size_of(struct stele_device *dev, uint64_t *size)
{
	(void)dev;
	return stele_device_size(disk, size);
}

static void close_none(struct stele_device *dev)
{
	(void)dev;
}

static const struct stele_device_ops other_ops = {
	.name = "other", .transfer = pass, .size = size_of, .close = close_none,
};

/* From beginning to end. */
static void overtake(void)
{
	struct test_edit t = {0};
	struct stele_device dev;
	uint64_t id;

	stele_intent_pose(OTHER, 1);
	init_device(&dev, &other_ops);
	if (stele_image_load(&dev, NULL, &t.image) ||
	    stele_image_announce(&t.image) ||
	    stele_txn_attach(&t.image, &t.edit) ||
	    test_edit_segment(&t, samples, SAMPLES, &id) ||
	    test_edit_snapshot(&t, "other", &id, 1, NULL, 0) ||
	    stele_txn_publish(&t.edit, 1700000002))
		bail("the other one fails");
	stele_txn_release(&t.edit);
	stele_intent_end(&dev);
	test_edit_end(&t);
	stele_intent_pose(0, 0);
}

static ssize_t transfer(struct stele_device *dev, enum stele_op op, void *data,
			uint64_t offset, size_t size)
{
	if (done_before++ == overtaken_at) {
		discarding = op == STELE_OP_DISCARD;
		overtake();
	}
	discards += op == STELE_OP_DISCARD;
	return pass(dev, op, data, offset, size);
}

static const struct stele_device_ops gc_ops = {
	.name = "gc", .transfer = transfer, .size = size_of, .close = close_none,
};

/* ---- runs ------------------------------------------------------------------------ */

static int collect(unsigned int at)
{
	struct stele_txn writer = {0};
	struct stele_gc_report report = {.size = sizeof(report)};
	const struct stele_txn_opts change = {
		.time = 1700000001,
		.flags = STELE_FORCE | STELE_TXN_DISCARD,
	};
	struct stele_device dev;
	int ret;

	memcpy(stele_device_memory(disk), base, IMAGE_SIZE);
	init_device(&dev, &gc_ops);
	done_before = discards = 0;
	discarding = false;
	overtaken_at = at;
	ret = stele_txn_on_device(&writer, &dev, NULL);
	if (ret == 0)
		ret = test_change_gc(&writer, &change, NULL, NULL,
				   &report);
	stele_txn_release(&writer);
	return ret;
}

static void tell(void *user, const struct stele_damage *damage)
{
	(void)user;
	if (damage->error && told++ < TOLD_MAX)
		diag("%s at %" PRIu64 ": %s", damage->what, damage->offset,
		     damage->detail);
}

static bool is_sound(bool overtaken)
{
	const struct stele_verify_opts opts = {.jobs = 1, .damage = tell};
	struct stele_verify_report report = {.size = sizeof(report)};
	struct stele_image image;
	uint32_t index;
	bool good;

	if (stele_image_load(disk, NULL, &image))
		return false;
	good = stele_snapshot_find(&image, "base", NULL, &index) == 0 &&
	       (!overtaken || stele_snapshot_find(&image, "other", NULL,
						  &index) == 0) &&
	       stele_verify_image(&image, -1, &opts, &report) == 0;
	image.dev = NULL;
	stele_image_release(&image);
	return good;
}

static void check_all(void)
{
	unsigned int count, last, bad = 0, silent = 0;
	int ret = collect(NEVER);

	is_int(0, ret, "a gc of its own");
	ok(is_sound(false), "leaves the image sound");
	ok(discards > 4, "with %u discards", discards);
	count = done_before;
	for (last = 0; last < count; last++) {
		ret = collect(last);
		if (ret && ret != -ESTALE && ret != -EIO)
			bad++;
		silent += ret == 0 && discarding;
		if (is_sound(true))
			continue;
		if (bad++ < TOLD_MAX)
			diag("overtaken at %u of %u%s: %d", last, count,
			     discarding ? ", a discard" : "", ret);
	}
	is_uint(0, bad, "overtaken at any of %u operations: nothing is lost",
		count);
	is_uint(0, silent, "and who is overtaken while he discards fails");
}

/* The other one has said where it writes, and stops. */
static void check_avoided(void)
{
	struct stele_image image = {0};
	struct stele_device dev;

	memcpy(stele_device_memory(disk), base, IMAGE_SIZE);
	stele_intent_pose(OTHER, 1);
	init_device(&dev, &other_ops);
	kept = IMAGE_SIZE / 2;
	if (stele_image_load(&dev, NULL, &image) || stele_image_announce(&image) ||
	    stele_intent_reserve(&dev, image.generation_max + 1, kept, STELE_BLOCK_SIZE))
		bail("the other one fails");
	stele_intent_forget(&dev);
	image.dev = NULL;
	stele_image_release(&image);
	stele_intent_pose(0, 0);
	memcpy(base, stele_device_memory(disk), IMAGE_SIZE);
	is_int(0, collect(NEVER), "a gc that replaces a writer");
	ok(discards > 4, "with %u discards", discards);
	is_uint(0, destroyed, "none is where that one may still write");
	ok(is_sound(false), "and the image is sound");
}

static void make_base(void)
{
	struct test_edit t;
	uint64_t id;

	disk = test_memory(IMAGE_SIZE, 512, 0);
	if (test_edit_create(&t, disk, IMAGE_SIZE) ||
	    test_edit_segment(&t, samples, SAMPLES, &id) ||
	    test_edit_snapshot(&t, "spare", &id, 1, NULL, 0) ||
	    stele_txn_publish(&t.edit, 1700000000) ||
	    test_edit_segment(&t, samples, SAMPLES, &id) ||
	    test_edit_snapshot(&t, "base", &id, 1, NULL, 0) ||
	    stele_txn_remove_snapshot(&t.edit, "spare") ||
	    stele_txn_publish(&t.edit, 1700000000))
		bail("no image");
	test_edit_end(&t);
	base = malloc(IMAGE_SIZE);
	if (!base)
		bail("no memory");
	memcpy(base, stele_device_memory(disk), IMAGE_SIZE);
}

int main(void)
{
	plan_lazy();
	samples = test_samples(SAMPLES, 3000, 7);
	make_base();
	check_all();
	check_avoided();
	free(base);
	free(samples);
	stele_device_close(disk);
	return done();
}
