/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit.c - what an edit takes, refuses, carries along, and gives back
 */
#include "tests/fixture/edit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#define SIZE (UINT64_C(0x200000) + 64 * 4096)
#define DATA STELE_DATA_OFFSET

static struct test_sample *samples;
static struct test_log messages;

static void listen(struct test_edit *t)
{
	test_log_init(&messages);
	t->image.log = messages.log;
}

/* v1 of one segment, at generation 1. */
static struct stele_device *make(struct test_edit *t, uint64_t *id)
{
	struct stele_device *dev = test_memory(SIZE, 512, 0);

	if (test_edit_create(t, dev, SIZE) < 0 ||
	    test_edit_segment(t, samples, 4, id) < 0 ||
	    test_edit_snapshot(t, "v1", id, 1, NULL, 0) < 0 ||
	    stele_txn_publish(&t->edit, 100) < 0)
		bail("cannot make an image");
	return dev;
}

static uint64_t free_bytes(const struct stele_image *image)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < image->catalog.counts.free; i++) {
		struct stele_catalog_free f;

		stele_catalog_free(&image->catalog, i, &f);
		size += f.size;
	}
	return size;
}

static void check_empty(void)
{
	struct stele_device *dev = test_memory(SIZE, 512, 0);
	struct test_edit t;

	is_int(0, test_edit_create(&t, dev, SIZE), "an unfinished image");
	ok(!stele_txn_find(&t.edit, NULL), "has no newest snapshot");
	is_int(0, stele_txn_publish(&t.edit, 5), "an empty image commits");
	is_uint(DATA, t.image.sb.catalog_offset, "its catalog comes first");
	is_uint(DATA + 4096, t.image.sb.high_water, "and last");
	test_edit_end(&t);
	is_int(0, test_edit_load(&t, dev), "it is found");
	is_uint(1, t.image.sb.generation, "as generation 1");
	is_uint(0, t.image.catalog.counts.snapshots, "without snapshots");
	is_int(0, stele_txn_publish(&t.edit, 6), "again");
	is_uint(DATA + 4096, t.image.sb.catalog_offset,
		"not over the first one");
	is_uint(1, t.image.catalog.counts.free, "which is free now");
	is_int(0, stele_txn_publish(&t.edit, 7), "a third time");
	is_uint(DATA + 8192, t.image.sb.catalog_offset,
		"over none of the two");
	is_int(0, stele_txn_publish(&t.edit, 8), "a fourth time");
	is_uint(DATA, t.image.sb.catalog_offset, "over the first one");
	is_uint(DATA + 4096, t.image.sb.high_water, "the mark sinks");
	test_edit_end(&t);
	stele_device_close(dev);
}

static void check_segments(void)
{
	const struct stele_catalog_segment *s;
	struct test_edit t;
	struct stele_device *dev;
	uint64_t id, next, size, mark;

	dev = make(&t, &id);
	s = stele_txn_segment(&t.edit, id);
	ok(s && s->offset == DATA && s->unused_since == 0, "the segment");
	size = s->size;
	is_uint(DATA + size, t.image.sb.catalog_offset, "the catalog behind");
	ok(!stele_txn_segment(&t.edit, id + 1), "none of another id");
	is_int(-EEXIST, stele_txn_add_segment(&t.edit, s), "nor twice");
	is_int(-EBUSY, stele_txn_drop_segment(&t.edit, id), "in use");
	is_int(-ENOENT, stele_txn_drop_segment(&t.edit, id + 1), "unknown");
	stele_txn_segment_id(&t.edit, &next);
	ok(next != id, "each generation has its own id");
	is_int(0, stele_txn_remove_snapshot(&t.edit, "v1"), "v1 goes");
	ok(!stele_txn_in_use(&t.edit, id), "the segment is unused");
	is_int(0, stele_txn_publish(&t.edit, 200), "commit");
	is_int(200, (int)stele_txn_segment(&t.edit, id)->unused_since,
	       "since then");
	mark = t.image.sb.high_water;
	is_int(0, stele_txn_publish(&t.edit, 300), "another commit");
	is_int(200, (int)stele_txn_segment(&t.edit, id)->unused_since,
	       "does not change that");
	test_edit_end(&t);
	is_int(0, test_edit_load(&t, dev), "load");
	is_int(200, (int)t.edit.segments[0].unused_since, "it is on the device");
	is_int(0, test_edit_snapshot(&t, "v2", &id, 1, NULL, 0), "use it again");
	is_int(0, stele_txn_publish(&t.edit, 400), "commit");
	is_int(0, (int)t.edit.segments[0].unused_since, "in use");
	stele_txn_remove_snapshot(&t.edit, "v2");
	is_int(0, stele_txn_drop_segment(&t.edit, id), "drop it");
	is_int(0, stele_txn_publish(&t.edit, 0), "commit");
	is_uint(0, t.image.catalog.counts.segments, "it is gone");
	ok(free_bytes(&t.image) >= size, "its space is free");
	is_int(0, test_edit_segment(&t, samples, 4, &next), "a new one");
	ok(stele_txn_segment(&t.edit, next)->offset >= DATA + size,
	   "does not go where the other slot still leads to");
	ok(mark >= DATA + size, "(there was something)");
	test_edit_end(&t);
	stele_device_close(dev);
}

