/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit-full.c - from an image that is full to the last block something can go
 *
 * Images are filled with segments until no more fit, at many sizes; those that
 * other writers filled, to the very last block, are made here. Then snapshots
 * are renamed and deleted, and their space given back, until nothing is left.
 */
#include "format/intent.h"
#include "lib/txn/intent.h"
#include "tests/fixture/edit.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA	UINT64_C(0x200000)
#define SIZES	40u
#define NOTE	3000u

static struct test_sample *samples;
static struct test_log messages;

/* `size`: of a note, so that catalogs take one block or several. */
static int add(struct test_edit *t, unsigned int count, uint32_t note_size)
{
	unsigned int number = (unsigned int)t->edit.next_snapshot_id;
	struct stele_txn_snapshot *s;
	char name[16];
	uint64_t id;
	int ret;

	snprintf(name, sizeof(name), "v%u", number);
	ret = test_edit_segment(t, samples + number % 8, count, &id);
	if (ret == 0)
		ret = test_edit_snapshot(t, name, &id, 1, NULL, 0);
	if (ret < 0)
		return ret;
	s = stele_txn_find(&t->edit, name);
	free(s->note);
	s->note = calloc(1, note_size + 1);
	s->info.note_size = note_size;
	return stele_txn_publish(&t->edit, 1700000000 + number);
}

/* Rename one, delete one, give back its space, until none is left. */
static unsigned int empty(struct test_edit *t)
{
	unsigned int wrong = 0;

	while (t->edit.snapshot_count) {
		char name[STELE_SNAPSHOT_NAME_SIZE];
		uint64_t kept;

		strcpy(name, t->edit.snapshots[0].info.name);
		stele_txn_rename_snapshot(&t->edit, name, "renamed");
		wrong += stele_txn_publish(&t->edit, 1) != 0;
		stele_txn_remove_snapshot(&t->edit, "renamed");
		wrong += stele_txn_publish(&t->edit, 1) != 0;
		test_edit_collect(t);
		wrong += stele_txn_publish(&t->edit, 1) != 0;
		wrong += stele_txn_publish(&t->edit, 1) != 0;
		wrong += stele_image_kept_size(&t->image, &kept) || kept;
		if (wrong)
			return wrong;
	}
	return t->edit.segment_count != 0;
}

static void listen(struct test_edit *t)
{
	test_log_init(&messages);
	t->image.log = messages.log;
}

static void check_filled(uint32_t note_size)
{
	unsigned int wrong = 0, full = 0;

	for (uint64_t blocks = 6; blocks < 6 + SIZES; blocks++) {
		const uint64_t size = DATA + blocks * STELE_BLOCK_SIZE;
		struct stele_device *dev = test_memory(size, 512, 0);
		struct test_edit t;
		unsigned int bad;
		int ret;

		if (test_edit_create(&t, dev, size) < 0)
			bail("no image");
		for (ret = 0; ret == 0;)
			ret = add(&t, 1 + (unsigned int)blocks % 3, note_size);
		full += ret == -ENOSPC;
		test_edit_end(&t);
		ret = test_edit_load(&t, dev);
		if (ret == 0) {
			listen(&t);
			bad = empty(&t);
			if (bad)
				diag("%ju blocks: %s", (uintmax_t)blocks,
				     messages.text);
			wrong += bad;
		} else if (ret != -EINPROGRESS) { /* not even one fits */
			wrong++;
		}
		test_edit_end(&t);
		stele_device_close(dev);
	}
	is_uint(SIZES, full, "full images, notes of %u bytes", note_size);
	is_uint(0, wrong, "from each all can be deleted");
}

/* As one that keeps no room would: a segment of all but the last block. */
static void fill(struct test_edit *t, struct stele_catalog_segment *segment)
{
	uint64_t end = t->image.sb.high_water;

	*segment = (struct stele_catalog_segment){
		.id = 4711,
		.offset = end,
		.size = t->edit.image_size - end - STELE_BLOCK_SIZE,
		.descriptor_size = STELE_BLOCK_SIZE,
		.sample_count = 1,
	};
	if (stele_txn_add_segment(&t->edit, segment) < 0 ||
	    stele_txn_refresh(&t->edit) < 0 ||
	    stele_extents_add(&t->edit.used, segment->offset,
			      segment->size) < 0)
		bail("cannot fill the image");
	t->edit.takes = false;
	if (stele_txn_publish(&t->edit, 7) < 0)
		bail("cannot fill the image: %s", messages.text);
	is_uint(t->edit.image_size, t->image.sb.high_water,
		"an image without a free block");
}

