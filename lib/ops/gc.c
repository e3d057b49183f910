/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.c - the space of what no snapshot uses
 *
 * Freeing is forgetting: the catalog drops the segments, and the deleted snapshots that
 * refer to them or whose own time has come, and lists their space as free. After one
 * commit the other superblock slot still leads to the old catalog, so nothing may be
 * written there yet; a second one, which changes nothing, makes the space good for the
 * next append, and for a discard. That one is made whenever an older slot leads to more
 * than the newest: who was killed between the two leaves it to the next.
 *
 * Space is discarded only where neither slot leads to, and only when both commits
 * are durable; and like what is written, it is said before: see intent.h.
 */
#include "lib/ops/gc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/device/guard.h"
#include "lib/image/snapshot.h"
#include "lib/ops/change.h"
#include "lib/txn/addition.h"
#include "lib/txn/intent.h"
#include "lib/txn/rbd.h"

/* Of what is discarded at once: so many parts of an image at least. */
#define PIECES	       16u
#define PIECE_SIZE_MIN (UINT64_C(1) << 20)
#define PIECE_SIZE_MAX (UINT64_C(1) << 30)

struct collection {
	struct stele_txn *txn;
	int64_t now;
	stele_gc_fn fn;
	void *user;
	struct stele_gc_report *report;
};

/* Unused since then: may it go? */
static bool is_due(const struct collection *c, int64_t since)
{
	const uint64_t grace = c->txn->grace;

	if (c->txn->revoke)
		return true;
	return grace && c->now >= since && (uint64_t)c->now - (uint64_t)since >= grace;
}

static void report_item(struct collection *c, const struct stele_gc_item *item)
{
	c->report->unused_count++;
	c->report->unused_size += item->segment_size;
	if (item->due) {
		c->report->freed_count++;
		c->report->freed_size += item->segment_size;
	}
	if (c->fn)
		c->fn(c->user, item);
}

/* ---- deleted snapshots ------------------------------------------------------------ */

/* One that this transaction has deleted is so from now on; likewise segments, below. */
static bool look_at_deleted(struct collection *c, const struct stele_catalog_snapshot *info)
{
	const int64_t since = info->deleted_time ? info->deleted_time : c->now;
	const struct stele_gc_item item = {
		.size = sizeof(item),
		.name = info->name,
		.sample_count = info->sample_count,
		.unused_since = since,
		.due = is_due(c, since),
		.deleted = true,
	};

	if (c->fn)
		c->fn(c->user, &item);
	return item.due;
}

/* Before their segments, which were in use until then, or longer. */
static void look_at_snapshots(struct collection *c)
{
	struct stele_txn *txn = c->txn;
	uint32_t i = txn->snapshot_count;

	while (i < txn->snapshot_count + txn->deleted_count)
		if (look_at_deleted(c, &txn->snapshots[i].info))
			stele_txn_forget_snapshot(txn, i);
		else
			i++;
}

/* ---- segments ------------------------------------------------------------------- */

static bool look_at_segment(struct collection *c,
			    const struct stele_catalog_segment *segment)
{
	const int64_t since = segment->unused_since ? segment->unused_since :
						      c->now;
	const struct stele_gc_item item = {
		.size = sizeof(item),
		.segment_id = segment->id,
		.offset = segment->offset,
		.segment_size = segment->size,
		.sample_count = segment->sample_count,
		.unused_since = since,
		.due = is_due(c, since),
		.tree = stele_catalog_is_tree(segment),
	};

	report_item(c, &item);
	return item.due;
}

static int look_at_segments(struct collection *c)
{
	struct stele_txn *txn = c->txn;
	uint64_t *due = calloc((size_t)txn->segment_count + 1, sizeof(*due));
	uint32_t count = 0;
	bool *used;
	int ret = stele_txn_find_used(txn, &used);

	if (!due)
		ret = -ENOMEM;
	for (uint32_t i = 0; ret == 0 && i < txn->segment_count; i++)
		if (!used[i] && !stele_addition_refers(txn->work, txn->segments[i].id) &&
		    look_at_segment(c, &txn->segments[i]))
			due[count++] = txn->segments[i].id;
	for (uint32_t i = 0; ret == 0 && i < count; i++)
		ret = stele_txn_drop_segment(txn, due[i]);
	free(due);
	free(used);
	return ret;
}

