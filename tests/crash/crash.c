/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash.c - see crash.h
 *
 * States are made in place on one memory device, and recovered from there.
 */
#include "tests/crash/crash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/crc32c.h"
#include "lib/image/copies.h"
#include "lib/image/fork.h"
#include "lib/posix/front.h"
#include "lib/posix/shown.h"
#include "tests/device/memory.h"
#include "tests/tap.h"

#define WRITES_MAX 64u
#define EXHAUSTIVE 10u
#define RANDOM	   256u

static uint64_t image_size;
static struct stele_device *replay;
static uint8_t *state;	 /* its bytes */
static uint8_t *durable; /* what no crash can take back */

static bool sector_torn; /* the sector of block 0 that counts */

static struct {
	uint64_t states, bad, shown;
	const char *name;
} seen;

static uint8_t *copy_of(const void *bytes)
{
	uint8_t *copy = malloc(image_size);

	if (!copy)
		bail("no memory");
	return memcpy(copy, bytes, image_size);
}

/* ---- what the EROFS leads to ---------------------------------------------------- */

static void add(struct test_expect *e, uint64_t offset, uint64_t size)
{
	if (stele_extents_add(&e->shown, offset, size) < 0)
		bail("no memory");
}

/* The tree's parts, and all segments that a snapshot refers to: it leads to each slot of them. */
static void expect_shown(struct test_history *h, struct test_expect *e)
{
	struct stele_catalog_segment where;
	struct stele_image image;
	uint64_t differs;

	if (stele_image_load(h->fault, NULL, &image) < 0)
		bail("what was acknowledged cannot be loaded");
	if (stele_posix_check(&image, &differs) < 0)
		bail("the tree is wrong at %" PRIu64, differs);
	if (stele_posix_find(&image, &where))
		for (uint32_t i = 0; i < image.catalog.counts.segments; i++) {
			stele_catalog_segment(&image.catalog, i, &where);
			if (!where.unused_since)
				add(e, where.offset, where.size);
		}
	image.dev = NULL;
	stele_image_release(&image);
}

/* ---- recording --------------------------------------------------------------- */

void test_history_expect(struct test_history *h, enum test_expect_kind kind,
		   const struct stele_superblock *sb)
{
	struct test_expect *e = &h->expect[h->count++];

	e->kind = kind;
	stele_fault_log(h->fault, &e->log_count);
	if (kind != TEST_EXPECT_IMAGE)
		return;
	memcpy(e->uuid, sb->uuid, sizeof(e->uuid));
	e->generation = sb->generation;
	e->bytes = stele_device_alloc(h->fault, image_size);
	if (!e->bytes ||
	    stele_device_read(h->fault, e->bytes, 0, image_size) < 0)
		bail("cannot keep what is expected");
	expect_shown(h, e);
}

void test_history_open(struct test_history *h, const uint8_t *base)
{
	struct stele_device *inner;

	memset(h, 0, sizeof(*h));
	h->base = copy_of(base);
	inner = test_memory(image_size, 512, 0);
	memcpy(stele_device_memory(inner), base, image_size);
	if (stele_device_open_fault(inner, NULL, 0, &h->fault) < 0)
		bail("no fault device");
	stele_fault_keep_data(h->fault, true);
}

void test_history_close(struct test_history *h)
{
	stele_device_close(h->fault);
	for (unsigned int i = 0; i < h->count; i++)
		free(h->expect[i].bytes);
	for (unsigned int i = 0; i < h->count; i++)
		stele_extents_release(&h->expect[i].shown);
	free(h->base);
}

/* ---- judging ------------------------------------------------------------------- */

static bool same_bytes(const struct test_expect *e, uint64_t offset, uint64_t size)
{
	return !memcmp(state + offset, e->bytes + offset, size);
}

