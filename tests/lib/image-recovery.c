/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image-recovery.c - which copies may be damaged, and what recovery says then
 *
 * The image has two generations: copies 1 and 3 (slot 1) hold generation 1,
 * copies 0 and 2 hold generation 2, which is the image.
 */
#include "format/decode.h"
#include "lib/image/copies.h"
#include "lib/image/fork.h"
#include "lib/txn/intent.h"
#include "lib/txn/txn.h"
#include "tests/fixture/image.h"
#include "tests/device/fault.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/snapshot.h"

#define IMAGE_SIZE (UINT64_C(4) << 20)

static const uint64_t offsets[] = STELE_SUPERBLOCK_OFFSETS;
static struct test_log messages;
static struct stele_device *dev;
static uint8_t *memory;
static uint8_t *saved; /* the sound image */

static void make_image(void)
{
	static struct test_image t;
	struct test_sample *samples = test_samples(9, 100, 1);
	const struct test_segment in = {.samples = samples, .count = 9};

	dev = test_memory(IMAGE_SIZE, 512, 0);
	test_image_begin(&t, dev, IMAGE_SIZE - 4096);
	for (int i = 0; i < 2; i++) {
		test_image_segment(&t, &in);
		test_image_snapshot(&t, i ? "b" : "a", NULL, 0);
		if (test_image_commit(&t) < 0)
			bail("no image");
	}
	test_image_end(&t);
	memory = stele_device_memory(dev);
	saved = malloc(IMAGE_SIZE);
	if (!saved)
		bail("no memory");
	memcpy(saved, memory, IMAGE_SIZE);
	free(samples);
}

static void restore(void)
{
	memcpy(memory, saved, IMAGE_SIZE);
}

static void forget_witnesses(void)
{
	memset(memory + 0x180000, 0, 4096);
	memset(memory + 0x1ff000, 0, 4096);
}

/* Generation that recovery finds, or its error. */
static int64_t recover(void)
{
	struct stele_snapshot snapshot;
	struct stele_image image;
	int64_t generation;
	int ret;

	test_log_init(&messages);
	ret = stele_image_load(dev, &messages.log, &image);
	if (ret < 0)
		return ret;
	generation = (int64_t)image.sb.generation;
	ret = stele_snapshot_load(&image, image.catalog.counts.snapshots - 1,
				  &snapshot);
	if (ret == 0)
		stele_snapshot_release(&snapshot);
	image.dev = NULL;
	stele_image_release(&image);
	return ret < 0 ? ret : generation;
}

/* Change a copy; with `seal` its checksum is right again. */
static void change(unsigned int copy, size_t at, uint8_t value, bool seal)
{
	struct stele_disk_block *block = (void *)(memory + offsets[copy]);

	memory[offsets[copy] + at] = value;
	if (seal)
		block->crc = le32_put(stele_block_crc(block));
}

static void check_copies(void)
{
	struct stele_image image;
	static const int64_t want[16] = {
		[0] = 2, [1] = 2, [2] = 2, [4] = 2, [8] = 2,
		[1 | 2] = 2, [1 | 8] = 2, [2 | 4] = 2, [4 | 8] = 2,
		[2 | 8] = 2, [2 | 8 | 1] = 2, [2 | 8 | 4] = 2,
		/* Both of generation 2: by its witness, see check_lost(). */
		[1 | 4] = 2, [1 | 4 | 2] = 2, [1 | 4 | 8] = 2,
		[15] = 2,
	};

	for (unsigned int mask = 0; mask < 16; mask++) {
		restore();
		for (unsigned int i = 0; i < 4; i++)
			if (mask & 1u << i)
				memory[offsets[i] + 0x95] ^= 0x40;
		is_int(want[mask], recover(), "damaged copies: mask %x", mask);
		ok(!mask == !messages.size, "messages if and only if damaged");
	}
	for (unsigned int i = 0; i < 4; i++) {
		restore();
		for (unsigned int j = 0; j < 4; j++)
			if (i != j)
				memset(memory + offsets[j], 0, 4096);
		is_int(2, recover(), "only copy %u is left", i);
		forget_witnesses();
		is_int(i % 2 ? 1 : 2, recover(), "only copy %u is left, and no witness", i);
	}
	restore();
	memset(memory, 0, 0x10000);
	is_int(2, recover(), "the mirrors alone, after the front was wiped");
	memset(memory, 0, 0x200000);
	is_int(-EBADMSG, recover(), "none is left");
	ok(messages.errors == 1 && test_log_has(&messages, "superblocks of a Stele image are gone"),
	   "which is said, once");
	messages.size = 0;
	is_int(-EMEDIUMTYPE, stele_image_probe(dev, &messages.log, true, &image),
	       "probed");
	is_uint(0, messages.size, "who overwrites it need not hear that");
	memset(memory + 0x200000, 0, 4096);
	is_int(-EMEDIUMTYPE, recover(), "nor of the first segment");
	is_uint(0, messages.size, "and there is nothing to say about that");
}

