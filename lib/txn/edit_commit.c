/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edit_commit.c - from an edit to the next generation
 *
 * What is used by the next generation alone decides what its catalog calls free.
 * One that takes space leaves room for the catalog of a next one that gives some
 * back: a full image can still be deleted from.
 */
#include "lib/txn/edit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/run.h"

/* Those of a delete and of the first commit of a gc; then old ones are free. */
#define CATALOGS_AHEAD 2u

int stele_edit_write_deleted(struct stele_edit *edit,
			     struct stele_edit_ref *ref,
			     const uint64_t *numbers, uint64_t count)
{
	struct stele_catalog_ref written = {0};
	uint64_t offset;
	int ret = 0;

	if (count > STELE_SAMPLES_MAX)
		return -EINVAL;
	if (count)
		ret = stele_edit_allocate(edit, stele_image_deleted_size(count),
					  0, &offset);
	if (count && ret == 0)
		ret = stele_image_write_deleted(edit->image, offset, numbers,
						count, &written);
	if (ret < 0)
		return ret;
	ref->deleted_offset = written.deleted_offset;
	ref->deleted_count = written.deleted_count;
	ref->deleted_owner = written.deleted_owner;
	return 0;
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
	uint8_t *signatures;
	char *notes;
	/* Indices of the segments, by id. */
	uint32_t *by_id;
};

static void next_release(struct next *next)
{
	stele_extents_release(&next->own);
	stele_extents_release(&next->free);
	free(next->snapshots);
	free(next->refs);
	free(next->signatures);
	free(next->notes);
	free(next->by_id);
}

static void count_all(const struct stele_edit *edit,
		      struct stele_catalog_counts *counts)
{
	*counts = (struct stele_catalog_counts){
		.segments = edit->segment_count,
		.snapshots = edit->snapshot_count,
	};
	for (uint32_t i = 0; i < edit->snapshot_count; i++) {
		counts->refs += edit->snapshots[i].ref_count;
		counts->signatures += edit->snapshots[i].signature_count;
		counts->notes_size += edit->snapshots[i].note_size;
	}
}

/* Segments and deleted lists; a list that is shared only once. */
static int collect_own(const struct stele_edit *edit,
		       const struct stele_catalog_counts *counts,
		       struct stele_extents *own)
{
	struct stele_catalog_free *list;
	uint32_t n = 0;
	int ret;

	list = calloc((size_t)counts->segments + counts->refs + 1,
		      sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < edit->segment_count; i++)
		list[n++] = (struct stele_catalog_free){
			edit->segments[i].offset, edit->segments[i].size};
	for (uint32_t i = 0; i < edit->snapshot_count; i++) {
		const struct stele_edit_snapshot *s = &edit->snapshots[i];

		for (uint32_t j = 0; j < s->ref_count; j++)
			if (s->refs[j].deleted_count)
				list[n++] = (struct stele_catalog_free){
					s->refs[j].deleted_offset,
					stele_image_deleted_size(
						s->refs[j].deleted_count)};
	}
	ret = stele_extents_add_list(own, list, n);
	free(list);
	return ret;
}

static int compare_ids(const void *a, const void *b, void *user)
{
	const struct stele_catalog_segment *segments = user;
	uint64_t x = segments[*(const uint32_t *)a].id;
	uint64_t y = segments[*(const uint32_t *)b].id;

	return (x > y) - (x < y);
}

static int sort_ids(const struct stele_edit *edit, struct next *next)
{
	next->by_id = calloc((size_t)edit->segment_count + 1,
			     sizeof(*next->by_id));
	if (!next->by_id)
		return -ENOMEM;
	for (uint32_t i = 0; i < edit->segment_count; i++)
		next->by_id[i] = i;
	qsort_r(next->by_id, edit->segment_count, sizeof(*next->by_id),
		compare_ids, edit->segments);
	return 0;
}

/* False: there is none of this id. */
static bool index_of(const struct stele_edit *edit, const struct next *next,
		     uint64_t id, uint32_t *index)
{
	uint32_t low = 0, high = edit->segment_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (edit->segments[next->by_id[middle]].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == edit->segment_count ||
	    edit->segments[next->by_id[low]].id != id)
		return false;
	*index = next->by_id[low];
	return true;
}

