/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addition.c - segments, deletions, digest, an entry for the catalog
 */
#include "lib/txn/addition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/deleted.h"

static int make_room(struct stele_addition *a, uint32_t capacity)
{
	struct stele_segment *segments;
	struct stele_addition_part *parts;

	if (capacity <= a->capacity)
		return 0;
	segments = realloc(a->snapshot.segments, capacity * sizeof(*segments));
	if (!segments)
		return -ENOMEM;
	a->snapshot.segments = segments;
	parts = realloc(a->parts, capacity * sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	a->parts = parts;
	a->capacity = capacity;
	return 0;
}

static void count(struct stele_addition *a, const struct stele_segment *segment,
		  const struct stele_txn_ref *ref)
{
	const uint32_t at = a->snapshot.segment_count++;

	a->parts[at] = (struct stele_addition_part){
		.ref = *ref,
		.base_first = a->snapshot.info.sample_count,
	};
	a->snapshot.segments[at] = *segment;
	a->snapshot.segments[at].first_id = a->snapshot.sample_count;
	a->snapshot.sample_count += segment->live_count;
}

static int load_segments(struct stele_addition *a,
			 const struct stele_txn_snapshot *base)
{
	const uint32_t wanted = base->info.ref_count;
	struct stele_segment_at *at = calloc((size_t)wanted + 1, sizeof(*at));
	struct stele_segment *segments =
		calloc((size_t)wanted + 1, sizeof(*segments));
	uint32_t loaded = 0;
	int ret = at && segments ? make_room(a, wanted + 1) : -ENOMEM;

	for (uint32_t i = 0; ret == 0 && i < wanted; i++) {
		at[i].ref = base->refs[i].at;
		at[i].where = *stele_txn_segment(a->txn,
						 base->refs[i].segment_id);
	}
	if (ret == 0)
		ret = stele_segments_load(a->txn->image, at, wanted, segments,
					  &loaded);
	for (uint32_t i = 0; i < loaded; i++) {
		count(a, &segments[i], &base->refs[i]);
		a->parts[i].base_first = a->snapshot.segments[i].first_id;
		a->parts[i].base_count = segments[i].live_count;
	}
	free(segments);
	free(at);
	return ret;
}

static int load_base(struct stele_addition *a, const struct stele_txn_snapshot *base)
{
	int ret;

	a->parent = base->info.id;
	a->payload_size = base->info.payload_size;
	a->source_time = base->info.source_time;
	a->snapshot.info = base->info;
	ret = load_segments(a, base);
	if (ret == 0)
		ret = stele_snapshot_check(a->txn->image, &a->snapshot);
	return ret < 0 ? ret : stele_snapshot_check_names(a->txn->image, &a->snapshot);
}

int stele_addition_begin(struct stele_txn *txn,
			 const struct stele_txn_snapshot *base)
{
	struct stele_addition *a = calloc(1, sizeof(*a));
	int ret;

	if (!a)
		return -ENOMEM;
	a->txn = txn;
	ret = base ? load_base(a, base) : 0;
	if (ret < 0) {
		stele_addition_discard(a);
		return ret;
	}
	stele_addition_free(txn);
	txn->work = a;
	return 0;
}

void stele_addition_discard(struct stele_addition *a)
{
	if (!a)
		return;
	for (uint32_t i = 0; i < a->snapshot.segment_count; i++)
		stele_deleted_release(&a->parts[i].base_deleted);
	stele_snapshot_release(&a->snapshot);
	free(a->parts);
	free(a);
}

struct stele_addition *stele_addition_take(struct stele_txn *txn)
{
	struct stele_addition *a = txn->work;

	txn->work = NULL;
	return a;
}

void stele_addition_free(struct stele_txn *txn)
{
	stele_addition_discard(stele_addition_take(txn));
}

int stele_addition_append(struct stele_addition *a,
			  const struct stele_descriptor *descriptor)
{
	const struct stele_segment segment = {
		.descriptor = *descriptor,
		.live_count = descriptor->sample_count,
	};
	const struct stele_txn_ref ref = {.segment_id = descriptor->id};
	int ret = make_room(a, a->snapshot.segment_count + 1);

	if (ret < 0)
		return ret;
	count(a, &segment, &ref);
	a->payload_size += descriptor->payload_size;
	return 0;
}

bool stele_addition_changed(const struct stele_addition *a)
{
	bool changed = !a->parent || a->snapshot.segment_count != a->snapshot.info.ref_count;

	for (uint32_t i = 0; i < a->snapshot.segment_count; i++)
		changed |= a->parts[i].changed;
	return changed;
}

bool stele_addition_refers(const struct stele_addition *a, uint64_t segment_id)
{
	for (uint32_t i = 0; a && i < a->snapshot.segment_count; i++)
		if (a->parts[i].ref.segment_id == segment_id)
			return true;
	return false;
}

int stele_addition_load(struct stele_addition *a)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < a->snapshot.segment_count; i++) {
		struct stele_segment *s = &a->snapshot.segments[i], loaded;

		if (s->blocks)
			continue;
		ret = stele_segment_load(
			a->txn->image,
			stele_txn_segment(a->txn, s->descriptor.id), &loaded);
		if (ret < 0)
			break;
		loaded.deleted = s->deleted;
		loaded.first_id = s->first_id;
		loaded.live_count = s->live_count;
		s->deleted = (struct stele_deleted){0};
		stele_segment_release(s);
		*s = loaded;
	}
	return ret;
}

