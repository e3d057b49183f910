/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next.c - from a transaction to the next generation
 *
 * What is used by the next generation alone decides what its catalog calls free.
 * One that takes space leaves room for the catalog of a next one that gives some
 * back: a full image can still be deleted from.
 */
#include "lib/txn/txn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/run.h"
#include "format/sections.h"
#include "lib/device/name.h"
#include "lib/image/deleted.h"
#include "lib/txn/posix.h"
#include "lib/txn/rbd.h"
#include "lib/txn/tree.h"

/* Those of a delete and of the first commit of a gc; then old ones are free. */
#define CATALOGS_AHEAD 2u

/* ---- deleted lists --------------------------------------------------------- */

/* May one more list be the second one of this first one, over all snapshots? */
static bool has_second_left(const struct stele_txn *txn,
			    const struct stele_catalog_list *first)
{
	uint64_t seen[STELE_SECOND_LISTS_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < txn->snapshot_count + txn->deleted_count; i++) {
		const struct stele_txn_snapshot *s = &txn->snapshots[i];

		for (uint32_t j = 0; j < s->info.ref_count; j++) {
			const struct stele_catalog_list *lists = s->refs[j].at.lists;
			uint32_t k = 0;

			if (lists[0].offset != first->offset || !lists[1].offset)
				continue;
			while (k < count && seen[k] != lists[1].offset)
				k++;
			if (k == count)
				seen[count++] = lists[1].offset;
			if (count == STELE_SECOND_LISTS_MAX)
				return false;
		}
	}
	return true;
}

/*
 * Each list that grows by `more` words at a time is written again and again; until that
 * has cost as much as to write all anew, it is cheaper.
 */
static bool second_pays(const struct stele_catalog_list lists[STELE_REF_LISTS],
			const struct stele_deleted *all,
			const struct stele_deleted *second)
{
	const uint64_t old = lists[1].count, now = second->word_count;
	const double more = now > old ? (double)(now - old) : 1;

	return stele_deleted_blocks(now) < stele_deleted_blocks(all->word_count) &&
	       (double)now * (double)now <= 2 * more * (double)lists[0].count;
}

/*
 * What is to be written: *part, and which list that is. The first list may be good for all
 * that it has; then `second` is owned by the caller.
 */
static int choose_list(struct stele_txn *txn, const struct stele_txn_ref *ref,
		       const struct stele_deleted *all,
		       struct stele_deleted *second, uint32_t *index)
{
	const struct stele_catalog_list *lists = ref->at.lists;
	struct stele_deleted first = {0};
	const char *why;
	int ret;

	*index = 0;
	if (!lists[0].offset || stele_deleted_blocks(all->word_count) == 1 ||
	    !has_second_left(txn, &lists[0]))
		return 0;
	ret = stele_deleted_load_list(
		txn->image, &lists[0],
		stele_txn_segment(txn, ref->segment_id)->sample_count, &first, &why);
	if (ret < 0)
		stele_log_error(&txn->image->log, "deleted list at %" PRIu64 ": %s",
				lists[0].offset, why);
	else
		ret = stele_deleted_combine(all, &first, STELE_DELETED_ANDNOT,
					    second);
	if (ret == 0 && second->count && first.count + second->count == all->count &&
	    second_pays(lists, all, second))
		*index = 1;
	stele_deleted_release(&first);
	return ret;
}

int stele_txn_write_deleted(struct stele_txn *txn, struct stele_txn_ref *ref,
			    const struct stele_deleted *all)
{
	struct stele_catalog_ref written = {.deleted_count = all->count};
	const struct stele_deleted *part = all;
	struct stele_deleted second = {0};
	uint64_t offset;
	uint32_t index = 0;
	int ret = 0;

	if (all->count > STELE_SAMPLES_MAX)
		return -EINVAL;
	if (all->count)
		ret = choose_list(txn, ref, all, &second, &index);
	if (index) {
		part = &second;
		written.lists[0] = ref->at.lists[0];
	}
	if (all->count && ret == 0)
		ret = stele_txn_allocate(txn, stele_image_deleted_size(part->word_count),
					 0, &offset);
	if (all->count && ret == 0)
		ret = stele_image_write_deleted(txn->image, offset, part,
						&written.lists[index]);
	if (ret == 0)
		ref->at = written;
	stele_deleted_release(&second);
	return ret;
}

/* ---- the next catalog ------------------------------------------------------ */