/* Two commits go over all four superblock copies. */
static int free_kept(struct stele_txn *txn, struct stele_gc_report *report)
{
	uint64_t kept;
	int ret;

	for (unsigned int i = 0; i < 2; i++) {
		ret = stele_image_kept_size(txn->image, &kept);
		if (ret < 0 || !kept)
			return ret;
		if (i == 0 && report)
			report->finished_size = kept;
		ret = stele_txn_publish(txn, txn->time);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* ---- tombstones ------------------------------------------------------------------- */

static int look_at_tombstone(struct collection *c, const char *name)
{
	struct stele_gc_item item = {.size = sizeof(item), .name = name};
	uint32_t index;

	if (!stele_tombstone_parse(name, &item.unused_since, NULL))
		return 0;
	/* Whatever it is called: the catalog says what it is. */
	if (stele_snapshot_find(c->txn->image, name, NULL, &index) == 0)
		return 0;
	item.due = c->txn->revoke || c->now >= item.unused_since;
	report_item(c, &item);
	return item.due ? stele_rbd_snaps_add(&c->txn->tombstones, name, 0, true) : 0;
}

static int look_at_tombstones(struct collection *c)
{
	struct stele_rbd_snaps snaps = {0};
	struct stele_device *dev = c->txn->image->dev;
	const struct stele_rbd_snap_ops *ops = stele_device_snaps(dev);
	int ret = ops ? ops->list(dev, &snaps) : 0;

	for (size_t i = 0; i < snaps.count && ret == 0; i++)
		ret = look_at_tombstone(c, snaps.list[i].name);
	stele_rbd_snaps_release(&snaps);
	return ret;
}

static int remove_tombstones(struct stele_txn *txn)
{
	int ret = 0;

	for (size_t i = 0; i < txn->tombstones.count && ret == 0; i++)
		ret = stele_rbd_remove(txn->image->dev, &txn->log,
				       txn->tombstones.list[i].name);
	return ret;
}

/* ---- space --------------------------------------------------------------------------- */

/* What a commit wrote to ahead of the next one stays. */
static int keep_next_place(struct stele_txn *txn, struct stele_extents *used)
{
	uint64_t offset, size;
	int ret;

	if (!stele_device_snaps(txn->image->dev))
		return 0;
	ret = stele_txn_next_place(txn, used, &offset, &size);
	if (ret == 0)
		ret = stele_extents_add(used, offset, size);
	return ret == -ENOSPC ? 0 : ret;
}

/* A power of two; storage that keeps other writers out has no use for pieces. */
static uint64_t piece_size(const struct stele_image *image)
{
	uint64_t size = PIECE_SIZE_MIN;

	if (!image->dev->permit)
		return STELE_IMAGE_SIZE_MAX;
	while (size < PIECE_SIZE_MAX && size * PIECES <= image->sb.image_size / 2)
		size *= 2;
	return size;
}

/*
 * Said on the target before it is done: who takes over meanwhile keeps off it. So it
 * is a piece at a time, and the others are left to him.
 */
static int discard(struct stele_txn *txn, uint64_t offset, uint64_t size)
{
	struct stele_device *dev = txn->image->dev;
	int ret = stele_intent_reserve(dev, txn->image->generation_max + 1,
				       offset, size);

	if (ret == 0)
		ret = stele_device_discard(dev, offset, size);
	stele_intent_settle(dev);
	return ret;
}

static int tell(const struct stele_txn *txn, const struct stele_progress *done)
{
	if (txn->progress && txn->progress(txn->progress_user, done))
		return -ECANCELED;
	return 0;
}

static int discard_gap(struct stele_txn *txn, const struct stele_catalog_free *gap,
		       struct stele_progress *done)
{
	const uint64_t piece = piece_size(txn->image);
	uint64_t at = gap->offset, end = gap->offset + gap->size, next;
	int ret = 0;

	for (; at < end && ret == 0; at = next) {
		next = round_down(at, piece) + piece;
		if (next > end)
			next = end;
		ret = discard(txn, at, next - at);
		done->bytes_done += next - at;
		if (ret == 0)
			ret = tell(txn, done);
	}
	return ret;
}

/* Where a writer that was replaced may still write: what he publishes late has to be whole. */
static int keep_avoided(const struct stele_txn *txn, struct stele_extents *used)
{
	const struct stele_extents *avoided = stele_intent_avoided(txn->image->dev);
	int ret = 0;

	for (uint32_t i = 0; avoided && i < avoided->count && ret == 0; i++)
		ret = stele_extents_add(used, avoided->list[i].offset, avoided->list[i].size);
	return ret;
}

static int discard_free(struct stele_txn *txn)
{
	struct stele_progress done = {.size = sizeof(done), .phase = STELE_PHASE_DISCARD};
	struct stele_extents used = {0}, gaps = {0};
	int ret = stele_extents_add_copies(&used, txn->image);

	if (ret == 0)
		ret = keep_next_place(txn, &used);
	if (ret == 0)
		ret = keep_avoided(txn, &used);
	if (ret == 0)
		ret = stele_extents_gaps(&used, txn->image->sb.image_size, &gaps);
	for (uint32_t i = 0; i < gaps.count && ret == 0; i++)
		done.bytes_total += gaps.list[i].size;
	if (ret == 0)
		ret = tell(txn, &done);
	for (uint32_t i = 0; i < gaps.count && ret == 0; i++)
		ret = discard_gap(txn, &gaps.list[i], &done);
	/* He who took over during the last one had better be known, too. */
	if (ret == 0)
		ret = stele_intent_confirm(txn->image->dev);
	stele_extents_release(&gaps);
	stele_extents_release(&used);
	if (ret < 0 && ret != -ECANCELED)
		stele_log_error(&txn->log,
				"the free space cannot be discarded: %s",
				stele_error_describe(ret));
	return ret;
}

static uint64_t sum_free(const struct stele_txn *txn)
{
	const struct stele_catalog *catalog = &txn->image->catalog;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < catalog->counts.free; i++) {
		struct stele_catalog_free extent;

		stele_catalog_free(catalog, i, &extent);
		sum += extent.size;
	}
	return sum;
}

/* ---- on a transaction ------------------------------------------------------------------ */

int stele_gc_stage(struct stele_txn *txn, stele_gc_fn fn, void *user,
		   struct stele_gc_report *report)
{
	struct collection c = {
		.txn = txn,
		.now = txn->time,
		.fn = fn,
		.user = user,
		.report = report,
	};
	int ret;

	memset(report, 0, sizeof(*report));
	stele_rbd_snaps_release(&txn->tombstones);
	txn->frees = true;
	look_at_snapshots(&c);
	ret = look_at_segments(&c);
	if (ret == 0)
		ret = look_at_tombstones(&c);
	c.report->free_size = sum_free(txn);
	txn->freed_size += c.report->freed_size;
	return ret;
}

int stele_gc_check(const struct stele_txn *txn)
{
	const char *path = txn->target.path;
	uint64_t kept = 0;
	int ret = 0;

	/* Merely listed, none of it goes. */
	if (!txn->frees || !path || stele_path_is_rbd(path) ||
	    (txn->dry && !txn->grace && !txn->revoke))
		return 0;
	if (!txn->freed_size)
		ret = stele_image_kept_size(txn->image, &kept);
	if (ret < 0 || (!txn->freed_size && !kept))
		return ret;
	/* What is mounted may be of any generation. */
	return stele_guard_viewed(path, txn->image->sb.uuid, &txn->log);
}

int stele_gc_finish(struct stele_txn *txn, struct stele_gc_report *report)
{
	const bool changed = txn->state == STELE_TXN_DIRTY;
	int ret = 0;

	if (!txn->frees)
		return 0;
	if (changed)
		ret = stele_txn_publish(txn, txn->time);
	if (ret == 0)
		ret = free_kept(txn, changed ? NULL : report);
	if (ret == 0)
		ret = remove_tombstones(txn);
	if (ret == 0 && txn->discard)
		ret = discard_free(txn);
	if (ret == 0)
		txn->freed_size = 0;
	if (report)
		report->free_size = sum_free(txn);
	return ret;
}

static int gc(const char *target, const struct stele_txn_opts *opts,
	      stele_gc_fn fn, void *user, struct stele_gc_report *report)
{
	struct stele_gc_report made = {0};
	struct stele_txn txn;
	int ret = stele_change_begin(&txn, target, STELE_CHANGE_OF_IMAGE, opts,
				     STELE_CHANGE_LISTS,
				     STELE_FORCE | STELE_TXN_DISCARD);

	if (ret == 0)
		ret = stele_output_check(report, finished_size, &txn.log);
	if (ret == 0 && !txn.dry && !txn.grace && !txn.revoke) {
		stele_log_error(&txn.log,
				"'%s' may still have readers of what is freed: "
				"set a grace period, or force",
				target);
		ret = -EBUSY;
	}
	if (ret == 0)
		ret = stele_gc_stage(&txn, fn, user, &made);
	if (ret == 0)
		ret = stele_gc_check(&txn);
	if (ret == 0)
		ret = stele_gc_finish(&txn, &made);
	stele_output_fill(report, &made, sizeof(made));
	return stele_change_end(&txn, ret);
}

int stele_gc(const char *target, const struct stele_txn_opts *opts,
	     stele_gc_fn fn, void *user, struct stele_gc_report *report)
{
	return STELE_CALL(gc(target, opts, fn, user, report),
			  "cannot free space of '%s'", target);
}
