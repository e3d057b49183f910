/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc-space.c - what no snapshot uses is freed when its time has come
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/device/fault.h"
#include "tests/fixture/change.h"
#include "tests/fixture/image.h"
#include "tests/tap.h"

enum { SEGMENTS = 4, SAMPLES = 50, ITEMS_MAX = 8, DISCARDS_MAX = 64 };

#define IMAGE_SIZE  (UINT64_C(4) << 20)
#define DELETED_AT  INT64_C(1700001000)

static struct test_sample *samples;
static struct test_log messages;

/* Snapshots "v0" to "v3", of one segment each; opened for writing. */
static void open_image(struct stele_txn *writer)
{
	static struct test_image image;
	struct stele_device *memory, *dev;

	if (stele_device_open_memory(2 * IMAGE_SIZE, 512, &memory) ||
	    stele_device_open_fault(memory, NULL, 0, &dev) ||
	    test_image_begin(&image, dev, IMAGE_SIZE))
		bail("no image");
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		const struct test_ref ref = {.segment = i};
		const char name[] = {'v', (char)('0' + i), '\0'};

		if (test_image_segment(&image, &(struct test_segment){
						       .samples = samples,
						       .count = SAMPLES}) ||
		    test_image_snapshot(&image, name, &ref, 1))
			bail("no image");
	}
	if (test_image_commit(&image))
		bail("no image");
	dev = test_image_end(&image);
	test_log_init(&messages);
	if (test_txn_open(writer, dev, &messages.log))
		bail("no writer: %s", messages.text);
}

static void close_image(struct stele_txn *writer)
{
	stele_device_close(test_txn_end(writer));
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

static void delete(struct stele_txn *writer, const char *name, int64_t time)
{
	const struct stele_txn_opts change = change_at(time, 0, 0);

	is_int(0, test_change_delete(writer, &change, name), "delete '%s'",
	       name);
}

static struct stele_catalog_segment segment_at(const struct stele_txn *w,
					       uint32_t index)
{
	struct stele_catalog_segment segment;

	stele_catalog_segment(&w->image->catalog, index, &segment);
	return segment;
}

struct items {
	struct stele_gc_item list[ITEMS_MAX];
	unsigned int count;
	struct stele_gc_item deleted; /* the last deleted snapshot */
	unsigned int deleted_count;
	bool is_v1; /* its name */
};

static void take_item(void *user, const struct stele_gc_item *item)
{
	struct items *items = user;

	if (item->deleted) {
		items->deleted = *item;
		items->deleted_count++;
		items->is_v1 = !strcmp(item->name, "v1");
		return;
	}
	if (items->count < ITEMS_MAX)
		items->list[items->count++] = *item;
}

static uint64_t operations(struct stele_device *dev, enum stele_op op)
{
	const struct stele_fault_entry *log;
	uint64_t seen = 0;
	size_t count;

	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++)
		seen += log[i].op == op;
	return seen;
}

/* ---- when ------------------------------------------------------------------------ */

static void check_due(void)
{
	static const struct {
		const char *what;
		int64_t after;
		uint64_t grace;
		uint32_t flags;
		bool due;
	} cases[] = {
		{"neither grace nor force", 100, 0, 0, false},
		{"a second too early", 99, 100, 0, false},
		{"just in time", 100, 100, 0, true},
		{"long ago", 100000, 100, 0, true},
		{"a clock that went back", -5, 1, 0, false},
		{"force", 0, 0, STELE_FORCE, true},
		{"force, and a clock that went back", -5, 0,
		 STELE_FORCE, true},
	};
	struct stele_catalog_segment segment;
	struct stele_gc_report report = {.size = sizeof(report)};
	struct stele_txn writer;

	open_image(&writer);
	segment = segment_at(&writer, 1);
	delete(&writer, "v1", DELETED_AT);
	stele_fault_log_clear(writer.image->dev);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stele_txn_opts change =
			change_at(DELETED_AT + cases[i].after, cases[i].grace,
				  cases[i].flags | STELE_DRY_RUN);
		struct items items = {0};

		is_int(0,
		       test_change_gc(&writer, &change, take_item, &items,
				      &report),
		       "%s", cases[i].what);
		ok(items.count == 1 && items.list[0].segment_id == segment.id &&
			   items.list[0].offset == segment.offset &&
			   items.list[0].segment_size == segment.size &&
			   items.list[0].sample_count == SAMPLES &&
			   items.list[0].unused_since == DELETED_AT,
		   "the one segment");
		is_int(cases[i].due, items.list[0].due, "due");
		ok(items.deleted_count == 1 && items.is_v1 &&
			   items.deleted.segment_id == 0 &&
			   items.deleted.unused_since == DELETED_AT &&
			   items.deleted.due == cases[i].due,
		   "and the snapshot");
		is_uint(cases[i].due ? segment.size : 0, report.freed_size,
			"size");
	}
	is_uint(0, operations(writer.image->dev, STELE_OP_WRITE),
		"dry runs write nothing");
	close_image(&writer);
}