/* Is all that this image refers to what it was when it was acknowledged? */
static bool same_content(const struct test_expect *e,
			 const struct stele_image *image)
{
	bool same = image->sb.generation == e->generation &&
		    !memcmp(image->sb.uuid, e->uuid, sizeof(e->uuid)) &&
		    same_bytes(e, image->sb.catalog_offset,
			       image->sb.catalog_size);

	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		struct stele_catalog_segment where;

		stele_catalog_segment(&image->catalog, i, &where);
		same = same && same_bytes(e, where.offset, where.size);
	}
	for (uint32_t i = 0; i < image->catalog.counts.refs; i++) {
		struct stele_catalog_ref ref;

		stele_catalog_ref(&image->catalog, i, &ref);
		for (uint32_t j = 0; j < STELE_REF_LISTS && ref.lists[j].offset; j++)
			same = same && same_bytes(e, ref.lists[j].offset, 4096);
	}
	return same;
}

static bool is_as(const struct test_expect *e, int ret,
		  const struct stele_image *image)
{
	switch (e->kind) {
	case TEST_EXPECT_BLANK: /* a torn superblock is no image, either */
		return ret == -EMEDIUMTYPE || ret == -EBADMSG;
	case TEST_EXPECT_UNFINISHED:
		return ret == -EINPROGRESS;
	default:
		return ret == 0 && same_content(e, image);
	}
}

static bool shows(const struct test_expect *e)
{
	bool same = e->shown.count && !memcmp(state + STELE_EROFS_OFFSET,
					      e->bytes + STELE_EROFS_OFFSET,
					      STELE_EROFS_FRONT_SIZE);

	for (uint32_t i = 0; same && i < e->shown.count; i++)
		same = same_bytes(e, e->shown.list[i].offset, e->shown.list[i].size);
	return same;
}

/* `found`: what recovery takes. */
static bool front_is_good(const struct test_history *h, unsigned int floor, int ret,
			  const struct stele_image *found)
{
	struct stele_disk_erofs_front front;

	if (sector_torn)
		return true;
	memcpy(&front, state + STELE_EROFS_OFFSET, sizeof(front));
	if (!le32_get(front.super.magic))
		return true;
	seen.shown++;
	/* Until a new image hides it, the old one's is whole. */
	if (h->expect[floor].kind != TEST_EXPECT_IMAGE && floor && shows(&h->expect[floor - 1]))
		return true;
	if (shows(&h->expect[floor]))
		return true;
	/* What a crash left is put right before anything else is written. */
	if (!floor && !memcmp(&front, h->base + STELE_EROFS_OFFSET, sizeof(front)) &&
	    !memcmp(state + STELE_DATA_OFFSET, h->base + STELE_DATA_OFFSET,
		    image_size - STELE_DATA_OFFSET))
		return true;
	return floor + 1 < h->count && shows(&h->expect[floor + 1]) && ret == 0 &&
	       found->sb.generation == h->expect[floor + 1].generation;
}

/* What recovery takes has two catalogs, whatever is being written. */
static bool is_mirrored(const struct stele_image *found)
{
	const struct stele_superblock *sb = &found->sb;

	return !found->mirrored && sb->mirror_offset &&
	       stele_crc32c(0, state + sb->mirror_offset, sb->catalog_size) == sb->mirror_crc;
}

/* By a new image, whose build has got no further than that. */
static bool is_being_replaced(const struct stele_image *found)
{
	const struct stele_copy *copy = found->copies.copy;
	bool begun = false;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
		begun |= !copy[i].error && copy[i].sb.state == STELE_STATE_UNFINISHED;
	return begun && found->sb.generation > 1;
}

/* No crash is taken for a loss, and each loss can be made good. */
static bool is_witnessed(const struct stele_image *found)
{
	static _Alignas(STELE_BLOCK_SIZE) uint8_t block[STELE_BLOCK_SIZE];

	return !found->fork && (is_being_replaced(found) ||
				stele_copies_check_witness(replay, &found->sb, block) == 0);
}