/* Damage a block of the catalog, of its mirror, or of both. */
static void flip_catalog(const struct stele_superblock *sb)
{
	memory[sb->catalog_offset + 77] ^= 1;
}

static void flip_mirror(const struct stele_superblock *sb)
{
	memory[sb->mirror_offset + 77] ^= 1;
}

static void check_mirrors(const struct stele_superblock *new)
{
	ok(new->mirror_offset == 0x102000 || new->mirror_offset == 0x181000,
	   "a catalog has a mirror");
	flip_catalog(new);
	is_int(2, recover(), "its mirror is as good");
	ok(messages.warnings == 1 && !messages.errors &&
		   test_log_has(&messages, "catalog of generation 2 at byte") &&
		   test_log_has(&messages, "; its mirror at byte"),
	   "and it is said, once");
	flip_catalog(new);
	flip_mirror(new);
	is_int(2, recover(), "with a damaged mirror the catalog is");
	is_uint(0, messages.size, "which nobody looked at");
	restore();
	memcpy(memory + new->mirror_offset, memory + new->catalog_offset, new->catalog_size);
	flip_catalog(new);
	is_int(1, recover(), "what belongs elsewhere is no mirror");
	restore();
}

static void check_catalogs(void)
{
	struct stele_superblock new, old;

	restore();
	stele_superblock_decode((void *)(memory + offsets[0]), offsets[0], &new,
				NULL);
	stele_superblock_decode((void *)(memory + offsets[1]), offsets[1], &old,
				NULL);
	check_mirrors(&new);
	flip_catalog(&new);
	flip_mirror(&new);
	is_int(1, recover(), "both damaged: the older generation");
	ok(messages.warnings == 1 && !messages.errors &&
		   test_log_has(&messages, "generation 2 was published"),
	   "and it is said, once");
	flip_catalog(&old);
	is_int(1, recover(), "which has a mirror, while nobody commits");
	flip_mirror(&old);
	is_int(-EBADMSG, recover(), "catalogs and mirrors of both damaged");
	flip_catalog(&new);
	is_int(2, recover(), "only the older one is damaged");
	restore();
	memset(memory + new.catalog_offset, 0, 4096);
	memset(memory + old.catalog_offset, 0, 4096);
	memset(memory + 0x102000, 0, 0xfe000);
	is_int(-EBADMSG, recover(), "wiped catalogs: damaged, not foreign");
}

/* After a catalog was passed over, nobody builds on the older one unawares. */
static void check_passed_over(void)
{
	struct stele_superblock lost;
	struct stele_image image;
	struct stele_txn edit;
	uint64_t offset;

	restore();
	stele_superblock_decode((void *)(memory + offsets[0]), offsets[0],
				&lost, NULL);
	flip_catalog(&lost);
	flip_mirror(&lost);
	if (stele_image_load(dev, NULL, &image) < 0)
		bail("load");
	is_uint(1, image.sb.generation, "generation 1 is taken");
	is_int(-ENOTUNIQ, stele_image_check_writable(&image), "but nobody writes");
	is_int(-EBADMSG, stele_fork_choose(&image, 0), "what is damaged cannot be chosen");
	is_int(0, stele_fork_choose(&image, 1), "the older one can");
	is_int(0, stele_txn_attach(&image, &edit), "an edit of it");
	is_int(0, stele_txn_allocate(&edit, 4096, 0, &offset), "gets space");
	is_uint(lost.high_water, offset, "behind the lost generation");
	is_int(0, stele_txn_publish(&edit, 1), "and commits");
	is_uint(3, image.sb.generation, "with a number of its own");
	stele_txn_release(&edit);
	image.dev = NULL;
	stele_image_release(&image);
	is_int(3, recover(), "and is found");
	memory[offsets[0]] ^= 1;
	memory[offsets[2]] ^= 1;
	is_int(3, recover(), "by its witness, too");
	forget_witnesses();
	is_int(1, recover(), "generation 1 is still there");
}