int stele_addition_locate(const struct stele_addition *a, uint64_t id,
			  uint32_t *segment, uint64_t *number)
{
	uint32_t low = 0, high = a->snapshot.segment_count;
	const struct stele_addition_part *part;
	const struct stele_deleted *deleted;

	if (id >= a->snapshot.info.sample_count)
		return -ERANGE;
	/* The last one that begins at or below id; others may have been left out. */
	while (high - low > 1) {
		const uint32_t middle = low + (high - low) / 2;

		if (a->parts[middle].base_first <= id)
			low = middle;
		else
			high = middle;
	}
	part = &a->parts[low];
	if (!high || id < part->base_first || id - part->base_first >= part->base_count)
		return -ENOENT;
	deleted = &a->snapshot.segments[low].deleted;
	*segment = low;
	*number = stele_deleted_live(part->replaced ? &part->base_deleted : deleted,
				     id - part->base_first);
	return part->replaced && stele_deleted_has(deleted, *number, NULL) ? -ENOENT : 0;
}

/* Ids of the base go on by what was deleted there. */
static void replace_deleted(struct stele_addition *a, uint32_t index,
			    const struct stele_deleted *deleted)
{
	struct stele_segment *segment = &a->snapshot.segments[index];
	struct stele_addition_part *part = &a->parts[index];

	if (part->replaced || !part->base_count)
		stele_deleted_release(&segment->deleted);
	else
		part->base_deleted = segment->deleted;
	part->replaced = true;
	part->changed = true;
	segment->deleted = *deleted;
	segment->deleted_digest = NULL;
}

int stele_addition_delete(struct stele_addition *a, uint32_t index,
			  const uint64_t *numbers, uint64_t lost,
			  uint64_t payload_size)
{
	struct stele_segment *segment = &a->snapshot.segments[index];
	struct stele_snapshot payload = {.info = a->snapshot.info};
	struct stele_deleted more, all;
	int ret;

	if (!lost)
		return 0;
	payload.info.payload_size = a->payload_size;
	ret = stele_snapshot_payload_without(a->txn->image, &payload,
					     payload_size, &a->payload_size);
	if (ret < 0)
		return ret;
	ret = stele_deleted_make(numbers, lost, &more);
	if (ret == 0)
		ret = stele_deleted_combine(&segment->deleted, &more,
					    STELE_DELETED_OR, &all);
	stele_deleted_release(&more);
	if (ret < 0)
		return ret;
	replace_deleted(a, index, &all);
	segment->live_count -= lost;
	a->snapshot.sample_count -= lost;
	return 0;
}