/* The state at hand, when `floor` is what was acknowledged. */
static void judge(const struct test_history *h, unsigned int floor)
{
	struct stele_image image;
	int ret = stele_image_load(replay, NULL, &image);
	bool good = is_as(&h->expect[floor], ret, &image);

	if (!good && floor + 1 < h->count)
		good = is_as(&h->expect[floor + 1], ret, &image);
	good = front_is_good(h, floor, ret, &image) && good;
	good = good && (ret < 0 || (is_mirrored(&image) && is_witnessed(&image)));
	seen.states++;
	if (!good && seen.bad++ < 5)
		diag("%s: state %" PRIu64 ": load %d, generation %" PRIu64
		     ", acknowledged %" PRIu64,
		     seen.name, seen.states, ret,
		     ret ? 0 : image.sb.generation,
		     h->expect[floor].generation);
	if (ret == 0) {
		image.dev = NULL;
		stele_image_release(&image);
	}
}

static bool has_older(const struct stele_copies *copies)
{
	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
		if (!copies->copy[i].error &&
		    copies->copy[i].sb.generation < copies->generation_max)
			return true;
	return false;
}

/* Does the slot of the newest one have another in its second copy? */
static bool other_stays(const struct stele_copies *copies)
{
	const struct stele_copy *copy = copies->copy;

	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
		if (!copy[i].error && copy[i].sb.generation == copies->generation_max &&
		    !copy[i ^ 2].error && copy[i ^ 2].sb.generation < copies->generation_max)
			return true;
	return false;
}

/* Superblocks, by their index in stele_copies, of which there is one generation. */
static void wipe(const struct stele_copies *copies, unsigned int from, unsigned int end,
		 uint64_t generation)
{
	for (unsigned int i = from; i < end; i++) {
		uint8_t *block = state + copies->copy[i].offset;
		struct stele_superblock sb;

		if (!stele_superblock_decode((const void *)block, copies->copy[i].offset, &sb,
					     NULL) &&
		    sb.generation == generation)
			memset(block, 0xee, STELE_BLOCK_SIZE);
	}
}

/* Is what is found now as it was there, with nothing lost; or may the next be lost? */
static void judge_loss(const struct test_history *h, unsigned int index, bool doubt, bool stays)
{
	struct stele_image image;
	int ret = stele_image_load(replay, NULL, &image);
	bool good = is_as(&h->expect[index], ret, &image);

	good = good && (image.fork ? doubt && image.fork->doubt : !doubt || stays);
	seen.states++;
	if (!good && seen.bad++ < 5)
		diag("%s: state %" PRIu64 ": load %d, and not %" PRIu64 "%s", seen.name,
		     seen.states, ret, h->expect[index].generation,
		     doubt ? " in doubt" : " by its witness");
	if (ret == 0) {
		image.dev = NULL;
		stele_image_release(&image);
	}
}

/*
 * Whatever is written before the next superblock: with the newest slot lost, its witness
 * stands in. With that lost, too, the generation before is whole, and that something may be
 * lost is known; unless the mirror was not written, and is older still: so a crash may leave it.
 */
static void judge_lost(const struct test_history *h, unsigned int floor)
{
	uint8_t kept[STELE_SUPERBLOCKS][STELE_BLOCK_SIZE];
	struct stele_copies copies;
	uint64_t newest = 0;

	if (floor == 0 || h->expect[floor].kind != TEST_EXPECT_IMAGE ||
	    h->expect[floor - 1].kind != TEST_EXPECT_IMAGE)
		return;
	if (stele_copies_read(replay, &copies) < 0)
		bail("cannot read superblocks");
	/* A writer that was killed behind it: nobody has acknowledged that. */
	if (stele_copies_has_witness(&copies))
		return;
	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++)
		memcpy(kept[i], state + copies.copy[i].offset, STELE_BLOCK_SIZE);
	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++)
		if (!copies.copy[i].error && copies.copy[i].sb.generation > newest)
			newest = copies.copy[i].sb.generation;
	wipe(&copies, 0, STELE_SUPERBLOCK_COPIES, newest);
	judge_loss(h, floor, false, false);
	if (!h->levels || has_older(&copies)) {
		wipe(&copies, STELE_SUPERBLOCK_COPIES, STELE_SUPERBLOCKS, newest);
		judge_loss(h, floor - 1, true, other_stays(&copies));
	}
	for (unsigned int i = 0; i < STELE_SUPERBLOCKS; i++)
		memcpy(state + copies.copy[i].offset, kept[i], STELE_BLOCK_SIZE);
}