/* Both copies of a slot. */
static void lose(unsigned int slot)
{
	memset(memory + offsets[slot], 0, 4096);
	memset(memory + offsets[slot + 2], 0xee, 4096);
}

static struct stele_image load(void)
{
	struct stele_image image;

	test_log_init(&messages);
	if (stele_image_load(dev, &messages.log, &image) < 0)
		bail("load");
	return image;
}

static void release(struct stele_image *image)
{
	stele_intent_end(dev);
	image->dev = NULL;
	stele_image_release(image);
}

static uint64_t witness_of(unsigned int copy, struct stele_superblock *sb)
{
	stele_superblock_decode((void *)(saved + offsets[copy]), offsets[copy], sb, NULL);
	return stele_superblock_witness(sb->mirror_offset);
}

/* As it was before the first commit of that image. */
static void unfinish(struct stele_superblock *sb)
{
	sb->state = STELE_STATE_UNFINISHED;
	sb->generation = sb->parent = 0;
	sb->catalog_offset = sb->catalog_size = sb->catalog_crc = 0;
	sb->mirror_offset = sb->mirror_crc = 0;
	sb->high_water = STELE_DATA_OFFSET;
}

/* Generation 2 is found by its witness, and the next writer makes copies of it. */
static void check_stands_in(const char *what)
{
	struct stele_image image = load();

	ok(!image.fork && image.sb.generation == 2, "%s: its witness stands in", what);
	is_uint(2, image.catalog.counts.snapshots, "%s: nothing is missing", what);
	is_uint(2, stele_image_wrong_copies(&image), "%s: two superblocks are", what);
	ok(!stele_image_changed(&image), "%s: and nothing has changed since", what);
	is_int(0, stele_image_heal(&image), "%s: a writer", what);
	is_uint(0, stele_image_wrong_copies(&image), "%s: knows what he has written", what);
	release(&image);
	forget_witnesses();
	is_int(2, recover(), "%s: puts it right", what);
	is_uint(0, messages.size, "%s: and nothing is wrong any more", what);
}

/* Its superblocks, of which the witness is left: the older generation is not taken for it. */
static void check_lost(void)
{
	struct stele_image image;
	struct stele_txn edit;

	restore();
	lose(0);
	is_int(2, recover(), "superblocks of generation 2 lost");
	is_uint(2, messages.warnings, "each of which is said");
	check_stands_in("lost");

	restore();
	memcpy(memory + offsets[0], memory + offsets[1], 4096); /* not what belongs there */
	memcpy(memory + offsets[2], memory + offsets[1], 4096);
	check_stands_in("misplaced");

	restore();
	lose(0);
	image = load();
	is_int(0, stele_txn_attach(&image, &edit), "an edit of it");
	is_int(0, stele_txn_publish(&edit, 1), "commits");
	is_uint(3, image.sb.generation, "the next one");
	is_uint(2, image.sb.parent, "which says what it was made from");
	is_uint(1, image.slot, "into the other slot");
	stele_txn_release(&edit);
	release(&image);
	is_int(3, recover(), "and is found");
}

