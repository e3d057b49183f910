/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn.c - stele_txn_open(), preview, commit, close; what lies between has a file of its own
 */
#include "lib/ops/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/ops/gc.h"
#include "lib/txn/claim.h"
#include "lib/txn/posix.h"

static int txn_open(const char *target, const struct stele_txn_opts *opts,
		    struct stele_txn **out)
{
	struct stele_txn *txn = malloc(sizeof(*txn));
	int ret;

	if (!txn)
		return -ENOMEM;
	ret = stele_change_begin(txn, target, STELE_CHANGE_OF_ANY, opts, STELE_CHANGE_FREES,
				 STELE_FORCE | STELE_TXN_DISCARD);
	if (ret < 0) {
		stele_txn_release(txn);
		free(txn);
		return ret;
	}
	*out = txn;
	return 0;
}

int stele_txn_open(const char *target, const struct stele_txn_opts *opts,
		   struct stele_txn **out)
{
	return STELE_CALL(txn_open(target, opts, out),
			  "cannot change '%s'", target);
}

static int txn_free(struct stele_txn *txn, stele_gc_fn fn, void *user,
		    struct stele_gc_report *report)
{
	struct stele_gc_report made = {0};
	int ret = stele_output_check(report, finished_size, &txn->log);

	if (ret == 0)
		ret = stele_gc_stage(txn, fn, user, &made);
	stele_output_fill(report, &made, sizeof(made));
	return ret;
}

int stele_txn_free(struct stele_txn *txn, stele_gc_fn fn, void *user,
		   struct stele_gc_report *report)
{
	return STELE_TXN_CALL(txn, txn_free(txn, fn, user, report),
			  "cannot free space");
}

static int txn_commit(struct stele_txn *txn)
{
	int ret;

	if (txn->state == STELE_TXN_FAILED)
		return -EINVAL;
	ret = stele_change_check(txn);
	if (ret == 0)
		ret = stele_gc_check(txn);
	if (ret == 0)
		ret = stele_txn_overwrite(txn);
	if (ret == 0 && txn->image->sb.state != STELE_STATE_READY)
		ret = stele_txn_publish_new(txn, txn->time);
	else if (ret == 0 && txn->state == STELE_TXN_DIRTY)
		ret = stele_txn_publish(txn, txn->time);
	if (ret == 0 && txn->claim) {
		ret = stele_claim_finish(txn->claim);
		if (ret < 0)
			txn->state = STELE_TXN_FAILED;
	}
	return ret ? ret : stele_gc_finish(txn, NULL);
}

/* ---- preview --------------------------------------------------------------- */

static void count_snapshots(const struct stele_txn *txn,
			    struct stele_txn_preview *made)
{
	const struct stele_catalog *old = &txn->image->catalog;
	uint32_t stay = 0;

	for (uint32_t i = 0; i < old->counts.snapshots; i++) {
		struct stele_catalog_snapshot before;

		stele_catalog_snapshot(old, i, &before);
		for (uint32_t j = 0; j < txn->snapshot_count; j++) {
			const struct stele_catalog_snapshot *now =
				&txn->snapshots[j].info;

			if (now->id != before.id)
				continue;
			stay++;
			made->snapshots_renamed +=
				strcmp(now->name, before.name) != 0;
		}
	}
	made->snapshots_added = txn->snapshot_count - stay;
	made->snapshots_dropped = old->counts.snapshots - stay;
}

static int count_segments(const struct stele_txn *txn,
			  struct stele_txn_preview *made)
{
	const struct stele_catalog *old = &txn->image->catalog;
	bool *used;
	int ret = stele_txn_find_used(txn, &used);

	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < txn->segment_count; i++) {
		const struct stele_catalog_segment *s = &txn->segments[i];
		const bool added = !stele_txn_is_committed(txn, s->id);

		made->segments_added += added;
		made->added_size += added ? s->size : 0;
		made->unused_size += used[i] ? 0 : s->size;
	}
	for (uint32_t i = 0; i < old->counts.segments; i++) {
		struct stele_catalog_segment before;

		stele_catalog_segment(old, i, &before);
		if (stele_txn_segment(txn, before.id))
			continue;
		made->segments_freed++;
		made->freed_size += before.size;
	}
	free(used);
	return 0;
}

static int txn_preview(struct stele_txn *txn, struct stele_txn_preview *report)
{
	struct stele_txn_preview made = {0};
	struct stele_txn copy;
	uint64_t before;
	int ret = stele_output_check(report, image_size, &txn->log);

	if (ret < 0)
		return ret;
	ret = stele_txn_rehearse(txn, &copy);
	if (ret == 0) {
		count_snapshots(&copy, &made);
		ret = count_segments(&copy, &made);
		made.old_image_size = copy.image->sb.image_size;
		before = copy.image->dev->written;
	}
	if (ret == 0)
		ret = txn_commit(&copy);
	if (ret == 0) {
		made.metadata_size = copy.image->dev->written - before;
		made.image_size = copy.image->sb.image_size;
	}
	stele_txn_release(&copy);
	if (ret == 0)
		stele_output_fill(report, &made, sizeof(made));
	return ret;
}

int stele_txn_preview(struct stele_txn *txn, struct stele_txn_preview *report)
{
	return STELE_TXN_CALL(txn, txn_preview(txn, report), "cannot commit");
}

int stele_txn_commit(struct stele_txn *txn)
{
	return STELE_TXN_CALL(txn, txn_commit(txn),
			  "cannot commit");
}

void stele_txn_close(struct stele_txn *txn)
{
	if (!txn)
		return;
	stele_txn_release(txn);
	free(txn);
}