/* ---- cutting --------------------------------------------------------------------- */

struct epoch {
	const struct test_history *h;
	const struct stele_fault_entry *writes[WRITES_MAX];
	unsigned int count;
	unsigned int floor; /* acknowledged when its last write was issued */
};

/* States from which the history goes on. */
static uint8_t *restarts[TEST_RESTART_MAX];
static unsigned int restart_count;

static void put(const struct stele_fault_entry *w, uint64_t from, uint64_t to)
{
	memcpy(state + w->offset + from, (const uint8_t *)w->data + from,
	       to - from);
}

static void undo(const struct epoch *e)
{
	for (unsigned int i = 0; i < e->count; i++)
		memcpy(state + e->writes[i]->offset,
		       durable + e->writes[i]->offset, e->writes[i]->size);
}

static bool is_superblock(const struct stele_fault_entry *w)
{
	return w->offset < STELE_DATA_OFFSET;
}

static void try_subset(const struct epoch *e, uint64_t mask)
{
	for (unsigned int i = 0; i < e->count; i++)
		if (mask >> i & 1)
			put(e->writes[i], 0, e->writes[i]->size);
	judge(e->h, e->floor);
	if (e->count && !is_superblock(e->writes[0]))
		judge_lost(e->h, e->floor);
	undo(e);
}

static void try_subsets(const struct epoch *e)
{
	const uint64_t all = (UINT64_C(1) << e->count) - 1;
	uint64_t random = e->count;

	if (e->count <= EXHAUSTIVE) {
		for (uint64_t mask = 0; mask <= all; mask++)
			try_subset(e, mask);
		return;
	}
	for (unsigned int i = 0; i <= e->count; i++)
		try_subset(e, (UINT64_C(1) << i) - 1);
	for (unsigned int i = 0; i < e->count; i++) {
		try_subset(e, UINT64_C(1) << i);
		try_subset(e, all & ~(UINT64_C(1) << i));
	}
	for (unsigned int i = 0; i < RANDOM; i++) {
		random = random * UINT64_C(6364136223846793005) + 1;
		try_subset(e, (random ^ random >> 29) & all);
	}
}

/* One of three, so that those of the last commits have a place, too. */
static void keep_restart(void)
{
	static unsigned int offered;

	if (offered++ % 3 == 0 && restart_count < TEST_RESTART_MAX)
		restarts[restart_count++] = copy_of(state);
}

/* One superblock torn at `at`, the other writes as `mask` says. */
static void try_tear(const struct epoch *e, unsigned int torn, uint64_t mask,
		     uint64_t at, bool back, bool restart)
{
	const struct stele_fault_entry *w = e->writes[torn];

	for (unsigned int i = 0; i < e->count; i++)
		if (i != torn && mask >> i & 1)
			put(e->writes[i], 0, e->writes[i]->size);
	put(w, back ? at : 0, back ? w->size : at);
	sector_torn = !w->offset && at % 512;
	if (!sector_torn) {
		judge(e->h, e->floor);
		if (restart)
			keep_restart();
	}
	sector_torn = false;
	undo(e);
}

