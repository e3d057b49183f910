/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.c - histories that begin with a build, and go on where a crash cut them
 */
#include "tests/crash/story.h"

#include <stdlib.h>

#include "tests/tap.h"

static void commit(const struct test_story *story, struct test_history *h,
		   struct test_edit *t)
{
	story->commit(t);
	test_history_expect(h, TEST_EXPECT_IMAGE, &t->image.sb);
}

/* What was there before is expected first. */
static void expect_old(struct test_history *h)
{
	struct stele_image old;

	if (stele_image_load(h->fault, NULL, &old) < 0) {
		test_history_expect(h, TEST_EXPECT_BLANK, NULL);
		return;
	}
	test_history_expect(h, TEST_EXPECT_IMAGE, &old.sb);
	old.dev = NULL;
	stele_image_release(&old);
}

static void record_build(const struct test_story *story, struct test_history *h,
			 const uint8_t *base)
{
	struct test_edit t;

	test_history_open(h, base);
	expect_old(h);
	if (test_edit_create(&t, h->fault, story->size) < 0)
		bail("begin failed");
	story->prepare(&t, false);
	test_history_expect(h, TEST_EXPECT_UNFINISHED, NULL);
	for (unsigned int i = 0; i < story->commits; i++)
		commit(story, h, &t);
	test_edit_end(&t);
}

static bool record_restart(const struct test_story *story, struct test_history *h,
			   const uint8_t *base)
{
	struct test_edit t;
	bool found;

	test_history_open(h, base);
	found = test_edit_load(&t, h->fault) == 0;
	if (found) {
		story->prepare(&t, true);
		test_history_expect(h, TEST_EXPECT_IMAGE, &t.image.sb);
		commit(story, h, &t);
		commit(story, h, &t);
	}
	test_edit_end(&t);
	return found;
}

void test_story_build(const struct test_story *story, const char *name, const uint8_t *base,
		      uint8_t **last)
{
	struct test_history h;

	test_crash_name(name);
	record_build(story, &h, base);
	test_crash_explore(&h, true);
	test_crash_report();
	if (last)
		*last = test_crash_state();
	test_history_close(&h);
}

unsigned int test_story_go_on(const struct test_story *story, const char *name,
			      unsigned int step, bool more)
{
	uint8_t *from[TEST_RESTART_MAX];
	unsigned int count = test_crash_restarts(from), went_on = 0;

	test_crash_name(name);
	for (unsigned int i = 0; i < count; i++) {
		struct test_history h;

		if (i % step == 0) {
			if (record_restart(story, &h, from[i])) {
				test_crash_explore(&h, more);
				went_on++;
			}
			test_history_close(&h);
		}
		free(from[i]);
	}
	test_crash_report();
	return went_on;
}
