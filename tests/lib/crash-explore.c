/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash-explore.c - whatever a crash leaves, recovery finds what was promised
 *
 * Histories for tests/crash/crash.h: a build over a blank or an old target, then commits
 * each of which adds, deletes, drops, undeletes, renames, resizes, frees and reuses space. From
 * states in which a superblock was in flight the history goes on: recover, commit twice,
 * and cut that in the same way; and once more from some of those.
 */
#include "tests/crash/story.h"
#include "tests/tap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define IMAGE_SIZE (UINT64_C(0x200000) + 96 * 4096)
#define GROWS	   (UINT64_C(4) * 4096)
#define NESTED	   6u

static struct test_sample *samples;
static unsigned int first_sample; /* so that a second build has other bytes */
static uint64_t reused; /* segments that lie before a catalog's place */
static uint64_t combined; /* commits of more than an addition */
static uint64_t undeleted;

/* Besides, what is there gets another name, and the image what was left of its target. */
static void change_more(struct test_edit *t, unsigned int number)
{
	const struct stele_txn_snapshot *last = stele_txn_find(&t->edit, NULL);
	char from[64], to[64];

	if (number % 2 == 0 && last) {
		snprintf(from, sizeof(from), "%s", last->info.name);
		snprintf(to, sizeof(to), "w%u", number);
		if (stele_txn_rename(&t->edit, from, to) < 0)
			bail("a rename failed");
	}
	if (t->edit.image_size < IMAGE_SIZE &&
	    stele_txn_resize(&t->edit, t->edit.image_size + 4096, NULL) < 0)
		bail("a resize failed");
	combined += last != NULL;
}

/*
 * The oldest ones go until one is left; of each three times gc leaves them once, and the
 * next time one of them is back.
 */
static void drop_old(struct test_edit *t, unsigned int number)
{
	const bool back = t->edit.deleted_count && number % 3 == 0;
	char name[64];

	if (back)
		snprintf(name, sizeof(name), "%s",
			 t->edit.snapshots[t->edit.snapshot_count].info.name);
	while (t->edit.snapshot_count > 1)
		if (stele_txn_drop(&t->edit, t->edit.snapshots[0].info.name) < 0)
			bail("a drop failed");
	if (back && stele_txn_undelete(&t->edit, name, NULL) < 0)
		bail("an undelete failed");
	undeleted += back;
}

/*
 * A segment, a snapshot of it and the one before, less a sample; old ones go, and with
 * them the segments that only they had. In one commit.
 */
static void add_generation(struct test_edit *t)
{
	static const uint64_t deleted[] = {1};
	const struct stele_txn_snapshot *last =
		stele_txn_find(&t->edit, NULL);
	unsigned int number = (unsigned int)t->edit.next_snapshot_id;
	uint64_t ids[2];
	uint32_t count = 0;
	char name[16];

	snprintf(name, sizeof(name), "v%u", number);
	if (last)
		ids[count++] = last->refs[last->info.ref_count - 1].segment_id;
	drop_old(t, number);
	change_more(t, number);
	if (test_edit_segment(t, samples + first_sample + number % 8, 3,
			      &ids[count++]) < 0 ||
	    test_edit_snapshot(t, name, ids, count, deleted, 1) < 0)
		bail("a segment failed");
	if (number % 3 != 2)
		test_edit_collect(t);
	if (stele_txn_publish(&t->edit, 1700000000 + number) < 0)
		bail("a commit failed");
	reused += stele_txn_segment(&t->edit, ids[count - 1])->offset <
		  t->image.sb.catalog_offset;
}

static void prepare(struct test_edit *t, bool restart)
{
	t->piece = restart ? 8192 : 4096;
}

static const struct test_story story = {
	.size = IMAGE_SIZE - GROWS,
	.commits = 6,
	.prepare = prepare,
	.commit = add_generation,
};

static void explore_restarts(void)
{
	unsigned int went_on = test_story_go_on(&story, "recover, commit, crash", 1, true);

	ok(went_on > 8, "%u restarts", went_on);
	went_on = test_story_go_on(&story, "and again", TEST_RESTART_MAX / NESTED, false);
	ok(went_on > 2, "%u restarts of restarts", went_on);
}

int main(void)
{
	uint8_t *blank = calloc(1, IMAGE_SIZE);
	uint8_t *old;

	plan_lazy();
	samples = test_samples(24, 300, 77);
	if (!blank)
		bail("no memory");
	test_crash_init(IMAGE_SIZE);
	test_story_build(&story, "over a blank target", blank, &old);
	explore_restarts();
	first_sample = 8;
	test_story_build(&story, "over an old image", old, NULL);
	explore_restarts();
	ok(reused > 4, "%" PRIu64 " segments in space that had been freed",
	   reused);
	ok(undeleted > 8, "%" PRIu64 " snapshots undeleted", undeleted);
	ok(combined > 8, "%" PRIu64 " commits of several changes", combined);
	test_crash_release();
	free(blank);
	free(old);
	free(samples);
	return done();
}