/* All superblocks of the epoch torn, each at its own place. */
static void try_all_torn(const struct epoch *e, uint64_t at, uint64_t step)
{
	for (unsigned int i = 0; i < e->count; i++) {
		const struct stele_fault_entry *w = e->writes[i];

		if (is_superblock(w))
			put(w, 0, at % (w->size + 8));
		else
			put(w, 0, w->size);
		sector_torn |= !w->offset && at % 512;
		at += step;
	}
	judge(e->h, e->floor);
	sector_torn = false;
	undo(e);
}

static void try_tears(const struct epoch *e, bool restart)
{
	const uint64_t all = (UINT64_C(1) << e->count) - 1;

	for (unsigned int i = 0; i < e->count; i++) {
		if (!is_superblock(e->writes[i]))
			continue;
		for (uint64_t at = 0; at <= e->writes[i]->size; at += 8) {
			bool keep = restart && at % 0x800 == 0x40;

			try_tear(e, i, 0, at, false, keep);
			try_tear(e, i, all, at, false, keep);
			try_tear(e, i, 0, at, true, false);
			try_tear(e, i, all, at, true, false);
			try_all_torn(e, at, 0);
			try_all_torn(e, at, 88);
			try_all_torn(e, at, 2048);
		}
	}
}

static void explore_epoch(struct epoch *e, bool restart)
{
	bool superblock = false;

	try_subsets(e);
	try_tears(e, restart);
	for (unsigned int i = 0; i < e->count; i++)
		superblock |= is_superblock(e->writes[i]);
	for (uint64_t mask = 0; restart && superblock && e->count == 2 &&
				mask < 4; mask++) {
		for (unsigned int i = 0; i < 2; i++)
			if (mask >> i & 1)
				put(e->writes[i], 0, e->writes[i]->size);
		keep_restart();
		undo(e);
	}
	for (unsigned int i = 0; i < e->count; i++) {
		const struct stele_fault_entry *w = e->writes[i];

		put(w, 0, w->size);
		memcpy(durable + w->offset, w->data, w->size);
	}
	e->count = 0;
}

void test_crash_explore(const struct test_history *h, bool restart)
{
	const struct stele_fault_entry *log;
	struct epoch e = {.h = h};
	size_t count;

	log = stele_fault_log(h->fault, &count);
	memcpy(state, h->base, image_size);
	memcpy(durable, h->base, image_size);
	for (size_t i = 0; i <= count; i++) {
		while (e.floor + 1 < h->count &&
		       h->expect[e.floor + 1].log_count <= i)
			e.floor++;
		if (i < count && log[i].fault == STELE_FAULT_FAIL)
			continue; /* its process is gone: nothing was done */
		if (i == count || log[i].op == STELE_OP_FLUSH)
			explore_epoch(&e, restart);
		else if (log[i].op == STELE_OP_WRITE)
			e.writes[e.count++] = &log[i];
		if (e.count == WRITES_MAX)
			bail("too many writes in an epoch");
	}
	judge(h, h->count - 1);
}

/* ---- results ------------------------------------------------------------------- */

void test_crash_init(uint64_t size)
{
	image_size = size;
	durable = calloc(1, size);
	if (!durable || stele_device_open_memory(size, 512, &replay) < 0)
		bail("no memory");
	state = stele_device_memory(replay);
}

void test_crash_release(void)
{
	stele_device_close(replay);
	free(durable);
}

void test_crash_name(const char *name)
{
	seen.name = name;
}

uint64_t test_crash_shown(void)
{
	return seen.shown;
}

void test_crash_report(void)
{
	static uint64_t total;

	total += seen.states;
	is_uint(0, seen.bad, "%s: all of %" PRIu64 " states are good",
		seen.name, seen.states);
	diag("%" PRIu64 " states so far", total);
	seen.states = seen.bad = 0;
}

unsigned int test_crash_restarts(uint8_t *out[TEST_RESTART_MAX])
{
	unsigned int count = restart_count;

	memcpy(out, restarts, sizeof(restarts));
	restart_count = 0;
	return count;
}

uint8_t *test_crash_state(void)
{
	return copy_of(state);
}
