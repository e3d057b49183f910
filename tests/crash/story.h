/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.h - histories that begin with a build, and go on where a crash cut them
 *
 * A build over some target, then commits; from each state that exploring it kept, the
 * history goes on: recover, and commit twice. What a commit changes is the story's own.
 */
#ifndef STELE_TESTS_CRASH_STORY_H
#define STELE_TESTS_CRASH_STORY_H

#include "tests/crash/crash.h"
#include "tests/fixture/edit.h"

struct test_story {
	uint64_t size; /* of the image that is built */
	unsigned int commits;
	/* What the fixture is to have besides; `restart`: in a history that goes on. */
	void (*prepare)(struct test_edit *t, bool restart);
	/* One commit. Bail rather than fail. */
	void (*commit)(struct test_edit *t);
};

/* Record and explore a build over `base`; `last` (may be NULL): a copy of its last state. */
void test_story_build(const struct test_story *story, const char *name, const uint8_t *base,
		      uint8_t **last);
/*
 * Go on from every `step`-th state that was kept; `more`: keep states of these. Return: from
 * how many there was an image to go on with.
 */
unsigned int test_story_go_on(const struct test_story *story, const char *name,
			      unsigned int step, bool more);

#endif