/* A lost write, or somebody who copied old blocks back. */
static void check_outdated(void)
{
	struct stele_superblock begun, sb;

	restore();
	witness_of(1, &begun);
	unfinish(&begun);
	for (unsigned int i = 0; i < 4; i += 2)
		stele_superblock_encode(&begun, offsets[i], (void *)(memory + offsets[i]));
	is_int(2, recover(), "a slot as it was before the newest commit");
	is_uint(0, messages.size, "is what a crash leaves");
	check_stands_in("outdated");

	restore();
	witness_of(0, &sb);
	sb.parent = 0;
	sb.generation = 3;
	stele_superblock_encode(&sb, 0x180000, (void *)(memory + 0x180000));
	is_int(2, recover(), "one that others have overtaken");
	is_uint(0, messages.size, "does not count");
	sb.parent = 1;
	stele_superblock_encode(&sb, 0x180000, (void *)(memory + 0x180000));
	is_int(2, recover(), "one made from the generation before");
	is_uint(0, messages.size, "does not, either");
	sb.parent = 2;
	stele_superblock_encode(&sb, 0x180000, (void *)(memory + 0x180000));
	is_int(2, recover(), "but one made from the newest counts, and its catalog is damaged");
	ok(test_log_has(&messages, "generation 3 was published, but its catalog is damaged"),
	   "which is said");
	sb.uuid[0] ^= 1;
	stele_superblock_encode(&sb, 0x180000, (void *)(memory + 0x180000));
	is_int(2, recover(), "of another image nothing counts");
	is_uint(0, messages.size, "and there is nothing to say about that");
	memory[0x180000 + 0x39] = 0x80;
	((struct stele_disk_block *)(memory + 0x180000))->crc =
		le32_put(stele_block_crc((void *)(memory + 0x180000)));
	is_int(-EOPNOTSUPP, recover(), "a newer Stele may have been at work");
}

/* Not even a witness is left of what may have been there. */
static void check_doubt(void)
{
	struct stele_image image = load();
	struct stele_txn edit;

	ok(image.fork && image.fork->doubt && image.sb.generation == 1,
	   "with the witness: something may be lost");
	ok(test_log_has(&messages, "generation 2 may have been published"), "which is said");
	is_int(-ENOTUNIQ, stele_image_check_writable(&image), "nobody writes");
	is_int(0, stele_fork_choose(&image, 0), "before what is left was chosen");
	is_int(0, stele_txn_attach(&image, &edit), "by one");
	is_int(0, stele_txn_publish(&edit, 1), "who commits");
	is_uint(3, image.sb.generation, "above what may have been there");
	stele_txn_release(&edit);
	release(&image);
	is_int(3, recover(), "and is found");
	is_uint(0, messages.warnings, "without doubt");
}

static void check_witnesses(void)
{
	struct stele_superblock sb;
	struct stele_image image;
	struct stele_txn edit;
	uint64_t at;

	restore();
	at = witness_of(0, &sb);
	is_hex(sb.mirror_offset + 0x7e000, at, "the witness lies behind the mirror");
	lose(1);
	image = load();
	ok(!image.fork && image.sb.generation == 2, "the older slot lost: nothing else is");
	is_int(0, stele_image_check_writable(&image), "and who writes may go on");
	release(&image);
	restore();
	lose(0);
	memory[at + 50] ^= 1;
	check_doubt();
	restore();
	lose(0);
	sb.generation = 7;
	stele_superblock_encode(&sb, at, (void *)(memory + at));
	image = load();
	is_uint(7, image.fork ? image.fork->lost : 0, "any newer generation may be lost");
	is_int(-EUCLEAN, stele_fork_choose(&image, 0), "but not be chosen without its catalog");
	is_int(0, stele_fork_choose(&image, 1), "the one before");
	is_int(0, stele_txn_attach(&image, &edit), "can");
	stele_txn_release(&edit);
	release(&image);
	memcpy(memory, saved, 0x102000);
	is_int(2, recover(), "with newer copies nobody asks a witness");
}

/* Its place cannot be written: the copies of both slots say what it would have shown. */
static void check_unwitnessed(void)
{
	const struct stele_fault_rule rule = {
		.kind = STELE_FAULT_FAIL, .ops = 1u << STELE_OP_WRITE, .offset = 0x180000,
		.size = 4096, .error = EIO};
	struct stele_device *inner = test_memory(IMAGE_SIZE, 512, 0), *bad;
	struct stele_image image;
	struct stele_txn edit;

	memcpy(stele_device_memory(inner), saved, IMAGE_SIZE);
	if (stele_device_open_fault(inner, &rule, 1, &bad) ||
	    stele_image_load(bad, NULL, &image))
		bail("no image");
	is_int(0, stele_txn_attach(&image, &edit), "an edit where no witness can be written");
	is_int(0, stele_txn_publish(&edit, 1), "commits");
	is_uint(0, image.sb.mirror_offset, "without one");
	stele_txn_release(&edit);
	memcpy(memory, stele_device_memory(inner), IMAGE_SIZE);
	image.dev = NULL;
	stele_image_release(&image);
	stele_device_close(bad);
	for (unsigned int slot = 0; slot < 2; slot++) {
		uint8_t kept[2][4096];

		memcpy(kept[0], memory + offsets[slot], 4096);
		memcpy(kept[1], memory + offsets[slot + 2], 4096);
		lose(slot);
		is_int(3, recover(), "slot %u lost: nothing else is", slot);
		memcpy(memory + offsets[slot], kept[0], 4096);
		memcpy(memory + offsets[slot + 2], kept[1], 4096);
	}
}