/* A new segment goes where one was that two commits ago was dropped. */
static void check_reuse(void)
{
	struct test_edit t;
	struct stele_device *dev;
	uint64_t id, other;

	dev = make(&t, &id);
	stele_txn_remove_snapshot(&t.edit, "v1");
	stele_txn_drop_segment(&t.edit, id);
	is_int(0, stele_txn_publish(&t.edit, 1), "without the segment");
	is_int(0, stele_txn_publish(&t.edit, 2), "and once more");
	is_int(0, test_edit_segment(&t, samples, 4, &other), "a new one");
	is_uint(DATA, stele_txn_segment(&t.edit, other)->offset,
		"goes where the old one was");
	is_int(0, test_edit_snapshot(&t, "v1", &other, 1, NULL, 0),
	       "the name is free");
	is_uint(2, stele_txn_find(&t.edit, "v1")->info.id, "the id is not");
	is_int(0, stele_txn_publish(&t.edit, 3), "commit");
	test_edit_end(&t);
	stele_device_close(dev);
}

static int add_named(struct test_edit *t, const char *name, uint64_t parent,
		     const struct stele_txn_ref *refs, uint32_t count)
{
	struct stele_txn_snapshot s = *stele_txn_find(&t->edit, "v1");

	memset(s.info.name, 0, sizeof(s.info.name));
	strncpy(s.info.name, name, sizeof(s.info.name) - 1);
	s.info.parent = parent;
	s.refs = (struct stele_txn_ref *)refs;
	s.info.ref_count = count;
	return stele_txn_add_snapshot(&t->edit, &s);
}

static void check_snapshots(void)
{
	struct test_edit t;
	struct stele_device *dev;
	struct stele_txn_ref refs[2] = {{0}};
	uint64_t id;

	dev = make(&t, &id);
	listen(&t);
	refs[0].segment_id = refs[1].segment_id = id;
	is_int(-EEXIST, add_named(&t, "v1", 0, refs, 1), "a name twice");
	ok(test_log_has(&messages, "'v1'"), "is said");
	is_int(-EINVAL, add_named(&t, ".x", 0, refs, 1), "no name");
	is_int(-EINVAL, add_named(&t, "", 0, refs, 1), "nor none");
	is_int(-EINVAL, add_named(&t, "stele-tombstone-5-x", 0, refs, 1),
	       "a reserved one");
	ok(test_log_has(&messages, "tombstoned RBD snapshots"), "is said");
	is_int(-EINVAL, add_named(&t, "v2", 0, refs, 2), "a segment twice");
	is_int(-EINVAL, add_named(&t, "v2", 2, refs, 1), "no such parent");
	refs[1].segment_id++;
	is_int(-EINVAL, add_named(&t, "v2", 1, refs + 1, 1), "no segment");
	is_int(0, add_named(&t, "v2", 1, refs, 1), "a good one");
	is_string("v2", stele_txn_find(&t.edit, NULL)->info.name, "the newest");
	is_int(-EEXIST, stele_txn_rename_snapshot(&t.edit, "v2", "v1"),
	       "renamed to what is there");
	is_int(-ENOENT, stele_txn_rename_snapshot(&t.edit, "v3", "v4"),
	       "renamed from what is not");
	is_int(-EINVAL, stele_txn_rename_snapshot(&t.edit, "v2", "-"),
	       "renamed to no name");
	is_int(-EINVAL,
	       stele_txn_rename_snapshot(&t.edit, "v2", "stele-tombstone-5-x"),
	       "nor to a reserved one");
	is_int(0, stele_txn_rename_snapshot(&t.edit, "v2", "v2"),
	       "renamed to itself");
	is_int(0, stele_txn_rename_snapshot(&t.edit, "v2", "w"), "renamed");
	ok(!stele_txn_find(&t.edit, "v2") &&
		   stele_txn_find(&t.edit, "w"),
	   "it has the new name");
	is_int(-ENOENT, stele_txn_remove_snapshot(&t.edit, "v2"),
	       "nothing to remove");
	is_int(-ENOENT, stele_txn_remove_snapshot(&t.edit, NULL),
	       "nor by no name");
	test_edit_end(&t);
	is_int(0, test_edit_load(&t, dev), "without a commit");
	is_uint(1, t.image.sb.generation, "nothing has changed");
	test_edit_end(&t);
	stele_device_close(dev);
}

