/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit-random.c - long random sequences of edits, and what they write to
 *
 * Before each edit all four superblock copies are followed, by format/ alone,
 * to every block that they lead to. The log of the device then must not hold a
 * write to one of these, nor a superblock anywhere but in the slot that was
 * not selected, after all else was flushed, its other copy included. Each state is compared with a
 * model, and every snapshot is loaded, digest and all. Now and then a process "dies" in the
 * middle: what it wrote stays, what it did not commit is forgotten; or the
 * newest slot is lost, or half of it, and what is left has to be whole; nor may it go
 * unnoticed that all of it is.
 */
#include "tests/fixture/edit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/sections.h"
#include "lib/base/random.h"
#include "lib/image/fork.h"
#include "lib/image/snapshot.h"
#include "tests/device/fault.h"
#include "tests/tap.h"

#define BLOCKS	   76u
#define IMAGE_SIZE (STELE_DATA_OFFSET + BLOCKS * STELE_BLOCK_SIZE)
#define STEPS	   3000u
#define MODEL_MAX  6u

static const uint64_t offsets[] = STELE_SUPERBLOCK_OFFSETS;

/* What the newest generation should hold. */
struct model {
	char names[MODEL_MAX][16];
	uint64_t ids[MODEL_MAX];
	uint8_t digests[MODEL_MAX][32];
	unsigned int count;
};

static struct stele_device *dev;
static uint8_t *bytes; /* of the device below */
static struct test_sample *samples;
static bool guarded[BLOCKS]; /* led to by some copy */
static int selected;	     /* slot; -1: none */
static uint64_t mirror;	     /* of its catalog */
static uint64_t state = 88172645463325252u, commits, reused, full;
static struct model now, before; /* of the newest and of the older slot */
static uint8_t old_copies[STELE_SUPERBLOCK_COPIES][STELE_BLOCK_SIZE];

static unsigned int random_below(unsigned int n)
{
	return (unsigned int)((stele_random_next(&state) >> 32) % n);
}

/* ---- what the copies lead to, without lib/ --------------------------------- */

static void guard(uint64_t offset, uint64_t size)
{
	for (uint64_t at = offset; at < offset + size; at += STELE_BLOCK_SIZE)
		guarded[(at - STELE_DATA_OFFSET) / STELE_BLOCK_SIZE] = true;
}

static bool guard_catalog(const struct stele_superblock *sb)
{
	struct stele_catalog c;

	if (stele_catalog_decode(bytes + sb->catalog_offset, sb->catalog_size,
				 sb, &c, NULL) < 0)
		return false;
	guard(sb->catalog_offset, sb->catalog_size);
	for (uint32_t i = 0; i < c.counts.segments; i++) {
		struct stele_catalog_segment s;

		stele_catalog_segment(&c, i, &s);
		guard(s.offset, s.size);
	}
	for (uint32_t i = 0; i < c.counts.refs; i++) {
		struct stele_catalog_ref r;

		stele_catalog_ref(&c, i, &r);
		for (uint32_t j = 0; j < STELE_REF_LISTS && r.lists[j].offset; j++)
			guard(r.lists[j].offset,
			      stele_deleted_blocks(r.lists[j].count) *
				      STELE_BLOCK_SIZE);
	}
	return true;
}

static void follow_copies(void)
{
	uint64_t newest = 0;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
		memcpy(old_copies[i], bytes + offsets[i], STELE_BLOCK_SIZE);
	memset(guarded, 0, sizeof(guarded));
	selected = -1;
	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++) {
		struct stele_superblock sb;

		if (stele_superblock_decode((void *)(bytes + offsets[i]),
					    offsets[i], &sb, NULL) < 0 ||
		    sb.state != STELE_STATE_READY || !guard_catalog(&sb) ||
		    sb.generation <= newest)
			continue;
		newest = sb.generation;
		mirror = sb.mirror_offset;
		selected = (int)i % 2;
	}
}

static bool is_witness(uint64_t offset)
{
	return offset == STELE_CATALOG_MIRRORS_OFFSET + STELE_CATALOG_MIRROR_SIZE ||
	       offset == STELE_DATA_OFFSET - STELE_BLOCK_SIZE;
}