static int fill_refs(struct stele_edit *edit, struct next *next,
		     const struct stele_edit_snapshot *s, uint32_t at,
		     bool *used)
{
	for (uint32_t i = 0; i < s->ref_count; i++) {
		struct stele_catalog_ref *ref = &next->refs[at + i];

		*ref = (struct stele_catalog_ref){
			.deleted_offset = s->refs[i].deleted_offset,
			.deleted_count = s->refs[i].deleted_count,
			.deleted_owner = s->refs[i].deleted_owner,
		};
		if (!index_of(edit, next, s->refs[i].segment_id,
			      &ref->segment))
			return -EINVAL;
		used[ref->segment] = true;
		if (ref->deleted_count)
			edit->feature_incompat |= STELE_FEATURE_DELETED;
	}
	return 0;
}

static int fill_snapshots(struct stele_edit *edit, struct next *next,
			  bool *used)
{
	struct stele_catalog_snapshot at = {0};
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < edit->snapshot_count; i++) {
		const struct stele_edit_snapshot *s = &edit->snapshots[i];

		at.id = s->id;
		at.parent = s->parent;
		at.time = s->time;
		at.source_time = s->source_time;
		at.sample_count = s->sample_count;
		at.payload_size = s->payload_size;
		memcpy(at.name, s->name, sizeof(at.name));
		memcpy(at.digest, s->digest, sizeof(at.digest));
		at.ref_count = s->ref_count;
		at.note_size = s->note_size;
		at.signature_count = s->signature_count;
		next->snapshots[i] = at;
		if (s->note_size)
			memcpy(next->notes + at.note_offset, s->note,
			       s->note_size);
		if (s->signature_count)
			memcpy(next->signatures + (size_t)at.first_signature *
							  STELE_SIGNATURE_SIZE,
			       s->signatures,
			       (size_t)s->signature_count *
				       STELE_SIGNATURE_SIZE);
		ret = fill_refs(edit, next, s, at.first_ref, used);
		at.first_ref += s->ref_count;
		at.note_offset += s->note_size;
		at.first_signature += s->signature_count;
	}
	return ret;
}

/* In use since 0; out of use since the first commit that found it so. */
static int fill_tables(struct stele_edit *edit, struct next *next, int64_t time)
{
	const struct stele_catalog_counts *counts = &next->draft.counts;
	bool *used = calloc((size_t)edit->segment_count + 1, sizeof(*used));
	int ret;

	next->snapshots = calloc((size_t)counts->snapshots + 1,
				 sizeof(*next->snapshots));
	next->refs = calloc((size_t)counts->refs + 1, sizeof(*next->refs));
	next->notes = malloc((size_t)counts->notes_size + 1);
	next->signatures = malloc((size_t)counts->signatures *
					  STELE_SIGNATURE_SIZE + 1);
	ret = used && next->snapshots && next->refs && next->notes &&
			      next->signatures ?
		      sort_ids(edit, next) :
		      -ENOMEM;
	if (ret == 0)
		ret = fill_snapshots(edit, next, used);
	for (uint32_t i = 0; ret == 0 && i < edit->segment_count; i++) {
		int64_t *since = &edit->segments[i].unused_since;

		if (used[i])
			*since = 0;
		else if (*since == 0)
			*since = time > 0 ? time : 1;
	}
	free(used);
	return ret;
}

static int look_for_place(struct stele_edit *edit, void *user)
{
	struct next *next = user;

	return stele_catalog_find_place(&next->own, &edit->used,
					&next->draft.counts, edit->image_size,
					&next->place);
}

/*
 * What only older superblocks lead to is free when they are older no more. That
 * leaves a single generation, so it is done where nothing else helps.
 */
static int give_up_older(struct stele_edit *edit, const struct next *next)
{
	int ret = stele_image_level(edit->image);

	if (ret == 0) {
		edit->stale = true;
		ret = stele_edit_refresh(edit);
	}
	for (uint32_t i = 0; ret == 0 && i < next->own.count; i++)
		ret = stele_extents_add(&edit->used, next->own.list[i].offset,
					next->own.list[i].size);
	return ret;
}

static int find_place(struct stele_edit *edit, struct next *next)
{
	int ret = stele_edit_search(edit, look_for_place, next);

	if (ret == -ENOSPC && !edit->image->dev->resizable) {
		ret = give_up_older(edit, next);
		if (ret == 0)
			ret = look_for_place(edit, next);
	}
	if (ret == -ENOSPC) {
		ret = stele_edit_make_larger(edit, next->most,
					     STELE_BLOCK_SIZE);
		if (ret == 0)
			ret = look_for_place(edit, next);
	}
	if (ret == 0)
		ret = stele_edit_reserve(edit, next->place.offset,
					 next->place.size);
	if (ret == -EOVERFLOW)
		stele_log_error(&edit->image->log,
				"the catalog would be too large, or the free "
				"space in too many pieces: delete some "
				"snapshots, or compact them");
	return ret;
}