/* No copy is left; but who is about to overwrite that does not ask for witnesses. */
static void check_lost_all(void)
{
	struct stele_superblock sb;
	struct stele_image image;

	restore();
	lose(0);
	lose(1);
	is_int(2, recover(), "no superblock is left, but witnesses are");
	image = load();
	ok(!image.fork && image.catalog.counts.snapshots == 2, "the newest one is taken");
	is_int(0, stele_image_heal(&image), "by a writer, too");
	release(&image);
	is_int(2, recover(), "who puts it right");
	restore();
	lose(0);
	lose(1);
	memory[witness_of(1, &sb) + 50] ^= 1;
	image = load();
	ok(image.fork && image.fork->doubt && image.fork->lost == 3,
	   "where the other witness was may have been a newer one");
	is_uint(2, image.catalog.counts.snapshots, "what is left can be read");
	release(&image);
	restore();
	lose(0);
	lose(1);
	is_int(-EMEDIUMTYPE, stele_image_probe(dev, NULL, false, &image),
	       "erased by who writes there");
	is_int(0, stele_image_probe(dev, NULL, true, &image), "an image to anybody else");
	image.dev = NULL;
	stele_image_release(&image);
	memory[0x1000] = memory[0x2000] = memory[0x101000] = 0x93;
	memset(memory + 0x100000, 0, 4096);
	forget_witnesses();
	is_int(-EBADMSG, recover(), "without a witness there is nothing");
	restore();
}

/* The first commit, of which the other slot says no more than that a build began. */
static void check_lost_first(void)
{
	struct stele_image image;
	struct stele_superblock sb;

	restore();
	witness_of(1, &sb);
	unfinish(&sb);
	for (unsigned int i = 0; i < 4; i += 2)
		stele_superblock_encode(&sb, offsets[i], (void *)(memory + offsets[i]));
	is_int(2, recover(), "what an interrupted second commit leaves");
	memset(memory + 0x1ff000, 0, 4096); /* there was no second one */
	is_int(1, recover(), "an image of one commit");
	lose(0);
	image = load();
	ok(image.fork && image.fork->doubt && image.sb.generation == 1,
	   "whose beginning is lost: not with a catalog of the second");
	release(&image);
	memset(memory + 0x181000, 0, 4096);
	image = load();
	ok(!image.fork && image.sb.generation == 1, "without, nothing is lost by that");
	release(&image);
	for (unsigned int i = 0; i < 4; i++)
		stele_superblock_encode(&sb, offsets[i], (void *)(memory + offsets[i]));
	is_int(1, recover(), "what an interrupted first commit leaves");
	is_uint(0, messages.size, "is one");
	lose(1);
	image = load();
	ok(!image.fork && image.sb.generation == 1, "of which both superblocks are lost");
	is_uint(1, image.catalog.counts.snapshots, "can be read");
	is_int(0, stele_image_heal(&image), "and written");
	release(&image);
	is_int(1, recover(), "by one who puts it right");
	for (unsigned int i = 0; i < 4; i++)
		stele_superblock_encode(&sb, offsets[i], (void *)(memory + offsets[i]));
	memcpy(memory + offsets[1], saved + offsets[1], 4096);
	memcpy(memory + 0x180000, saved + 0x180000, 4096);
	is_int(0, stele_image_begin(dev, NULL, &sb, &image),
	       "nor is its witness in the way of who begins the same anew");
	image.dev = NULL;
	stele_image_release(&image);
	is_int(-EINPROGRESS, recover(), "and it is gone then");
}