/* A clock that is slow, or an option that lies, takes no grace from readers. */
static void check_clock(void)
{
	struct stele_txn_opts change = change_at(DELETED_AT + 59, 60, 0);
	struct stele_gc_report report = {.size = sizeof(report)};
	struct stele_txn writer;

	open_image(&writer);
	is_int(0, stele_txn_publish(&writer, DELETED_AT), "the last commit");
	delete(&writer, "v1", 5);
	is_int(DELETED_AT, segment_at(&writer, 1).unused_since,
	       "a delete in 1970 is as old as the commit before it");
	is_int(DELETED_AT, writer.image->sb.commit_time, "so is its commit");
	is_int(0,
	       test_change_gc(&writer, &change, NULL, NULL,
			    &report),
	       "a second too early");
	is_uint(0, report.freed_count, "nothing is freed");
	change = change_at(DELETED_AT + 60, 60, 0);
	is_int(0,
	       test_change_gc(&writer, &change, NULL, NULL,
			    &report),
	       "in time");
	is_uint(1, report.freed_count, "it is freed");
	delete(&writer, "v2", 7);
	is_int(DELETED_AT + 60, writer.image->sb.commit_time,
	       "no commit is earlier than that");
	close_image(&writer);
}

/* ---- where ----------------------------------------------------------------------- */

static void check_freed(void)
{
	struct stele_txn_opts change = change_at(DELETED_AT + 60, 60, 0);
	struct stele_catalog_segment segment;
	struct stele_gc_report report = {.size = sizeof(report)};
	struct stele_txn writer;
	struct items items = {0};
	uint64_t offset;

	open_image(&writer);
	segment = segment_at(&writer, 1);
	delete(&writer, "v1", DELETED_AT);
	delete(&writer, "v2", DELETED_AT + 1);
	stele_fault_log_clear(writer.image->dev);
	is_int(0,
	       test_change_gc(&writer, &change, take_item, &items,
			    &report),
	       "one of two is due");
	is_uint(2, report.unused_count, "two are unused");
	is_uint(1, report.freed_count, "one was freed");
	is_uint(10, operations(writer.image->dev, STELE_OP_WRITE),
		"two commits: each two catalogs and three superblocks");
	is_uint(SEGMENTS - 1, writer.image->catalog.counts.segments,
		"the catalog has forgotten it");
	ok(report.free_size >= segment.size, "%ju bytes are free",
	   (uintmax_t)report.free_size);
	is_int(0, stele_txn_allocate(&writer, segment.size, 0, &offset),
	       "as much is allocated");
	is_hex(segment.offset, offset, "just there, at once");
	items.count = 0;
	is_int(0,
	       test_change_gc(&writer, &change, take_item, &items,
			    &report),
	       "again");
	is_uint(0, report.freed_count, "nothing to free");
	is_uint(10, operations(writer.image->dev, STELE_OP_WRITE),
		"and nothing is written");
	close_image(&writer);
}

/* The next one finishes it: the space of "v0" can be written at once. */
static bool is_finished(struct stele_txn *writer,
			const struct stele_txn_opts *change, uint64_t wanted)
{
	struct stele_gc_report report = {.size = sizeof(report)};
	uint64_t offset, kept;

	return stele_txn_restart(writer) == 0 &&
	       test_change_gc(writer, change, NULL, NULL,
			    &report) == 0 &&
	       stele_image_kept_size(writer->image, &kept) == 0 && !kept &&
	       stele_txn_allocate(writer, 4096, 0, &offset) == 0 &&
	       offset == wanted;
}

/* Before the second commit, the older superblock still leads there. */
static void check_cut_short(void)
{
	struct stele_txn_opts change = change_at(DELETED_AT, 0,
					       STELE_FORCE);
	struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .error = EIO, .count = 0};
	struct stele_gc_report report = {.size = sizeof(report)};
	uint64_t n, first, wrong = 0, unfinished = 0, finished = 0;
	int ret = -EIO;

	for (n = 0; ret; n++) {
		struct stele_snapshot snapshot;
		struct stele_txn writer;
		struct stele_device *dev;

		open_image(&writer);
		dev = writer.image->dev;
		first = segment_at(&writer, 0).offset;
		if (test_change_delete(&writer, &change, "v0"))
			bail("cannot delete");
		rule.first = stele_fault_count(dev) + n;
		stele_fault_set_rules(dev, &rule, 1);
		ret = test_change_gc(&writer, &change, NULL, NULL,
				   &report);
		wrong += ret && ret != -EIO;
		stele_fault_set_rules(dev, NULL, 0);
		test_txn_end(&writer);
		if (test_txn_open(&writer, dev, NULL))
			bail("the image is lost");
		wrong += writer.image->catalog.counts.snapshots != 3;
		for (uint32_t i = 0; i < 3; i++) {
			wrong += stele_snapshot_load(writer.image, i,
						     &snapshot) != 0;
			stele_snapshot_release(&snapshot);
		}
		finished += writer.image->catalog.counts.segments == 3;
		unfinished += !is_finished(&writer, &change, first);
		close_image(&writer);
	}
	is_uint(0, wrong, "%ju operations fail one by one: the others stay",
		(uintmax_t)n);
	is_uint(0, unfinished, "the next one finishes it");
	ok(finished > 8, "%ju of them after the first commit",
	   (uintmax_t)finished);
}

