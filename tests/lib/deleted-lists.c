/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted-lists.c - what is deleted costs what it changes, and is what was deleted
 *
 * Sets of numbers against an array of flags; then snapshots of one segment, each of which
 * deletes one more sample: mostly a second list is written, never more than 64 of them
 * behind one first list, and a crash while that is committed leaves what was there.
 */
#include "format/sections.h"
#include "lib/image/lists.h"
#include "lib/txn/addition.h"
#include "tests/crash/crash.h"
#include "tests/fixture/edit.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets -------------------------------------------------------------------------- */

#define COUNT 5000u

static uint64_t fill(bool flags[COUNT], unsigned int one_in, struct stele_deleted *out)
{
	uint64_t numbers[COUNT], count = 0;

	for (uint64_t i = 0; i < COUNT; i++) {
		flags[i] = rand() % one_in == 0;
		if (flags[i])
			numbers[count++] = i;
	}
	if (stele_deleted_make(numbers, count, out) < 0)
		bail("no memory");
	return count;
}

static bool is_set(const struct stele_deleted *d, const bool flags[COUNT])
{
	uint64_t below = 0, live = 0, *numbers = stele_deleted_numbers(d);
	bool same = true;

	for (uint64_t i = 0; i < COUNT && same; i++) {
		uint64_t seen;

		same = stele_deleted_has(d, i, &seen) == flags[i] && seen == below &&
		       (flags[i] || stele_deleted_live(d, live) == i) &&
		       (!flags[i] || numbers[below] == i);
		below += flags[i];
		live += !flags[i];
	}
	free(numbers);
	return same && below == d->count &&
	       stele_deleted_live(d, live + 9) == COUNT + 9 &&
	       !stele_deleted_has(d, UINT64_C(1) << 40, &below) && below == d->count;
}

static void check_sets(unsigned int a_in, unsigned int b_in)
{
	static bool a[COUNT], b[COUNT], c[COUNT];
	struct stele_deleted x, y, z;
	const uint64_t count = fill(a, a_in, &x);

	is_uint(count, x.count, "one in %u", a_in);
	fill(b, b_in, &y);
	ok(is_set(&x, a), "look-ups");
	for (int op = STELE_DELETED_OR; op <= STELE_DELETED_ANDNOT; op++) {
		for (unsigned int i = 0; i < COUNT; i++)
			c[i] = op == STELE_DELETED_OR  ? a[i] || b[i] :
			       op == STELE_DELETED_AND ? a[i] && b[i] :
			       op == STELE_DELETED_XOR ? a[i] != b[i] :
							 a[i] && !b[i];
		if (stele_deleted_combine(&x, &y, op, &z) < 0)
			bail("no memory");
		ok(is_set(&z, c), "with one in %u: %d", b_in, op);
		stele_deleted_release(&z);
	}
	stele_deleted_release(&x);
	stele_deleted_release(&y);
}

/* ---- lists on a target --------------------------------------------------------------- */

#define SAMPLES	   20480u
#define FIRST	   (SAMPLES / 64) /* deleted at first, one of each word: two blocks */
#define IMAGE_SIZE (UINT64_C(8) << 20)

static const struct stele_catalog_ref *ref_of(struct stele_txn *txn, const char *name)
{
	return &stele_txn_find(txn, name)->refs[0].at;
}

/* A snapshot of `base`, less some more samples. */
static void delete(struct stele_txn *txn, const char *base, const char *name,
		   const uint64_t *numbers, uint64_t count, uint64_t size)
{
	if (stele_addition_begin(txn, stele_txn_find(txn, base)) < 0 ||
	    stele_addition_delete(txn->work, 0, numbers, count, count * size) < 0 ||
	    stele_addition_end(txn->work, name) < 0)
		bail("cannot delete");
}