static void check_forks(void)
{
	restore();
	change(0, 0x50, 'F', true);
	is_int(2, recover(), "a slot and its mirror differ: a fork, that can be "
	       "read");
	ok(test_log_has(&messages, "copies 0 at 4096 and 2 at 1048576"),
	   "both are named");
	restore();
	change(1, 0x50, 'F', true);
	is_int(2, recover(), "an older generation that differs does not matter");
}

static void check_sizes(void)
{
	struct stele_device *small;
	struct stele_image image;

	restore();
	small = test_memory(IMAGE_SIZE - 8192, 512, 0);
	memcpy(stele_device_memory(small), memory, IMAGE_SIZE - 8192);
	test_log_init(&messages);
	is_int(-ENODATA, stele_image_load(small, &messages.log, &image),
	       "a target shorter than its image");
	ok(test_log_has(&messages, "4190208") &&
		   test_log_has(&messages, "4186112"),
	   "both sizes are said");
	stele_device_close(small);
	for (uint64_t size = 0; size < 0x200000; size += 0x40000) {
		if (stele_device_open_memory(size, 512, &small) < 0)
			continue; /* nor can a device be empty */
		memcpy(stele_device_memory(small), memory, size);
		is_int(-ENODATA, stele_image_load(small, NULL, &image),
		       "cut at %ju", (uintmax_t)size);
		stele_device_close(small);
	}
}

static void check_features(void)
{
	static struct test_image t;

	restore();
	change(0, 0x39, 0x80, true);
	change(2, 0x39, 0x80, true);
	is_int(-EOPNOTSUPP, recover(), "an unknown incompat feature");
	restore();
	change(1, 0x39, 0x80, true);
	is_int(-EOPNOTSUPP, recover(), "in a copy whose generation is hidden");
	restore();
	for (unsigned int i = 0; i < 4; i++)
		change(i, 0x29, 0x80, true);
	is_int(2, recover(), "an unknown compat feature is ignored");
	restore();
	for (unsigned int i = 0; i < 4; i++)
		change(i, 0x31, 0x80, true);
	is_int(2, recover(), "as is an unknown ro_compat feature, for readers");
	if (test_image_resume(&t, dev) < 0)
		bail("resume");
	is_int(-EOPNOTSUPP, test_image_commit(&t), "but not for writers");
	test_image_end(&t);
	restore();
	change(0, 0x20, 2, true);
	change(2, 0x20, 2, true);
	is_int(-EOPNOTSUPP, recover(), "a newer format");
	restore();
	for (unsigned int i = 0; i < 4; i++)
		change(i, 0xd0, 1, true);
	forget_witnesses();
	is_int(-EUCLEAN, recover(), "reserved bytes that are not zero");
}

static void check_unfinished(void)
{
	static uint8_t saved_slot[4096];
	struct stele_superblock sb;
	struct stele_image image;

	restore();
	test_superblock(IMAGE_SIZE, &sb);
	is_int(0, stele_image_begin(dev, NULL, &sb, &image), "begin");
	image.dev = NULL;
	stele_image_release(&image);
	is_int(-EINPROGRESS, recover(), "is unfinished");
	ok(bytes_zero(memory + 0x180000, 4096) && bytes_zero(memory + 0x1ff000, 4096),
	   "without a witness of what was there");
	ok(test_log_has(&messages, "unfinished image"),
	   "and says what to do");
	for (unsigned int i = 0; i < 4; i++) {
		uint8_t copy[4096];

		memcpy(copy, memory + offsets[i], sizeof(copy));
		memcpy(memory + offsets[i], saved + offsets[i], sizeof(copy));
		is_int(i % 2 ? 1 : 2, recover(),
		       "with an old copy %u left it is the old image", i);
		memcpy(memory + offsets[i], copy, sizeof(copy));
	}
	memset(memory + offsets[0], 0, 4096);
	is_int(-EINPROGRESS, recover(), "unfinished, one copy gone");
	memcpy(saved_slot, memory + offsets[1], 4096);
	lose(1);
	is_int(-EBADMSG, recover(), "unfinished, but what is written first is damaged");
	ok(test_log_has(&messages, "cannot be told"), "it may have been an image");
	memcpy(memory + offsets[1], saved_slot, 4096);
	is_int(-EINPROGRESS, recover(), "one copy of it will do");
	sb.uuid[3] ^= 1;
	stele_superblock_encode(&sb, offsets[0], (void *)(memory + offsets[0]));
	sb.high_water = STELE_DATA_OFFSET;
	stele_superblock_encode(&sb, offsets[0], (void *)(memory + offsets[0]));
	is_int(-EINPROGRESS, recover(), "two unfinished builds are no fork");
	sb.image_size = IMAGE_SIZE + 4096;
	is_int(-ENOSPC, stele_image_begin(dev, NULL, &sb, &image),
	       "an image larger than its target");
	unfinish(&sb);
	for (unsigned int i = 0; i < 4; i++)
		stele_superblock_encode(&sb, offsets[i], (void *)(memory + offsets[i]));
	is_int(-EINPROGRESS, recover(), "unfinished, and cut to the size of what is built");
	memset(memory + offsets[3], 0, 4096);
	is_int(-ENODATA, recover(), "or cut short by somebody");
	sb.image_size = 4097u << 9;
	is_int(-EINVAL, stele_image_begin(dev, NULL, &sb, &image),
	       "an image of half a block");
}