struct next {
	struct stele_catalog_draft draft;
	struct stele_extents own; /* used, but for the catalog itself */
	uint64_t most;		  /* bytes of the catalog, wherever it goes */
	struct stele_extents free;
	struct stele_catalog_place place;
	/* Owned; the draft refers to them. */
	struct stele_catalog_snapshot *snapshots;
	struct stele_catalog_ref *refs;
	char *notes;
	struct stele_txn_places places;
	/* Indices of the segments, by id. */
	uint32_t *by_id;
};

static void next_release(struct next *next)
{
	stele_extents_release(&next->own);
	stele_extents_release(&next->free);
	free(next->snapshots);
	free(next->refs);
	free(next->notes);
	stele_txn_places_release(&next->places);
	free(next->by_id);
}

/* And where refs go. */
static int count_all(const struct stele_txn *txn,
		     struct stele_catalog_counts *counts,
		     struct stele_txn_places *places)
{
	int ret = stele_txn_place_refs(txn, places);

	*counts = (struct stele_catalog_counts){
		.segments = txn->segment_count,
		.snapshots = txn->snapshot_count,
		.refs = places->count,
		.deleted = txn->deleted_count,
	};
	for (uint32_t i = 0; i < txn->snapshot_count + txn->deleted_count; i++)
		counts->notes_size += txn->snapshots[i].info.note_size;
	return ret;
}

/* Segments and deleted lists; a list that is shared only once. */
static int collect_own(const struct stele_txn *txn,
		       const struct stele_txn_places *places,
		       struct stele_extents *own)
{
	struct stele_catalog_free *list;
	uint32_t n = 0;
	int ret;

	list = calloc((size_t)txn->segment_count + STELE_REF_LISTS * places->count + 1,
		      sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < txn->segment_count; i++)
		list[n++] = (struct stele_catalog_free){
			txn->segments[i].offset, txn->segments[i].size};
	for (uint32_t i = 0; i < txn->snapshot_count + txn->deleted_count; i++) {
		const struct stele_txn_snapshot *s = &txn->snapshots[i];

		for (uint32_t j = 0; places->whole[i] && j < s->info.ref_count; j++)
			n += stele_ref_extents(&s->refs[j].at, &list[n]);
	}
	ret = stele_extents_add_list(own, list, n);
	free(list);
	return ret;
}

static int fill_refs(struct stele_txn *txn, struct next *next,
		     const struct stele_txn_snapshot *s, uint32_t at)
{
	for (uint32_t i = 0; i < s->info.ref_count; i++) {
		struct stele_catalog_ref *ref = &next->refs[at + i];

		*ref = s->refs[i].at;
		if (!stele_txn_index_of(txn, next->by_id,
					s->refs[i].segment_id, &ref->segment))
			return -EINVAL;
		if (ref->deleted_count)
			txn->feature_incompat |= STELE_FEATURE_DELETED;
	}
	return 0;
}

/* Their times come from the commit, like those of segments. */
static int fill_snapshots(struct stele_txn *txn, struct next *next, int64_t time)
{
	const struct stele_txn_places *places = &next->places;
	uint32_t notes = 0;
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < txn->snapshot_count + txn->deleted_count; i++) {
		struct stele_txn_snapshot *s = &txn->snapshots[i];

		if (i >= txn->snapshot_count && !s->info.deleted_time)
			s->info.deleted_time = time;
		next->snapshots[i] = s->info;
		next->snapshots[i].first_ref = places->first[i];
		next->snapshots[i].note_offset = notes;
		if (s->info.note_size)
			memcpy(next->notes + notes, s->note, s->info.note_size);
		if (places->whole[i])
			ret = fill_refs(txn, next, s, places->first[i]);
		notes += s->info.note_size;
	}
	return ret;
}

/* In use since 0; out of use since the first commit that found it so. */
static int fill_tables(struct stele_txn *txn, struct next *next, int64_t time)
{
	const struct stele_catalog_counts *counts = &next->draft.counts;
	bool *used;
	int ret = stele_txn_find_used(txn, &used);

	time = time > 0 ? time : 1;
	next->snapshots = calloc((size_t)counts->snapshots + counts->deleted + 1,
				 sizeof(*next->snapshots));
	next->refs = calloc((size_t)counts->refs + 1, sizeof(*next->refs));
	next->notes = malloc((size_t)counts->notes_size + 1);
	if (!next->snapshots || !next->refs || !next->notes)
		ret = -ENOMEM;
	if (ret == 0)
		ret = stele_txn_sort_ids(txn, &next->by_id);
	if (ret == 0)
		ret = fill_snapshots(txn, next, time);
	for (uint32_t i = 0; ret == 0 && i < txn->segment_count; i++) {
		int64_t *since = &txn->segments[i].unused_since;

		if (used[i])
			*since = 0;
		else if (*since == 0)
			*since = time;
	}
	free(used);
	return ret;
}