/* Return: number of writes that should not have been. */
static unsigned int check_log(void)
{
	const struct stele_fault_entry *log;
	bool dirty = false;
	unsigned int bad = 0;
	size_t count;

	log = stele_fault_log(dev, &count);
	for (size_t i = 0; i < count; i++) {
		if (log[i].op == STELE_OP_FLUSH)
			dirty = false;
		if (log[i].op != STELE_OP_WRITE)
			continue;
		if (log[i].offset >= STELE_CATALOG_MIRRORS_OFFSET &&
		    log[i].offset < STELE_DATA_OFFSET) {
			/* The witness, when all that it leads to is durable. */
			bad += log[i].offset == mirror ||
			       log[i].offset == stele_superblock_witness(mirror) ||
			       (dirty && is_witness(log[i].offset));
			dirty = true;
			continue;
		}
		if (log[i].offset < STELE_DATA_OFFSET) {
			unsigned int copy = 0;

			while (offsets[copy] != log[i].offset)
				copy++;
			bad += dirty || (int)copy % 2 == selected ||
			       log[i].size != STELE_BLOCK_SIZE;
			dirty = true;
			continue;
		}
		dirty = true;
		for (uint64_t at = 0; at < log[i].size; at += STELE_BLOCK_SIZE)
			bad += guarded[(log[i].offset + at -
					STELE_DATA_OFFSET) /
				       STELE_BLOCK_SIZE];
	}
	stele_fault_log_clear(dev);
	return bad;
}

/* ---- comparing ------------------------------------------------------------- */

static bool is_sound(struct stele_image *image, const struct model *model)
{
	bool good = image->catalog.counts.snapshots == model->count;

	for (uint32_t i = 0; good && i < model->count; i++) {
		struct stele_snapshot snapshot;

		good = stele_snapshot_load(image, i, &snapshot) == 0;
		if (!good)
			break;
		good = !strcmp(snapshot.info.name, model->names[i]) &&
		       !memcmp(snapshot.digest, model->digests[i], 32);
		stele_snapshot_release(&snapshot);
	}
	return good;
}

/* Free extents: all that is not used below the mark, which is the end. */
static bool is_tiled(const struct stele_image *image)
{
	const struct stele_catalog *c = &image->catalog;
	unsigned int used[BLOCKS] = {0}, end = 0;
	uint64_t high_water;

	memset(guarded, 0, sizeof(guarded));
	if (!guard_catalog(&image->sb))
		return false;
	for (unsigned int i = 0; i < BLOCKS; i++) {
		used[i] = guarded[i];
		if (used[i])
			end = i + 1;
	}
	for (uint32_t i = 0; i < c->counts.free; i++) {
		struct stele_catalog_free f;

		stele_catalog_free(c, i, &f);
		for (uint64_t at = 0; at < f.size; at += STELE_BLOCK_SIZE)
			used[(f.offset + at - STELE_DATA_OFFSET) /
			     STELE_BLOCK_SIZE]++;
	}
	for (unsigned int i = 0; i < end; i++)
		if (used[i] != 1)
			return false;
	high_water = STELE_DATA_OFFSET + end * STELE_BLOCK_SIZE;
	return image->sb.high_water == high_water;
}

/* ---- steps ----------------------------------------------------------------- */

static void forget(struct model *model, unsigned int index)
{
	model->count--;
	memmove(model->names[index], model->names[index + 1],
		(model->count - index) * sizeof(model->names[0]));
	memmove(model->digests[index], model->digests[index + 1],
		(model->count - index) * sizeof(model->digests[0]));
}

static int add(struct test_edit *t, struct model *model)
{
	static unsigned int number;
	static const uint64_t deleted[] = {0, 2};
	const struct stele_txn_snapshot *old = NULL;
	uint64_t ids[4];
	uint32_t count = 0;
	char name[16];
	int ret = 0;

	if (model->count)
		old = &t->edit.snapshots[random_below(model->count)];
	for (uint32_t i = 0; old && i < old->info.ref_count && count < 2; i++)
		ids[count++] = old->refs[i].segment_id;
	snprintf(name, sizeof(name), "s%u", number++);
	if (!count || random_below(3))
		ret = test_edit_segment(t, samples + random_below(20),
					3 + random_below(8), &ids[count++]);
	if (ret == 0)
		ret = test_edit_snapshot(t, name, ids, count, deleted,
					 random_below(3));
	if (ret < 0)
		return ret;
	strcpy(model->names[model->count], name);
	memcpy(model->digests[model->count],
	       stele_txn_find(&t->edit, NULL)->info.digest, 32);
	model->count++;
	return 0;
}

static int change(struct test_edit *t, struct model *model)
{
	int ret = 0;

	if (model->count < MODEL_MAX && random_below(3))
		ret = add(t, model);
	if (ret == 0 && model->count && random_below(2)) {
		unsigned int index = random_below(model->count);

		stele_txn_remove_snapshot(&t->edit, model->names[index]);
		forget(model, index);
	}
	if (random_below(2))
		test_edit_collect(t);
	return ret;
}