static void make(struct test_edit *t, struct stele_device *dev, uint64_t *size)
{
	struct test_sample *samples = test_samples(SAMPLES, 8, 1);
	uint64_t id, numbers[FIRST];

	*size = 8;
	for (uint64_t i = 0; i < SAMPLES; i++)
		samples[i].size = *size;
	for (uint64_t i = 0; i < FIRST; i++)
		numbers[i] = 64 * i + 7;
	if (test_edit_create(t, dev, IMAGE_SIZE) < 0 ||
	    test_edit_segment(t, samples, SAMPLES, &id) < 0 ||
	    test_edit_snapshot(t, "all", &id, 1, NULL, 0) < 0)
		bail("cannot make an image");
	delete(&t->edit, "all", "base", numbers, FIRST, *size);
	free(samples);
}

static void check_snapshots(struct stele_device *dev, uint32_t count)
{
	struct stele_image image;
	struct stele_snapshot snapshot;
	uint32_t sound = 0;

	if (stele_image_load(dev, NULL, &image) < 0)
		bail("cannot load");
	is_uint(count, image.catalog.counts.snapshots, "snapshots");
	for (uint32_t i = 0; i < count; i++) {
		sound += stele_snapshot_load(&image, i, &snapshot) == 0;
		stele_snapshot_release(&snapshot);
	}
	is_uint(count, sound, "all can be loaded, and have their digests");
	image.dev = NULL;
	stele_image_release(&image);
}

/* Each starts from the one before. */
static void check_chain(struct test_edit *t, uint64_t size)
{
	const uint64_t first = ref_of(&t->edit, "base")->lists[0].offset;
	char base[64] = "base", name[64];
	uint32_t seconds = 0;

	is_uint(FIRST, ref_of(&t->edit, "base")->lists[0].count, "the first list");
	ok(!ref_of(&t->edit, "base")->lists[1].offset, "alone");
	for (uint64_t i = 0; i < 40; i++) {
		const uint64_t number = 64 * i + 9;
		const struct stele_catalog_ref *ref;

		snprintf(name, sizeof(name), "c%" PRIu64, i);
		delete(&t->edit, base, name, &number, 1, size);
		strcpy(base, name);
		ref = ref_of(&t->edit, name);
		if (ref->lists[0].offset != first)
			break;
		seconds += ref->lists[1].count == i + 1 &&
			   ref->deleted_count == FIRST + i + 1;
	}
	is_uint(25, seconds, "so many second lists, until n * n > 2 * %u", FIRST);
	ok(!ref_of(&t->edit, name)->lists[1].offset, "then all is one list");
	is_uint(FIRST, ref_of(&t->edit, name)->lists[0].count, "of as many words");
}

/* All start from one. */
static void check_tree(struct test_edit *t, uint64_t size)
{
	const uint64_t first = ref_of(&t->edit, "base")->lists[0].offset;
	char name[64];
	uint32_t seconds = 0;

	for (uint64_t i = 0; i < 60; i++) {
		const uint64_t number = 64 * i + 11;

		snprintf(name, sizeof(name), "t%" PRIu64, i);
		delete(&t->edit, "base", name, &number, 1, size);
		seconds += ref_of(&t->edit, name)->lists[0].offset == first;
	}
	is_uint(STELE_SECOND_LISTS_MAX - 25, seconds, "as many as may share a first one");
}