static int look_for_place(struct stele_txn *txn, void *user)
{
	struct next *next = user;

	return stele_catalog_find_place(&next->own, &txn->used,
					&next->draft.counts, txn->image_size,
					&next->place);
}

/*
 * What only older superblocks lead to is free when they are older no more. That
 * leaves a single generation, so it is done where nothing else helps.
 */
static int give_up_older(struct stele_txn *txn, const struct next *next)
{
	int ret = stele_image_level(txn->image);

	if (ret == 0) {
		txn->stale = true;
		ret = stele_txn_refresh(txn);
	}
	for (uint32_t i = 0; ret == 0 && i < next->own.count; i++)
		ret = stele_extents_add(&txn->used, next->own.list[i].offset,
					next->own.list[i].size);
	return ret;
}

static int place_in(struct stele_txn *txn, struct next *next, bool larger)
{
	int ret = stele_txn_search(txn, look_for_place, next);

	if (ret == -ENOSPC && larger) {
		ret = stele_txn_make_larger(txn, next->most,
					     STELE_BLOCK_SIZE);
		if (ret == 0)
			ret = look_for_place(txn, next);
	}
	return ret < 0 ? ret :
			 stele_txn_reserve(txn, next->place.offset,
					   next->place.size);
}

static bool is_full(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EFBIG;
}

/* What fails at first is of no account if there is room without the older generation. */
static int find_place(struct stele_txn *txn, struct next *next)
{
	const struct stele_log log = txn->image->log;
	const uint64_t image_size = txn->image_size;
	const bool elastic = stele_txn_is_elastic(txn);
	struct stele_log_held held;
	int ret;

	stele_log_hold(&held, &log);
	txn->image->log = held.log;
	ret = place_in(txn, next, elastic);
	if (is_full(ret) && !stele_device_snaps(txn->image->dev)) {
		txn->image_size = image_size;
		if (give_up_older(txn, next) == 0 &&
		    place_in(txn, next, false) == 0)
			ret = 0;
	}
	txn->image->log = log;
	stele_log_end(&held, ret < 0);
	if (ret == -ENOSPC && !elastic)
		stele_txn_log_no_space(txn, next->most);
	if (ret == -EOVERFLOW)
		stele_log_error(&txn->image->log,
				"the catalog would be too large, or the free "
				"space in too many pieces: delete some "
				"snapshots, or compact them");
	return ret;
}

/* In a file, if there is room for it: a catalog without a mirror is better than none. */
static void reserve_mirrors(struct stele_txn *txn, uint64_t size)
{
	static const uint64_t places[] = STELE_CATALOG_MIRRORS;

	if (size > STELE_CATALOG_MIRROR_SIZE)
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		stele_device_reserve_file(txn->image->dev, places[i], size);
}

/*
 * A later commit that only gives back has a catalog of next->most bytes at most: the entry
 * of a snapshot stays as it is when that is deleted; what gc drops is larger than an entry
 * of the free extents that come of it, and refs take no more space without a snapshot than
 * with it (places.c). In a file that place has blocks, too: its filesystem may be full by
 * then.
 */
static int leave_room(struct stele_txn *txn, const struct next *next)
{
	struct stele_device *dev = txn->image->dev;
	uint64_t offset;
	int ret;

	if (!txn->takes || stele_device_snaps(dev))
		return 0;
	ret = stele_extents_find(&next->own, next->most, STELE_BLOCK_SIZE,
				 txn->image_size, &offset);
	if (ret == -ENOSPC) {
		ret = stele_txn_make_larger(txn, next->most, STELE_BLOCK_SIZE);
		if (ret == 0)
			ret = stele_extents_find(&next->own, next->most,
						 STELE_BLOCK_SIZE,
						 txn->image_size, &offset);
	}
	if (ret == 0)
		ret = stele_txn_reserve_blocks(txn, offset, next->most);
	if (ret == 0)
		reserve_mirrors(txn, next->most);
	return ret;
}

static int fill_free(struct stele_txn *txn, struct next *next)
{
	int ret = stele_extents_add(&next->own, next->place.offset,
				    next->place.size);

	if (ret == 0)
		ret = leave_room(txn, next);
	if (ret == 0)
		ret = stele_extents_gaps(&next->own, next->place.high_water,
					 &next->free);
	return ret;
}

