/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - a snapshot from one image into a transaction on another
 *
 * Each segment that the target lacks is committed, used by no snapshot, as soon
 * as it is there: interrupted, a copy has lost nothing but what it was about to
 * write, and the next one goes on. The allocator hands out the same space to
 * it, because what it depends on are the superblock copies alone; so
 * room is made, and the target grows, before anything is allocated.
 *
 * Or it is staged: a change like others of its transaction, which commits it or not.
 */
#ifndef STELE_OPS_COPY_H
#define STELE_OPS_COPY_H

#include "lib/image/snapshot.h"
#include "lib/txn/txn.h"

struct stele_copier {
	/* The caller's to set. */
	struct stele_image *image; /* the source's */
	const struct stele_snapshot *snapshot;
	struct stele_txn *txn; /* of the target, its log says what goes wrong */
	const char *name; /* of the snapshot there */
	unsigned int jobs; /* 1 to STELE_COPY_JOBS_MAX */
	bool staged; /* commit nothing */
	stele_progress_fn progress;
	void *progress_user;
	struct stele_copy_report *report;

	/* The copier's own. */
	struct stele_progress done; /* segments that are there */
};

/* When nobody says how many. */
unsigned int stele_copy_jobs(void);
/*
 * Copy. Return: 0; -ECANCELED; -EEXIST (another snapshot of that name, or another
 * segment of the same id; logged); -ENOSPC; errors of
 * stele_segment_copy(), of commits, of either image.
 */
int stele_copy_on(struct stele_copier *copier);

/* ---- between copy.c and copy_there.c ---------------------------------------- */

/* Of the segment at hand: so much. For stele_segment_copy.progress, of the copier. */
int stele_copier_progress(void *user, uint64_t bytes, uint64_t samples);
/* Snapshots there have it, and that is all that is known of it. */
void stele_copier_unread(struct stele_copier *copier, const struct stele_segment *segment);
/*
 * The target has a segment of this id: may a snapshot use it? Return: 0; -EEXIST (it is
 * another one; logged); -ENODATA (an interrupted copy has left it, and it is damaged: drop
 * it); -EBADMSG (so are samples that no snapshot has, of one that some use; logged); errors
 * as of stele_segment_copy().
 */
int stele_copier_check(struct stele_copier *copier, const struct stele_segment *segment);

#endif