/* As a process does it that may die before the commit. False: it went wrong. */
static bool run_edit(struct test_edit *t)
{
	struct model next = now;
	unsigned int times = 1 + random_below(3);

	for (unsigned int i = 0; i < times; i++) {
		int ret;

		follow_copies();
		stele_fault_log_clear(dev);
		ret = change(t, &next);
		if (ret == 0 && random_below(8) == 0)
			return check_log() == 0; /* dies */
		if (ret == 0)
			ret = stele_txn_publish(&t->edit, 1000);
		if (check_log())
			return false;
		if (ret == -ENOSPC) {
			full++;
			return true;
		}
		if (ret < 0 || !is_sound(&t->image, &next) ||
		    !is_tiled(&t->image))
			return false;
		commits++;
		reused += t->image.sb.catalog_offset <
			  t->image.sb.high_water - t->image.sb.catalog_size;
		before = now;
		now = next;
	}
	return true;
}

/* The generation before is whole, and may be gone on with; that fills both slots again. */
static bool go_back(struct stele_image *image)
{
	struct stele_txn edit = {0};
	bool good = image->fork && image->fork->doubt && stele_fork_choose(image, 0) == 0;

	now = before;
	good = good && is_sound(image, &now) && stele_txn_attach(image, &edit) == 0 &&
	       stele_txn_publish(&edit, 1000) == 0 && stele_txn_publish(&edit, 1000) == 0;
	stele_txn_release(&edit);
	return good;
}

/*
 * The newest slot is gone, perhaps with its witness; or one of its copies; or one of them
 * never came to be, and still is what it was.
 */
static bool lose_slot(void)
{
	unsigned int way = random_below(5), copy;
	struct stele_image image;
	bool good;

	if (way == 3) {
		/* What follow_copies() kept is of before the last commit. */
		copy = (unsigned int)!selected + 2 * random_below(2);
		memcpy(bytes + offsets[copy], old_copies[copy],
		       STELE_BLOCK_SIZE);
	} else {
		follow_copies();
		copy = (unsigned int)selected + 2 * (way == 1);
		memset(bytes + offsets[copy], 0xee, STELE_BLOCK_SIZE);
	}
	if (way == 2 || way == 4)
		memset(bytes + offsets[copy + 2], 0xee, STELE_BLOCK_SIZE);
	if (way == 4)
		memset(bytes + stele_superblock_witness(mirror), 0xee, STELE_BLOCK_SIZE);
	if (stele_image_load(dev, NULL, &image) < 0)
		return false;
	good = way == 4 ? go_back(&image) : !image.fork && is_sound(&image, &now);
	image.dev = NULL;
	stele_image_release(&image);
	return good;
}

static bool step(unsigned int number)
{
	struct test_edit t;
	bool good;

	/* What was lost must come back before the next one may be. */
	if (number % 7 == 6 && commits > 2) {
		uint64_t wanted = commits + 2;

		if (!lose_slot())
			return false;
		while (commits < wanted) {
			good = test_edit_load(&t, dev) == 0 && run_edit(&t);
			test_edit_end(&t);
			if (!good)
				return false;
			if (full > 10 * commits)
				return false;
		}
		return true;
	}
	good = test_edit_load(&t, dev) == 0 && run_edit(&t);
	test_edit_end(&t);
	return good;
}

int main(void)
{
	struct stele_device *inner;
	struct test_edit t;
	unsigned int i;

	plan_lazy();
	samples = test_samples(32, 600, 11);
	if (stele_device_open_memory(IMAGE_SIZE, 512, &inner) < 0 ||
	    stele_device_open_fault(inner, NULL, 0, &dev) < 0)
		bail("no device");
	bytes = stele_device_memory(inner);
	if (test_edit_create(&t, dev, IMAGE_SIZE) < 0 ||
	    stele_txn_publish(&t.edit, 1) < 0)
		bail("cannot make an image");
	test_edit_end(&t);
	for (i = 0; i < STEPS && step(i); i++)
		;
	is_uint(STEPS, i, "so many steps, of %" PRIu64 " commits", commits);
	ok(reused > commits / 4, "%" PRIu64 " catalogs within free space",
	   reused);
	ok(full > 0, "%" PRIu64 " times there was no space", full);
	stele_device_close(dev);
	free(samples);
	return done();
}