static int make_draft(struct stele_txn *txn, int64_t time, struct next *next)
{
	struct stele_catalog_draft *draft = &next->draft;
	int ret;

	ret = count_all(txn, &draft->counts, &next->places);
	if (ret == 0)
		ret = collect_own(txn, &next->places, &next->own);
	if (ret == 0)
		ret = fill_tables(txn, next, time);
	next->most = stele_catalog_size_bound(&next->own, &draft->counts);
	if (ret == 0)
		ret = find_place(txn, next);
	if (ret == 0)
		ret = fill_free(txn, next);
	draft->segments = txn->segments;
	draft->snapshots = next->snapshots;
	draft->refs = next->refs;
	draft->free = next->free.list;
	draft->notes = next->notes;
	draft->counts.free = next->free.count;
	draft->next_snapshot_id = txn->next_snapshot_id;
	draft->feature_incompat = txn->feature_incompat;
	for (uint32_t i = 0; i < txn->segment_count; i++)
		if (stele_catalog_is_tree(&txn->segments[i]))
			draft->feature_ro_compat |= STELE_FEATURE_POSIX;
	draft->image_size = txn->image_size;
	draft->catalog_offset = next->place.offset;
	draft->high_water = next->place.high_water;
	draft->time = time;
	return ret;
}

int stele_txn_commit_size(const struct stele_txn *txn, uint64_t *size)
{
	struct stele_txn_places places = {0};
	struct stele_catalog_counts counts;
	struct stele_extents own = {0};
	int ret = count_all(txn, &counts, &places);

	*size = 0;
	if (ret == 0)
		ret = collect_own(txn, &places, &own);
	if (ret == 0)
		*size = stele_catalog_size_bound(&own, &counts);
	stele_txn_places_release(&places);
	stele_extents_release(&own);
	return ret;
}

int stele_txn_next_place(const struct stele_txn *txn,
			  const struct stele_extents *used, uint64_t *offset,
			  uint64_t *size)
{
	int ret = stele_txn_commit_size(txn, size);

	*size *= CATALOGS_AHEAD;
	return ret < 0 ? ret :
			 stele_extents_find(used, *size, STELE_BLOCK_SIZE,
					    txn->image_size, offset);
}

/* Whether that fails is for the next commit to say. */
static void take_next_place(struct stele_txn *txn, const struct next *next)
{
	struct stele_device *dev = txn->image->dev;
	uint64_t offset = 0, size = 0;
	void *zeros;

	if (!stele_device_snaps(dev) ||
	    stele_extents_add(&txn->used, next->place.offset,
			      next->place.size) < 0 ||
	    stele_txn_next_place(txn, &txn->used, &offset, &size) < 0)
		return;
	zeros = stele_device_alloc(dev, size);
	if (!zeros)
		return;
	memset(zeros, 0, size);
	stele_device_write(dev, zeros, offset, size);
	free(zeros);
}

/* The commit itself: from here on there is no way back. */
static int commit(struct stele_txn *txn, struct next *next)
{
	int ret;

	txn->state = STELE_TXN_PUBLISHING;
	ret = stele_image_commit(txn->image, &next->draft);
	if (ret == 0) {
		stele_txn_keep_space(txn); /* whatever comes: it is in use */
		ret = stele_txn_show_tree(txn);
	}
	if (ret < 0) {
		txn->state = STELE_TXN_FAILED;
		return ret;
	}
	take_next_place(txn, next);
	txn->state = STELE_TXN_CLEAN;
	txn->stale = true;
	txn->takes = txn->renew = false;
	return stele_rbd_complete(txn);
}

int stele_txn_publish(struct stele_txn *txn, int64_t time)
{
	struct next next = {0};
	int ret;

	if (txn->state != STELE_TXN_CLEAN && txn->state != STELE_TXN_DIRTY)
		return -EINVAL;
	ret = stele_rbd_check_names(txn, NULL);
	if (ret == 0)
		ret = stele_txn_refresh(txn);
	if (ret == 0)
		ret = stele_txn_prepare_tree(txn);
	/* A clock that is slow must not make older what becomes unused now. */
	if (time < txn->image->sb.commit_time)
		time = txn->image->sb.commit_time;
	if (ret == 0)
		ret = make_draft(txn, time, &next);
	if (ret == 0)
		ret = stele_rbd_drop(txn, time);
	if (ret == 0)
		ret = commit(txn, &next);
	/* A claim asks when it is finished. */
	if (ret == 0 && !txn->borrowed)
		ret = stele_file_check_place(txn->image->dev);
	next_release(&next);
	if (ret < 0 && txn->state != STELE_TXN_FAILED)
		stele_txn_undo_tree(txn);
	txn->written_size = txn->image->dev->written;
	return ret;
}
