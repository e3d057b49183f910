/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash-posix.c - whatever a crash leaves, block 0 shows a tree that is whole
 *
 * Histories for tests/crash/crash.h, of an image that is an EROFS, too, now and then: a
 * build over a blank target and over such an image, then commits that add, delete, rename,
 * free and reuse space, and turn it off and on. From states in which a superblock or block 0
 * was in flight the history goes on: recover, and commit twice.
 */
#include "lib/posix/shown.h"
#include "lib/txn/posix.h"
#include "tests/crash/story.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define IMAGE_SIZE (UINT64_C(0x200000) + 112 * 4096)

static struct test_sample *samples;
static unsigned int first_sample;
static uint64_t reused; /* parts where something else was before */
static uint64_t written, stayed;
static uint64_t highest; /* end of one, in this history */

/* Parts of the generation that was committed last; of which were some before? */
static void look_at_parts(const struct test_edit *t)
{
	struct stele_catalog_segment part;

	for (uint32_t i = 0; i < t->image.catalog.counts.segments; i++) {
		stele_catalog_segment(&t->image.catalog, i, &part);
		if (!stele_posix_is_part(&part))
			continue;
		if ((uint32_t)part.id != (uint32_t)t->image.sb.generation) {
			stayed++;
			continue;
		}
		written++;
		reused += part.offset < highest;
		if (part.offset + part.size > highest)
			highest = part.offset + part.size;
	}
}

/* On but for one commit of five; the segment and parts that it takes may be anywhere. */
static void add_generation(struct test_edit *t)
{
	static const uint64_t deleted[] = {1};
	const struct stele_txn_snapshot *last = stele_txn_find(&t->edit, NULL);
	const unsigned int number = (unsigned int)t->edit.next_snapshot_id;
	char name[16], from[64], to[64];
	uint64_t ids[2];
	uint32_t count = 0;

	snprintf(name, sizeof(name), "v%u", number);
	if (last)
		ids[count++] = last->refs[last->info.ref_count - 1].segment_id;
	if (last && number % 2) {
		snprintf(from, sizeof(from), "%s", last->info.name);
		snprintf(to, sizeof(to), "w%u", number);
		if (stele_txn_rename(&t->edit, from, to) < 0)
			bail("a rename failed");
	}
	while (t->edit.snapshot_count > 1)
		if (stele_txn_drop(&t->edit, t->edit.snapshots[0].info.name) < 0)
			bail("a drop failed");
	if (test_edit_segment(t, samples + first_sample + number % 8, 3, &ids[count++]) < 0 ||
	    test_edit_snapshot(t, name, ids, count, deleted, 1) < 0)
		bail("a segment failed");
	test_edit_collect(t);
	stele_txn_set_posix(&t->edit, number % 5 != 4);
	if (stele_txn_publish(&t->edit, 1700000000 + number) < 0)
		bail("a commit failed");
	look_at_parts(t);
}

static void prepare(struct test_edit *t, bool restart)
{
	t->granule = 512;
	if (!restart)
		highest = 0;
}

static const struct test_story story = {
	.size = IMAGE_SIZE,
	.commits = 7,
	.prepare = prepare,
	.commit = add_generation,
};

static void explore_restarts(void)
{
	const unsigned int went_on =
		test_story_go_on(&story, "recover, commit, crash", 1, false);

	ok(went_on > 8, "%u restarts", went_on);
}

int main(void)
{
	uint8_t *blank = calloc(1, IMAGE_SIZE);
	uint8_t *old;

	plan_lazy();
	samples = test_samples(24, 1500, 77);
	if (!blank)
		bail("no memory");
	test_crash_init(IMAGE_SIZE);
	test_story_build(&story, "over a blank target", blank, &old);
	explore_restarts();
	first_sample = 8;
	test_story_build(&story, "over an old image", old, NULL);
	explore_restarts();
	ok(written > 60, "%" PRIu64 " parts of trees", written);
	ok(stayed > 20, "%" PRIu64 " stayed", stayed);
	ok(reused > 2, "%" PRIu64 " of them in space that had been freed", reused);
	ok(test_crash_shown() > 1000, "%" PRIu64 " states show one", test_crash_shown());
	test_crash_release();
	free(blank);
	free(old);
	free(samples);
	return done();
}