/* Notes, times, parents, deleted lists live through commits. */
static void check_carried(void)
{
	static const uint64_t numbers[] = {0, 2};
	struct stele_txn_snapshot *s;
	struct stele_snapshot loaded;
	struct test_edit t;
	struct stele_device *dev;
	uint64_t id, offset;

	dev = make(&t, &id);
	s = stele_txn_find(&t.edit, "v1");
	free(s->note);
	s->note = strdup("first");
	s->info.note_size = 5;
	is_int(0, test_edit_snapshot(&t, "v2", &id, 1, numbers, 2), "v2");
	s = stele_txn_find(&t.edit, "v2");
	s->info.time = -7;
	offset = s->refs[0].at.lists[0].offset;
	is_int(0, stele_txn_publish(&t.edit, 1), "commit");
	test_edit_end(&t);
	is_int(0, test_edit_load(&t, dev), "load");
	is_int(0, stele_txn_remove_snapshot(&t.edit, "v1"), "v1 goes");
	is_int(0, stele_txn_publish(&t.edit, 2), "commit");
	test_edit_end(&t);
	is_int(0, test_edit_load(&t, dev), "load");
	s = stele_txn_find(&t.edit, "v2");
	ok(s && s->info.time == -7 && s->info.note_size == 0, "v2 is as it was");
	is_uint(offset, s->refs[0].at.lists[0].offset, "its list where it was");
	is_int(0, stele_snapshot_load(&t.image, 0, &loaded), "it is sound");
	is_uint(2, loaded.sample_count, "less two samples");
	stele_snapshot_release(&loaded);
	t.image.catalog.counts.signatures = 1;
	is_int(-EOPNOTSUPP, stele_image_check_writable(&t.image),
	       "with signatures, which would be lost, it is read-only");
	test_edit_end(&t);
	stele_device_close(dev);
}

static void check_space(void)
{
	struct test_edit t;
	struct stele_device *dev;
	uint64_t id, a, b;

	dev = make(&t, &id);
	listen(&t);
	is_int(-EINVAL, stele_txn_allocate(&t.edit, 0, 0, &a), "no bytes");
	is_int(-EINVAL, stele_txn_allocate(&t.edit, 100, 0, &a), "no blocks");
	is_int(-EINVAL, stele_txn_allocate(&t.edit, 4096, 512, &a),
	       "no alignment");
	is_int(-EINVAL, stele_txn_allocate(&t.edit, 4096, 12288, &a),
	       "nor that");
	is_int(0, stele_txn_allocate(&t.edit, 4096, 0, &a), "a block");
	is_int(0, stele_txn_allocate(&t.edit, 8192, 0x10000, &b), "aligned");
	ok(b % 0x10000 == 0 && b > a, "so it is");
	is_int(-ENOSPC, stele_txn_allocate(&t.edit, SIZE, 0, &b), "too much");
	ok(test_log_has(&messages, "take a larger target"), "and what to do");
	is_int(-EINVAL, stele_txn_grow(&t.edit, SIZE - 4096), "no smaller");
	is_int(-EINVAL, stele_txn_grow(&t.edit, SIZE + 4096),
	       "not larger than its target");
	is_int(0, stele_txn_grow(&t.edit, SIZE), "as it is");
	test_edit_end(&t);
	is_int(0, test_edit_load(&t, dev), "load");
	is_int(0, stele_txn_allocate(&t.edit, 4096, 0, &b), "a block");
	is_uint(a, b, "what was not committed is handed out again");
	test_edit_end(&t);
	stele_device_close(dev);
}