/* Does a range touch what one of the two catalogs leads to? */
static bool is_used(struct stele_image *image, uint64_t offset, uint64_t size)
{
	struct stele_extents used = {0};
	bool touched = false;

	if (stele_extents_add_copies(&used, image))
		bail("no extents");
	for (uint32_t i = 0; i < used.count; i++)
		touched |= offset < used.list[i].offset + used.list[i].size &&
			   used.list[i].offset < offset + size;
	stele_extents_release(&used);
	return touched;
}

static void check_discard(void)
{
	struct stele_txn_opts change = change_at(
		DELETED_AT, 0, STELE_FORCE | STELE_TXN_DISCARD);
	struct stele_fault_rule rule = {.kind = STELE_FAULT_FAIL,
					.error = EOPNOTSUPP,
					.ops = 1u << STELE_OP_DISCARD};
	const struct stele_fault_entry *log;
	struct stele_catalog_segment segment;
	struct stele_gc_report report = {.size = sizeof(report)};
	struct stele_txn writer;
	struct stele_catalog_free discards[DISCARDS_MAX];
	size_t count, discard_count = 0;
	bool covered = false;
	uint64_t wrong = 0;

	open_image(&writer);
	segment = segment_at(&writer, 2);
	delete(&writer, "v2", DELETED_AT);
	stele_fault_log_clear(writer.image->dev);
	is_int(0,
	       test_change_gc(&writer, &change, NULL, NULL,
			    &report),
	       "with discard");
	log = stele_fault_log(writer.image->dev, &count);
	for (size_t i = 0; i < count; i++) {
		if (log[i].op == STELE_OP_WRITE && discard_count)
			wrong++;
		if (log[i].op != STELE_OP_DISCARD)
			continue;
		if (discard_count == DISCARDS_MAX)
			bail("too many discards");
		discards[discard_count++] = (struct stele_catalog_free){
			log[i].offset, log[i].size};
		covered |= log[i].offset <= segment.offset &&
			   log[i].offset + log[i].size >=
				   segment.offset + segment.size;
		wrong += log[i].offset < STELE_DATA_OFFSET ||
			 log[i].offset + log[i].size > IMAGE_SIZE;
	}
	is_uint(0, wrong, "discards come last, and stay within the image");
	ok(covered, "the segment is discarded");
	for (size_t i = 0; i < discard_count; i++)
		wrong += is_used(writer.image, discards[i].offset,
				 discards[i].size);
	is_uint(0, wrong, "nothing that a superblock leads to is");
	stele_fault_set_rules(writer.image->dev, &rule, 1);
	is_int(-EOPNOTSUPP,
	       test_change_gc(&writer, &change, NULL, NULL,
			    &report),
	       "a device that cannot says so");
	close_image(&writer);
}

/* ---- resize ------------------------------------------------------------------------ */

static void check_resize(void)
{
	const struct stele_txn_opts change = change_at(DELETED_AT, 0, 0);
	struct stele_resize_report report = {.size = sizeof(report)};
	struct stele_txn writer;

	open_image(&writer);
	stele_fault_log_clear(writer.image->dev);
	is_int(-EINVAL,
	       test_change_resize(&writer, &change, IMAGE_SIZE - 4096, &report),
	       "smaller is refused");
	is_int(-EINVAL,
	       test_change_resize(&writer, &change, IMAGE_SIZE + 512, &report),
	       "so is no multiple of 4096");
	is_int(0, test_change_resize(&writer, &change, IMAGE_SIZE, &report),
	       "as it is");
	is_uint(0, operations(writer.image->dev, STELE_OP_WRITE),
		"nothing is written");
	is_int(0,
	       test_change_resize(&writer, &change, IMAGE_SIZE + 4096, &report),
	       "a block more");
	is_uint(IMAGE_SIZE, report.old_size, "from");
	is_uint(IMAGE_SIZE + 4096, report.new_size, "to");
	is_int(0, test_change_resize(&writer, &change, 0, &report), "all of it");
	is_uint(2 * IMAGE_SIZE, report.new_size, "to the target's size");
	is_uint(2 * IMAGE_SIZE, writer.image->sb.image_size, "in the superblock");
	close_image(&writer);
}

int main(void)
{
	plan_lazy();
	samples = test_samples(SAMPLES, 3000, 7);
	check_due();
	check_clock();
	check_freed();
	check_cut_short();
	check_discard();
	check_resize();
	free(samples);
	return done();
}