/* ---- the end --------------------------------------------------------------- */

static bool is_left_out(const struct stele_addition *a, uint32_t index)
{
	return !a->expected && a->parts[index].changed &&
	       !a->snapshot.segments[index].live_count;
}

/* One that is of this transaction alone is forgotten at once. */
static void leave_out(struct stele_addition *a, uint32_t index)
{
	const uint32_t after = --a->snapshot.segment_count - index;
	const uint64_t id = a->parts[index].ref.segment_id;

	stele_deleted_release(&a->parts[index].base_deleted);
	stele_segment_release(&a->snapshot.segments[index]);
	memmove(&a->snapshot.segments[index], &a->snapshot.segments[index + 1],
		after * sizeof(*a->snapshot.segments));
	memmove(&a->parts[index], &a->parts[index + 1],
		after * sizeof(*a->parts));
	if (!stele_txn_is_committed(a->txn, id))
		stele_txn_drop_segment(a->txn, id);
}

/* Deleted or not, it keeps its lists; after it a commit may have made them anybody's. */
static bool is_base_there(const struct stele_addition *a)
{
	for (uint32_t i = 0; i < a->txn->snapshot_count + a->txn->deleted_count; i++)
		if (a->txn->snapshots[i].info.id == a->parent)
			return true;
	return false;
}

static int write_lists(struct stele_addition *a, struct stele_txn_ref *refs)
{
	const bool kept = is_base_there(a);
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < a->snapshot.segment_count; i++) {
		const struct stele_segment *s = &a->snapshot.segments[i];

		if (!kept)
			a->parts[i].ref.at = (struct stele_catalog_ref){0};
		if (a->parts[i].changed || (!kept && s->deleted.count))
			ret = stele_txn_write_deleted(a->txn, &a->parts[i].ref,
						      &s->deleted);
		a->parts[i].changed = false;
		refs[i] = a->parts[i].ref;
	}
	return ret;
}

static int compute_digest(struct stele_addition *a)
{
	int ret;

	memset(a->snapshot.digest, 0, STELE_DIGEST_SIZE);
	ret = stele_snapshot_compute_digest(&a->snapshot);
	if (ret < 0 || !a->expected ||
	    !memcmp(a->snapshot.digest, a->expected, STELE_DIGEST_SIZE))
		return ret;
	stele_log_error(&a->txn->image->log,
			"digest mismatch: the snapshot is not what it is a copy of");
	return -EBADMSG;
}

int stele_addition_end(struct stele_addition *a, const char *name)
{
	struct stele_txn_snapshot added = {
		.info = {
			.parent = a->parent,
			.time = a->time,
			.source_time = a->source_time,
			.sample_count = a->snapshot.sample_count,
			.payload_size = a->payload_size,
			.note_size = a->note_size,
		},
		.note = (char *)(uintptr_t)a->note, /* is copied, as the refs */
	};
	int ret;

	for (uint32_t i = a->snapshot.segment_count; i-- > 0;)
		if (is_left_out(a, i) && a->snapshot.segment_count > 1)
			leave_out(a, i);
	added.info.ref_count = a->snapshot.segment_count;
	added.refs = calloc((size_t)added.info.ref_count + 1,
			    sizeof(*added.refs));
	ret = added.refs ? compute_digest(a) : -ENOMEM;
	if (ret == 0)
		ret = write_lists(a, added.refs);
	strncpy(added.info.name, name, sizeof(added.info.name) - 1);
	memcpy(added.info.digest, a->snapshot.digest, STELE_DIGEST_SIZE);
	if (ret == 0)
		ret = stele_txn_add_snapshot(a->txn, &added);
	free(added.refs);
	return ret;
}