/* A file grows with its image; a device that has more is for resize. */
static void check_growing(void)
{
	struct stele_device *dev;
	struct test_edit t;
	uint64_t id, size, at;
	char path[4096];

	snprintf(path, sizeof(path), "%s/image", test_tmpdir());
	if (stele_device_open_file(path,
				   STELE_DEVICE_WRITE | STELE_DEVICE_CREATE,
				   NULL, NULL, &dev) < 0 ||
	    stele_device_resize(dev, SIZE) < 0)
		bail("no file");
	if (test_edit_create(&t, dev, SIZE) < 0 ||
	    test_edit_segment(&t, samples, 4, &id) < 0 ||
	    test_edit_snapshot(&t, "v1", &id, 1, NULL, 0) < 0)
		bail("cannot make an image");
	is_int(0, stele_txn_allocate(&t.edit, SIZE, 0, &at), "more than all");
	stele_device_size(dev, &size);
	is_uint(at + SIZE, size, "the file has grown by that");
	test_edit_end(&t);
	stele_device_size(dev, &size);
	is_uint(SIZE, size, "and shrunk again: there was no commit");
	if (test_edit_create(&t, dev, SIZE) < 0 ||
	    stele_txn_allocate(&t.edit, SIZE - DATA, 0, &at) < 0)
		bail("cannot make an image");
	is_int(0, stele_txn_publish(&t.edit, 1), "the catalog makes it grow");
	is_uint(SIZE + 4096, t.image.sb.image_size, "by a block");
	test_edit_end(&t);
	stele_device_size(dev, &size);
	is_uint(SIZE + 4096, size, "so it stays");
	stele_device_close(dev);
}

static int has_no_blocks(struct stele_device *dev, uint64_t offset, uint64_t size)
{
	(void)dev;
	return offset + size > 2 * SIZE ? -ENOSPC : 0;
}

/* A file may be made larger than its filesystem has blocks for. */
static void check_full_filesystem(void)
{
	struct stele_device_ops ops;
	struct stele_device *dev;
	struct test_edit t;
	uint64_t size, at;
	char path[4096];

	snprintf(path, sizeof(path), "%s/full", test_tmpdir());
	if (stele_device_open_file(path,
				   STELE_DEVICE_WRITE | STELE_DEVICE_CREATE,
				   NULL, NULL, &dev) < 0 ||
	    stele_device_resize(dev, SIZE) < 0 ||
	    test_edit_create(&t, dev, SIZE) < 0)
		bail("no image");
	ops = *dev->ops;
	ops.reserve = has_no_blocks;
	dev->ops = &ops;
	for (int i = 0; i < 2; i++) {
		is_int(-ENOSPC, stele_txn_allocate(&t.edit, 3 * SIZE, 0, &at),
		       "there are no blocks for it");
		stele_device_size(dev, &size);
		is_uint(SIZE, size, "the file is no larger");
	}
	is_int(0, stele_txn_allocate(&t.edit, SIZE, 0, &at), "less is there");
	stele_device_size(dev, &size);
	is_uint(at + SIZE, size, "where the other failed");
	ok(at < SIZE, "in the space that it was refused");
	is_int(0, stele_txn_publish(&t.edit, 1), "commit");
	stele_device_size(dev, &size);
	is_uint(t.image.sb.image_size, size, "the file is as large as its image");
	test_edit_end(&t);
	stele_device_close(dev);
}

static void check_device_has_more(void)
{
	struct stele_device *dev = test_memory(2 * SIZE, 512, 0);
	struct test_edit t;
	uint64_t at;

	is_int(0, test_edit_create(&t, dev, SIZE), "an image on half of it");
	listen(&t);
	is_int(-ENOSPC, stele_txn_allocate(&t.edit, SIZE, 0, &at),
	       "does not take the rest");
	ok(test_log_has(&messages, "resize it"), "but says how");
	is_int(0, stele_txn_grow(&t.edit, 2 * SIZE), "until it is told to");
	is_int(0, stele_txn_allocate(&t.edit, SIZE, 0, &at), "then it does");
	is_int(0, stele_txn_publish(&t.edit, 1), "commit");
	is_uint(2 * SIZE, t.image.sb.image_size, "the image is larger");
	test_edit_end(&t);
	stele_device_close(dev);
}