static void check_commit(void)
{
	static struct test_image t;
	struct test_sample *samples = test_samples(9, 100, 1);
	const struct test_segment in = {.samples = samples, .count = 9};
	const struct stele_deleted none = {0};
	struct stele_catalog_draft draft;
	struct stele_catalog_list list;
	uint64_t high_water;

	test_image_begin(&t, dev, 0x200000 + 12 * 4096);
	is_int(-EINVAL, stele_image_write_deleted(&t.image, 0x300000, &none,
						  &list),
	       "an empty deleted list");
	is_int(0, test_image_segment(&t, &in), "a segment");
	test_image_snapshot(&t, "a", NULL, 0);
	high_water = t.image.sb.high_water;
	t.image.sb.high_water = 0x200000 + 12 * 4096;
	is_int(-ENOSPC, test_image_commit(&t), "no room for a catalog");
	t.image.sb.high_water = t.segments[0].offset;
	is_int(-EINVAL, test_image_commit(&t),
	       "a catalog over a segment is not written");
	t.image.sb.high_water = high_water;
	t.segments[0].id = 0;
	is_int(-EINVAL, test_image_commit(&t),
	       "a catalog that recovery would refuse is not written");
	t.segments[0].id = 0x5e60001;
	is_int(-EINPROGRESS, recover(), "until now there is no image");
	test_image_draft(&t, &draft);
	high_water += stele_image_commit_size(&draft);
	is_int(0, test_image_commit(&t), "and then it commits");
	is_uint(high_water, t.image.sb.high_water, "in the size foretold");
	is_uint(1, t.image.slot, "in the slot that was not selected");
	test_image_end(&t);
	is_int(1, recover(), "generation 1");
	free(samples);
}

/* Unreadable for once, it may have been the newest: who has missed it must not write. */
static void check_missed(void)
{
	struct stele_copies before = {0}, now = {0};

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++) {
		before.copy[i].sb.state = now.copy[i].sb.state = STELE_STATE_READY;
		before.copy[i].sb.generation = now.copy[i].sb.generation = 5;
	}
	before.copy[1].error = -EIO;
	is_int(0, stele_copies_compare(&before, &now),
	       "a copy that could not be read, and is no newer");
	now.copy[1].sb.generation = 6;
	is_int(-ESTALE, stele_copies_compare(&before, &now), "and is");
	now.copy[1].error = -EIO;
	is_int(0, stele_copies_compare(&before, &now), "that still can't be read");
}

int main(void)
{
	plan_lazy();
	make_image();
	check_copies();
	check_catalogs();
	check_passed_over();
	check_lost();
	check_outdated();
	check_witnesses();
	check_unwitnessed();
	check_lost_all();
	check_lost_first();
	check_forks();
	check_sizes();
	check_features();
	check_unfinished();
	check_commit();
	stele_device_close(dev);
	free(saved);
	check_missed();
	return done();
}