/*
 * A later commit that only gives back has a catalog of next->most bytes at most:
 * what it drops is larger than an entry of the free extents that come of it.
 */
static int leave_room(struct stele_edit *edit, const struct next *next)
{
	uint64_t offset;

	if (!edit->takes || edit->image->dev->resizable ||
	    stele_extents_find(&next->own, next->most, STELE_BLOCK_SIZE,
			       edit->image_size, &offset) == 0)
		return 0;
	return stele_edit_log_no_space(edit, next->most);
}

static int fill_free(struct stele_edit *edit, struct next *next)
{
	int ret = stele_extents_add(&next->own, next->place.offset,
				    next->place.size);

	if (ret == 0)
		ret = leave_room(edit, next);
	if (ret == 0)
		ret = stele_extents_gaps(&next->own, next->place.high_water,
					 &next->free);
	return ret;
}

static int make_draft(struct stele_edit *edit, int64_t time, struct next *next)
{
	struct stele_catalog_draft *draft = &next->draft;
	int ret;

	count_all(edit, &draft->counts);
	ret = collect_own(edit, &draft->counts, &next->own);
	if (ret == 0)
		ret = fill_tables(edit, next, time);
	next->most = stele_catalog_size_bound(&next->own, &draft->counts);
	if (ret == 0)
		ret = find_place(edit, next);
	if (ret == 0)
		ret = fill_free(edit, next);
	draft->segments = edit->segments;
	draft->snapshots = next->snapshots;
	draft->refs = next->refs;
	draft->free = next->free.list;
	draft->signatures = next->signatures;
	draft->notes = next->notes;
	draft->counts.free = next->free.count;
	draft->next_snapshot_id = edit->next_snapshot_id;
	draft->feature_incompat = edit->feature_incompat;
	draft->image_size = edit->image_size;
	draft->catalog_offset = next->place.offset;
	draft->high_water = next->place.high_water;
	draft->time = time;
	return ret;
}

int stele_edit_commit_size(const struct stele_edit *edit, uint64_t *size)
{
	struct stele_catalog_counts counts;
	struct stele_extents own = {0};
	int ret;

	*size = 0;
	count_all(edit, &counts);
	ret = collect_own(edit, &counts, &own);
	if (ret == 0)
		*size = stele_catalog_size_bound(&own, &counts);
	stele_extents_release(&own);
	return ret;
}

int stele_edit_next_place(const struct stele_edit *edit,
			  const struct stele_extents *used, uint64_t *offset,
			  uint64_t *size)
{
	int ret = stele_edit_commit_size(edit, size);

	*size *= CATALOGS_AHEAD;
	return ret < 0 ? ret :
			 stele_extents_find(used, *size, STELE_BLOCK_SIZE,
					    edit->image_size, offset);
}

/* Whether that fails is for the next commit to say. */
static void take_next_place(struct stele_edit *edit, const struct next *next)
{
	struct stele_device *dev = edit->image->dev;
	uint64_t offset = 0, size = 0;
	void *zeros;

	if (!stele_device_shots(dev) ||
	    stele_extents_add(&edit->used, next->place.offset,
			      next->place.size) < 0 ||
	    stele_edit_next_place(edit, &edit->used, &offset, &size) < 0)
		return;
	zeros = stele_device_alloc(dev, size);
	if (!zeros)
		return;
	memset(zeros, 0, size);
	stele_device_write(dev, zeros, offset, size);
	free(zeros);
}

int stele_edit_commit(struct stele_edit *edit, int64_t time)
{
	struct next next = {0};
	int ret = stele_edit_refresh(edit);

	/* A clock that is slow must not make older what becomes unused now. */
	if (time < edit->image->sb.commit_time)
		time = edit->image->sb.commit_time;
	if (ret == 0)
		ret = make_draft(edit, time, &next);
	if (ret == 0)
		ret = stele_image_commit(edit->image, &next.draft);
	if (ret == 0)
		take_next_place(edit, &next);
	next_release(&next);
	if (ret == 0) {
		edit->stale = true;
		edit->takes = false;
		stele_edit_keep_space(edit);
	}
	return ret;
}
