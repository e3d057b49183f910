/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.h - an image with something of everything, and copies of it
 *
 * Three segments: tiny slots between huge ones, slots in boundaries, and so
 * many small ones that the tree has levels. Snapshots v1, v2 and v3 of the first
 * one, two and three of them, less some samples. All in memory; the target lies
 * below a fault device. What fails here is the test's fault: it bails.
 */
#ifndef STELE_TESTS_COPIES_H
#define STELE_TESTS_COPIES_H

#include "lib/ops/copy_write.h"
#include "tests/image.h"

#define COPIES_SIZE	(UINT64_C(32) << 20) /* of source and target */
#define COPIES_SEGMENTS 3u
#define COPIES_TIME	1234 /* of commits */

struct copies_source {
	struct stele_device *dev;
	struct test_sample *samples[COPIES_SEGMENTS];
	void *keys[COPIES_SEGMENTS];
};

extern struct test_log copies_log; /* test_log_init() it */
/* Of copies_copy(); may be NULL. */
extern int (*copies_progress)(void *user, uint64_t done, uint64_t total);
extern void *copies_user;

void copies_source(struct copies_source *s, uint32_t logical_block);
void copies_source_drop(struct copies_source *s);
struct stele_device *copies_target(uint32_t logical_block);

/* What lib/ops/copy.c does, on devices. */
int copies_copy(struct stele_device *from, const char *name,
		struct stele_device *to, unsigned int jobs,
		struct stele_copy_report *report);

/* Sound down to the last byte, and the snapshot there with the same digest. */
bool copies_same(struct stele_device *from, struct stele_device *to,
		 const char *name);
bool copies_has(struct stele_device *dev, const char *name);

/* Bytes written to segments since the log began; each block `once`? */
uint64_t copies_written(struct stele_device *dev, bool *once);
/* All writes. */
uint64_t copies_writes(struct stele_device *dev);

#endif
