/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash.h - every state that a crash can leave, and what must be found there
 *
 * A history is what was written to a fault device, and what a user could count
 * on at which moment. Exploring it cuts each of its flush epochs: prefixes of its
 * writes, all subsets where they are few, else all but one, only one, and
 * random ones; superblocks torn at every eighth byte, from the front and from the
 * back. Each state must be the last acknowledged generation or the one in flight,
 * byte for byte. With the newest slot wiped, while no superblock is being written, it is
 * that generation nonetheless, by its witness; with that wiped, too, the generation before it,
 * in doubt. Block 0, if it shows an EROFS, shows that of the last
 * acknowledged generation or of the one in flight, once that is found; and the tree and all
 * samples are as they were, byte for byte. Its sector is never torn. What is found has its
 * catalog twice and its witness, and nothing is taken for lost.
 */
#ifndef STELE_TESTS_CRASH_CRASH_H
#define STELE_TESTS_CRASH_CRASH_H

#include "lib/image/image.h"
#include "lib/txn/space.h"
#include "tests/device/fault.h"

#define TEST_EXPECT_MAX	 12u
#define TEST_RESTART_MAX 48u

enum test_expect_kind {
	TEST_EXPECT_BLANK,
	TEST_EXPECT_UNFINISHED,
	TEST_EXPECT_IMAGE,
};

/* What a user may count on from one moment on. */
struct test_expect {
	enum test_expect_kind kind;
	size_t log_count; /* entries of the log at that moment */
	uint8_t uuid[STELE_UUID_BYTES];
	uint64_t generation;
	uint8_t *bytes; /* of the whole target */
	struct stele_extents shown; /* what is read through its EROFS; none: it is none */
};

struct test_history {
	struct stele_device *fault; /* to be written to */
	struct test_expect expect[TEST_EXPECT_MAX];
	unsigned int count;
	uint8_t *base; /* the target before it began */
	bool levels;   /* it may give up the older generation for room */
};

/* Once, before all else: the size of all targets. Bail rather than fail. */
void test_crash_init(uint64_t size);
void test_crash_release(void);

void test_history_open(struct test_history *h, const uint8_t *base);
void test_history_close(struct test_history *h);
/* From now on; `sb` of an image, of which the device as it is gets kept. */
void test_history_expect(struct test_history *h, enum test_expect_kind kind,
			 const struct stele_superblock *sb);

/* With `restart`, keep states from which a history may go on. */
void test_crash_explore(const struct test_history *h, bool restart);
/* One check for all states since the last; `name` for messages until then. */
void test_crash_name(const char *name);
void test_crash_report(void);
/* States whose block 0 showed an EROFS, in all. */
uint64_t test_crash_shown(void);
/* Takes what was kept, malloced each. Return: how many. */
unsigned int test_crash_restarts(uint8_t *out[TEST_RESTART_MAX]);
/* A copy of the last state. */
uint8_t *test_crash_state(void);

#endif
