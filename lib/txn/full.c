/* SPDX-License-Identifier: Apache-2.0 */
/*
 * full.c - what helps where an image is full
 *
 * Nobody is told to give up what would not make room: gc is named where it does, deleting
 * snapshots only where those make room that are neither the base nor the newest. What is
 * found is an estimate: `size` bytes and three catalogs are to fit, in a piece each.
 */
#include "lib/txn/txn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/txn/addition.h"

/* Of the commit that makes room, of this one, and of the next one, which is reserved then. */
#define CATALOGS 3u
/* Of the first alone: this one may do with less, at the cost of the image's older generation. */
#define CATALOGS_LEAST 1u

/* What is given up for room, each with those before. */
enum give {
	GIVE_TREES,	/* parts of trees of files that others have replaced: nothing is lost */
	GIVE_UNUSED,	/* what gc frees, deleted snapshots, too */
	GIVE_SNAPSHOTS, /* and snapshots that need not stay */
};

/* The one that has to stay. NULL: there is none. */
static const struct stele_txn_snapshot *base_of(const struct stele_txn *txn)
{
	for (uint32_t i = 0; txn->work && i < txn->snapshot_count; i++)
		if (txn->snapshots[i].info.id == txn->work->parent)
			return &txn->snapshots[i];
	return txn->snapshot_count ? &txn->snapshots[txn->snapshot_count - 1] : NULL;
}

static bool has(const struct stele_txn_snapshot *snapshot, uint64_t segment_id)
{
	for (uint32_t i = 0; snapshot && i < snapshot->info.ref_count; i++)
		if (snapshot->refs[i].segment_id == segment_id)
			return true;
	return false;
}

/*
 * Does gc free it? What this transaction has added is not unused yet, and no snapshot has it.
 */
static bool goes(const struct stele_txn *txn, uint32_t index, const bool *used, enum give give)
{
	const struct stele_catalog_segment *segment = &txn->segments[index];

	if (stele_addition_refers(txn->work, segment->id) ||
	    stele_txn_has_part(txn, segment->id))
		return false;
	if (segment->unused_since)
		return give >= GIVE_UNUSED || stele_catalog_is_tree(segment);
	return give == GIVE_SNAPSHOTS && used[index] && !has(base_of(txn), segment->id);
}

/* Is there a piece of so many bytes? Then it is none any more. */
static int take(struct stele_extents *left, uint64_t size, uint64_t end)
{
	uint64_t offset;
	int ret = stele_extents_find(left, size, STELE_BLOCK_SIZE, end, &offset);

	return ret < 0 ? ret : stele_extents_add(left, offset, size);
}

/* Do so many bytes and catalogs fit once that is given up? */
static bool fits(const struct stele_txn *txn, uint64_t size, enum give give,
		 unsigned int catalogs)
{
	const struct stele_superblock *sb = &txn->image->sb;
	struct stele_extents left = {0};
	uint64_t catalog;
	bool *used = NULL, frees = false;
	int ret = stele_txn_commit_size(txn, &catalog);

	if (ret == 0)
		ret = stele_txn_find_used(txn, &used);
	if (ret == 0 && sb->state == STELE_STATE_READY)
		ret = stele_extents_add(&left, sb->catalog_offset, sb->catalog_size);
	for (uint32_t i = 0; ret == 0 && i < txn->segment_count; i++)
		if (goes(txn, i, used, give))
			frees = true;
		else
			ret = stele_extents_add(&left, txn->segments[i].offset,
						txn->segments[i].size);
	if (ret == 0)
		ret = take(&left, size, txn->image_size);
	for (uint32_t i = 0; ret == 0 && i < catalogs; i++)
		ret = take(&left, catalog, txn->image_size);
	stele_extents_release(&left);
	free(used);
	return ret == 0 && (frees || give != GIVE_TREES); /* lists are no segments */
}

/* Bytes of the largest piece that is free; as far as is known. */
static uint64_t largest_free(const struct stele_txn *txn)
{
	struct stele_extents gaps = {0};
	uint64_t largest = 0;

	if (stele_extents_gaps(&txn->used, txn->image_size, &gaps) < 0)
		return 0;
	for (uint32_t i = 0; i < gaps.count; i++)
		if (gaps.list[i].size > largest)
			largest = gaps.list[i].size;
	stele_extents_release(&gaps);
	return largest;
}

int stele_txn_log_no_space(const struct stele_txn *txn, uint64_t size)
{
	const char *advice = "take a larger target";
	uint64_t target_size = 0, catalog = 0;

	if (!txn->image->dev->resizable)
		stele_device_size(txn->image->dev, &target_size);
	if (target_size >= txn->image_size + size)
		advice = "its target has more: resize it";
	else if (fits(txn, size, GIVE_UNUSED, CATALOGS))
		advice = "free some with gc, or take a larger target";
	else if (fits(txn, size, GIVE_TREES, CATALOGS_LEAST))
		advice = "free some with gc, which may be enough, or take a larger target";
	else if (txn->snapshot_count > 1 && fits(txn, size, GIVE_SNAPSHOTS, CATALOGS))
		advice = "take a larger target, or delete snapshots that are not needed any "
			 "more, and free their space with gc";
	stele_txn_commit_size(txn, &catalog);
	stele_log_error(&txn->image->log,
			"no space left: %" PRIu64 " bytes in one piece are needed, and up to %"
			PRIu64 " for catalogs; the largest free piece has %" PRIu64 "; %s",
			size, CATALOGS * catalog, largest_free(txn), advice);
	return -ENOSPC;
}