static void check_lists(void)
{
	struct stele_device *dev = test_memory(IMAGE_SIZE, 512, 0);
	struct test_edit t;
	uint64_t size;

	make(&t, dev, &size);
	check_chain(&t, size);
	check_tree(&t, size);
	is_int(0, stele_txn_publish(&t.edit, 1), "commit");
	test_edit_end(&t);
	check_snapshots(dev, 2 + 26 + 60);
	/* What they share stays while one has it. */
	is_int(0, test_edit_load(&t, dev), "load");
	for (uint32_t i = t.edit.snapshot_count; i-- > 0;)
		if (strcmp(t.edit.snapshots[i].info.name, "c3"))
			stele_txn_remove_snapshot(&t.edit, t.edit.snapshots[i].info.name);
	for (uint32_t i = t.edit.deleted_count; i-- > 0;)
		stele_txn_forget_snapshot(&t.edit, t.edit.snapshot_count);
	is_int(0, stele_txn_publish(&t.edit, 2), "one is left");
	for (uint64_t i = 0; i < 30; i++) {
		const uint64_t number = 64 * i + 13;
		char name[64];

		snprintf(name, sizeof(name), "u%" PRIu64, i);
		delete(&t.edit, "c3", name, &number, 1, size);
		if (stele_txn_publish(&t.edit, 3) < 0)
			bail("cannot commit");
	}
	test_edit_end(&t);
	check_snapshots(dev, 31);
	stele_device_close(dev);
}

/* ---- a catalog that has too many ------------------------------------------------------ */

static void check_collect(uint32_t seconds, int wanted)
{
	const struct stele_catalog_counts counts = {.segments = 1, .refs = seconds};
	const uint64_t blocks = stele_stream_blocks(stele_catalog_stream_size(&counts));
	struct stele_disk_block *memory = calloc(blocks, sizeof(*memory));
	const struct stele_catalog catalog = {memory, blocks, counts, 1};
	struct stele_lists lists;

	if (!memory)
		bail("no memory");
	stele_catalog_begin(memory, &counts, 1);
	for (uint32_t i = 0; i < seconds; i++) {
		const struct stele_catalog_ref ref = {
			.deleted_count = 2,
			.lists = {{0x200000, 1, 1}, {0x201000 + i * 4096, 1, 1}}};

		stele_catalog_put_ref(memory, &counts, i, &ref);
	}
	is_int(wanted, stele_lists_collect(&lists, &catalog), "%u second lists", seconds);
	stele_lists_release(&lists);
	free(memory);
}

/* ---- crashes ---------------------------------------------------------------------------- */

static void check_crashes(void)
{
	uint8_t *blank = calloc(1, IMAGE_SIZE), *base;
	struct test_history h;
	struct test_edit t;
	uint64_t size;

	if (!blank)
		bail("no memory");
	test_crash_init(IMAGE_SIZE);
	test_history_open(&h, blank);
	make(&t, h.fault, &size);
	if (stele_txn_publish(&t.edit, 1) < 0)
		bail("cannot commit");
	test_history_expect(&h, TEST_EXPECT_IMAGE, &t.image.sb);
	test_edit_end(&t);
	base = malloc(IMAGE_SIZE);
	if (!base)
		bail("no memory");
	memcpy(base, h.expect[h.count - 1].bytes, IMAGE_SIZE);
	test_history_close(&h);

	test_history_open(&h, base);
	if (test_edit_load(&t, h.fault) < 0)
		bail("cannot load");
	test_history_expect(&h, TEST_EXPECT_IMAGE, &t.image.sb);
	for (uint64_t i = 0; i < 3; i++) {
		const uint64_t number = 64 * i + 9;
		char name[64];

		snprintf(name, sizeof(name), "v%" PRIu64, i);
		delete(&t.edit, NULL, name, &number, 1, size);
		ok(ref_of(&t.edit, name)->lists[1].offset, "a second list");
		if (stele_txn_publish(&t.edit, 2) < 0)
			bail("cannot commit");
		test_history_expect(&h, TEST_EXPECT_IMAGE, &t.image.sb);
	}
	test_edit_end(&t);
	test_crash_name("one more deletion");
	test_crash_explore(&h, false);
	test_crash_report();
	test_history_close(&h);
	test_crash_release();
	free(blank);
	free(base);
}

int main(void)
{
	plan_lazy();
	srand(7);
	check_sets(2, 2);
	check_sets(1, 3);
	check_sets(40, 400);
	check_sets(1000, 2);
	check_sets(9000, 9000);
	check_lists();
	check_collect(64, 0);
	check_collect(65, -EUCLEAN);
	check_crashes();
	return done();
}