static void check_older_writer(void)
{
	const uint64_t size = DATA + 20 * STELE_BLOCK_SIZE;
	struct stele_device *dev = test_memory(size, 512, 0);
	struct stele_catalog_segment filler;
	struct test_edit t;
	uint64_t id, kept, offset;

	if (test_edit_create(&t, dev, size) < 0 ||
	    test_edit_segment(&t, samples, 3, &id) < 0 ||
	    test_edit_snapshot(&t, "v1", &id, 1, NULL, 0) < 0 ||
	    stele_txn_publish(&t.edit, 5) < 0)
		bail("no image");
	listen(&t);
	fill(&t, &filler);
	test_edit_end(&t);
	if (test_edit_load(&t, dev) < 0)
		bail("no image");
	listen(&t);
	is_int(-ENOSPC, stele_txn_allocate(&t.edit, 4096, 0, &offset),
	       "has none for data");
	ok(test_log_has(&messages, "free some with gc"),
	   "a segment is unused: gc would help");
	is_int(0, stele_txn_rename_snapshot(&t.edit, "v1", "w"), "rename");
	is_int(0, stele_txn_publish(&t.edit, 8), "commits");
	is_int(0, stele_txn_drop_segment(&t.edit, filler.id), "drop");
	is_int(0, stele_txn_publish(&t.edit, 9), "commits");
	is_int(0, stele_image_kept_size(&t.image, &kept), "the older one");
	is_uint(filler.size, kept, "still leads there");
	is_int(0, stele_txn_publish(&t.edit, 10), "commits");
	is_int(0, stele_image_kept_size(&t.image, &kept), "by then");
	is_uint(0, kept, "no more");
	is_int(0, add(&t, 3, 0), "there is room again");
	test_edit_end(&t);
	is_int(0, test_edit_load(&t, dev), "and all is found");
	ok(stele_txn_find(&t.edit, "w") != NULL, "under its new name");
	test_edit_end(&t);
	stele_device_close(dev);
}

/* ---- what a writer of another machine has left, which died ---------------------- */

static int begin(struct test_edit *t, struct stele_device *dev)
{
	int ret;

	memset(t, 0, sizeof(*t));
	ret = stele_image_load(dev, NULL, &t->image);
	listen(t);
	if (ret == 0)
		ret = stele_image_announce(&t->image);
	return ret ? ret : stele_txn_attach(&t->image, &t->edit);
}

static void end(struct test_edit *t, struct stele_device *dev)
{
	stele_txn_release(&t->edit);
	stele_intent_end(dev);
	test_edit_end(t);
}

/* Its word stays: so many blocks, in which it may still be writing. */
static bool die_elsewhere(struct stele_device *dev, uint64_t blocks)
{
	uint8_t said[2 * STELE_BLOCK_SIZE];
	uint8_t *at = (uint8_t *)stele_device_memory(dev) +
		      STELE_INTENT_TURN_OFFSET;
	struct test_edit t;
	uint64_t offset;
	bool fits;

	stele_intent_pose(2, 1);
	if (begin(&t, dev) < 0)
		bail("no other writer");
	fits = stele_txn_allocate(&t.edit, blocks * STELE_BLOCK_SIZE, 0,
				   &offset) == 0;
	memcpy(said, at, sizeof(said));
	end(&t, dev);
	memcpy(at, said, sizeof(said));
	stele_intent_pose(0, 0);
	return fits;
}

static int add_once(struct stele_device *dev)
{
	struct test_edit t;
	int ret = begin(&t, dev);

	if (ret == 0)
		ret = add(&t, 1, 0);
	end(&t, dev);
	return ret;
}

/* Would it fit if there were nothing to avoid? */
static bool would_fit(const struct stele_device *of, uint64_t size)
{
	struct stele_device *dev = test_memory(size, 512, 0);
	uint8_t *bytes = stele_device_memory(dev);
	bool fits;

	memcpy(bytes, stele_device_memory((struct stele_device *)of), size);
	memset(bytes + STELE_INTENT_TURN_OFFSET, 0, 2 * STELE_BLOCK_SIZE);
	fits = add_once(dev) == 0;
	stele_device_close(dev);
	return fits;
}

static struct stele_device *make_small(uint64_t blocks)
{
	const uint64_t size = DATA + blocks * STELE_BLOCK_SIZE;
	struct stele_device *dev = test_memory(size, 512, 0);
	struct test_edit t;

	if (test_edit_create(&t, dev, size) < 0 || add(&t, 1, 0) < 0)
		bail("no image");
	test_edit_end(&t);
	return dev;
}

static void check_avoided(void)
{
	unsigned int fitted = 0, refused = 0, wrong = 0, silent = 0;
	const uint64_t blocks = 40;

	for (uint64_t left = 1; left < blocks; left++) {
		struct stele_device *dev = make_small(blocks);

		/* The others die each time before the next one comes. */
		while (die_elsewhere(dev, left)) {
			bool fits = would_fit(dev, DATA + blocks * STELE_BLOCK_SIZE);
			int ret = add_once(dev);

			fitted += ret == 0;
			refused += ret == -ENOSPC;
			wrong += ret != (fits ? 0 : -ENOSPC);
			silent += ret && !test_log_has(&messages, "no space left");
			if (ret)
				break;
		}
		stele_device_close(dev);
	}
	ok(fitted > 20 && refused > 4, "%u snapshots fit, %u do not", fitted,
	   refused);
	is_uint(0, wrong, "just as if nothing had to be avoided");
	is_uint(0, silent, "who finds no space says so");
}

int main(void)
{
	plan_lazy();
	samples = test_samples(24, 300, 5);
	check_filled(0);
	check_filled(NOTE);
	check_older_writer();
	check_avoided();
	free(samples);
	return done();
}