/* Copies that tell more, or less, than two slots. */
static void check_copies(void)
{
	static const uint64_t offsets[] = STELE_SUPERBLOCK_OFFSETS;
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.ops = 1u << STELE_OP_READ,
					.size = 4096, .error = EIO};
	struct stele_fault_rule both[2];
	struct stele_device *inner, *dev;
	struct stele_superblock old;
	struct test_edit t, late;
	uint8_t *bytes;
	uint64_t id, at;

	inner = make(&t, &id);
	bytes = stele_device_memory(inner);
	is_int(0, test_edit_load(&late, inner), "two edits at a time");
	is_int(0, stele_txn_publish(&t.edit, 2), "one commits");
	test_edit_end(&t);
	test_edit_end(&late);
	if (stele_device_open_fault(inner, NULL, 0, &dev) < 0)
		bail("no fault device");
	for (unsigned int i = 0; i < 4; i++) {
		rule.offset = offsets[i];
		stele_fault_set_rules(dev, &rule, 1);
		is_int(-EIO, test_edit_load(&t, dev),
		       "copy %u cannot be read: no edit", i);
		test_edit_end(&t);
	}
	stele_superblock_decode((void *)(bytes + offsets[0]), offsets[0], &old,
				NULL);
	rule.offset = old.catalog_offset;
	stele_fault_set_rules(dev, &rule, 1);
	is_int(0, test_edit_load(&t, dev), "the catalog cannot be read, but its mirror");
	test_edit_end(&t);
	stele_superblock_decode((void *)(bytes + offsets[1]), offsets[1], &old,
				NULL);
	is_uint(1, old.generation, "the older slot");
	both[0] = both[1] = rule;
	both[0].offset = old.catalog_offset;
	both[1].offset = old.mirror_offset;
	stele_fault_set_rules(dev, both, 2);
	is_int(0, test_edit_load(&t, dev), "neither its catalog nor the mirror can be read");
	is_int(0, stele_txn_allocate(&t.edit, 4096, 0, &at), "a block");
	ok(at >= old.high_water, "behind all that it may lead to");
	test_edit_end(&t);
	stele_fault_set_rules(dev, NULL, 0);
	bytes[old.catalog_offset + 99] ^= 1;
	is_int(0, test_edit_load(&t, dev), "its catalog is damaged, but for the mirror");
	is_int(0, stele_txn_allocate(&t.edit, 4096, 0, &at), "a block");
	ok(at > old.catalog_offset, "not there");
	test_edit_end(&t);
	bytes[old.mirror_offset + 99] ^= 1;
	is_int(0, test_edit_load(&t, dev), "its catalog is damaged");
	is_int(0, stele_txn_allocate(&t.edit, 4096, 0, &at), "a block");
	is_uint(old.catalog_offset, at, "there: it leads nowhere");
	bytes[old.catalog_offset + 99] ^= 1;
	is_int(0, stele_txn_publish(&t.edit, 3), "commit");
	test_edit_end(&t);
	stele_device_close(dev);
}

static void check_stale(void)
{
	struct stele_image image;
	struct stele_txn edit;
	struct stele_device *dev;
	struct test_edit t;
	uint64_t id;

	dev = make(&t, &id);
	if (stele_image_load(dev, NULL, &image) < 0)
		bail("load");
	is_int(0, stele_txn_publish(&t.edit, 2), "somebody commits");
	is_int(-ESTALE, stele_txn_attach(&image, &edit),
	       "who loaded the image before cannot change it");
	stele_txn_release(&edit);
	image.dev = NULL;
	stele_image_release(&image);
	test_edit_end(&t);
	stele_device_close(dev);
}

int main(void)
{
	plan_lazy();
	samples = test_samples(8, 300, 5);
	check_empty();
	check_segments();
	check_reuse();
	check_snapshots();
	check_carried();
	check_space();
	check_growing();
	check_full_filesystem();
	check_device_has_more();
	check_copies();
	check_stale();
	free(samples);
	return done();
}
