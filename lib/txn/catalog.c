/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.c - the catalog in memory: load, segments, snapshots
 *
 * References name segments by id, because places in the table move when
 * segments come and go. What the arrays hold was checked by the catalog's decoder or by
 * the function that added it.
 */
#include "lib/txn/txn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/posix/shown.h"
#include "lib/txn/addition.h"
#include "lib/txn/rbd.h"

static void snapshot_release(struct stele_txn_snapshot *snapshot)
{
	free(snapshot->refs);
	free(snapshot->note);
	memset(snapshot, 0, sizeof(*snapshot));
}

/* ---- load ------------------------------------------------------------------ */

static int load_snapshot(struct stele_txn *txn, uint32_t index)
{
	const struct stele_catalog *catalog = &txn->image->catalog;
	struct stele_txn_snapshot *s = &txn->snapshots[index];

	memset(s, 0, sizeof(*s));
	stele_catalog_snapshot(catalog, index, &s->info);
	s->refs = calloc((size_t)s->info.ref_count + 1, sizeof(*s->refs));
	s->note = malloc((size_t)s->info.note_size + 1);
	if (index < catalog->counts.snapshots)
		txn->snapshot_count++;
	else
		txn->deleted_count++;
	if (!s->refs || !s->note)
		return -ENOMEM;
	stele_catalog_note(catalog, index, s->note);
	for (uint32_t i = 0; i < s->info.ref_count; i++) {
		stele_catalog_ref(catalog, s->info.first_ref + i,
				  &s->refs[i].at);
		s->refs[i].segment_id =
			txn->segments[s->refs[i].at.segment].id;
	}
	return 0;
}

int stele_txn_load_catalog(struct stele_txn *txn)
{
	const struct stele_catalog *catalog = &txn->image->catalog;
	const struct stele_catalog_counts *counts = &catalog->counts;
	int ret = 0;

	txn->next_snapshot_id = catalog->next_snapshot_id ?
					catalog->next_snapshot_id :
					1;
	txn->segments = calloc((size_t)counts->segments + 1,
			       sizeof(*txn->segments));
	txn->snapshots = calloc((size_t)counts->snapshots + counts->deleted + 1,
				sizeof(*txn->snapshots));
	if (!txn->segments || !txn->snapshots)
		return -ENOMEM;
	for (uint32_t i = 0; i < counts->segments; i++)
		stele_catalog_segment(catalog, i, &txn->segments[i]);
	txn->segment_count = counts->segments;
	ret = stele_txn_room_for_parts(txn);
	if (ret == 0)
		stele_txn_load_parts(txn);
	txn->posix = txn->part_count;
	txn->renew = false;
	for (uint32_t i = 0; ret == 0 && i < counts->snapshots + counts->deleted; i++)
		ret = load_snapshot(txn, i);
	return ret;
}

void stele_txn_release_catalog(struct stele_txn *txn)
{
	for (uint32_t i = 0; i < txn->snapshot_count + txn->deleted_count; i++)
		snapshot_release(&txn->snapshots[i]);
	free(txn->snapshots);
	free(txn->segments);
	free(txn->parts);
	txn->snapshots = NULL;
	txn->segments = NULL;
	txn->parts = NULL;
	txn->part_count = 0;
	txn->snapshot_count = txn->deleted_count = txn->segment_count = 0;
}

/* ---- segments -------------------------------------------------------------- */

int stele_txn_segment_id(const struct stele_txn *txn, uint64_t *id)
{
	do {
		if (getrandom(id, sizeof(*id), 0) != sizeof(*id))
			return errno ? -errno : -EIO;
	} while (*id == 0 || *id == STELE_OWNER_ANY ||
		 stele_txn_segment(txn, *id));
	return 0;
}

const struct stele_catalog_segment *
stele_txn_segment(const struct stele_txn *txn, uint64_t id)
{
	for (uint32_t i = 0; i < txn->segment_count; i++)
		if (txn->segments[i].id == id)
			return &txn->segments[i];
	return NULL;
}

bool stele_txn_is_committed(const struct stele_txn *txn, uint64_t segment_id)
{
	const struct stele_catalog *catalog = &txn->image->catalog;
	struct stele_catalog_segment segment;

	for (uint32_t i = 0; i < catalog->counts.segments; i++) {
		stele_catalog_segment(catalog, i, &segment);
		if (segment.id == segment_id)
			return true;
	}
	return false;
}

static int compare_ids(const void *a, const void *b, void *user)
{
	const struct stele_catalog_segment *segments = user;
	uint64_t x = segments[*(const uint32_t *)a].id;
	uint64_t y = segments[*(const uint32_t *)b].id;

	return (x > y) - (x < y);
}

int stele_txn_sort_ids(const struct stele_txn *txn, uint32_t **by_id)
{
	uint32_t *list = calloc((size_t)txn->segment_count + 1, sizeof(*list));

	*by_id = list;
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < txn->segment_count; i++)
		list[i] = i;
	qsort_r(list, txn->segment_count, sizeof(*list), compare_ids,
		txn->segments);
	return 0;
}

bool stele_txn_index_of(const struct stele_txn *txn, const uint32_t *by_id,
			uint64_t id, uint32_t *index)
{
	uint32_t low = 0, high = txn->segment_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (txn->segments[by_id[middle]].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == txn->segment_count || txn->segments[by_id[low]].id != id)
		return false;
	*index = by_id[low];
	return true;
}

int stele_txn_find_used(const struct stele_txn *txn, bool **used)
{
	uint32_t *by_id, index;
	int ret = stele_txn_sort_ids(txn, &by_id);

	*used = calloc((size_t)txn->segment_count + 1, sizeof(**used));
	if (!*used)
		ret = -ENOMEM;
	for (uint32_t i = 0; ret == 0 && i < txn->snapshot_count; i++) {
		const struct stele_txn_snapshot *s = &txn->snapshots[i];

		for (uint32_t j = 0; j < s->info.ref_count; j++)
			if (stele_txn_index_of(txn, by_id,
					       s->refs[j].segment_id, &index))
				(*used)[index] = true;
	}
	for (uint32_t i = 0; ret == 0 && i < txn->part_count; i++)
		if (stele_txn_index_of(txn, by_id, txn->parts[i], &index))
			(*used)[index] = true;
	free(by_id);
	return ret;
}

static bool refers_to(const struct stele_txn_snapshot *snapshot, uint64_t segment_id)
{
	for (uint32_t i = 0; i < snapshot->info.ref_count; i++)
		if (snapshot->refs[i].segment_id == segment_id)
			return true;
	return false;
}

bool stele_txn_in_use(const struct stele_txn *txn, uint64_t segment_id)
{
	if (stele_txn_has_part(txn, segment_id))
		return true;
	for (uint32_t i = 0; i < txn->snapshot_count; i++)
		if (refers_to(&txn->snapshots[i], segment_id))
			return true;
	return false;
}

bool stele_txn_was_used(const struct stele_txn *txn, uint64_t segment_id)
{
	for (uint32_t i = 0; i < txn->snapshot_count + txn->deleted_count; i++)
		if (refers_to(&txn->snapshots[i], segment_id))
			return true;
	return false;
}

static int log_too_many(const struct stele_txn *txn, const char *what,
			uint32_t most)
{
	stele_log_error(&txn->image->log, "an image has at most %u %s%s", most, what,
			txn->deleted_count ? " (those of deleted snapshots count until gc)" :
					     "");
	return -EOVERFLOW;
}

int stele_txn_add_segment(struct stele_txn *txn,
			   const struct stele_catalog_segment *segment)
{
	struct stele_catalog_segment *all;
	uint32_t at = txn->segment_count;

	if (stele_txn_segment(txn, segment->id))
		return -EEXIST;
	if (txn->segment_count == STELE_SEGMENTS_MAX)
		return log_too_many(txn, txn->posix ? "segments and parts of trees of files" :
						      "segments", STELE_SEGMENTS_MAX);
	all = realloc(txn->segments,
		      ((size_t)txn->segment_count + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	while (at > 0 && all[at - 1].offset > segment->offset)
		at--;
	memmove(all + at + 1, all + at,
		(txn->segment_count - at) * sizeof(*all));
	all[at] = *segment;
	txn->segments = all;
	txn->segment_count++;
	txn->image->feature_pending = txn->feature_incompat;
	txn->state = STELE_TXN_DIRTY;
	return 0;
}

int stele_txn_drop_segment(struct stele_txn *txn, uint64_t id)
{
	const struct stele_catalog_segment *segment =
		stele_txn_segment(txn, id);
	uint32_t at;

	if (!segment)
		return -ENOENT;
	if (stele_txn_in_use(txn, id) || stele_addition_refers(txn->work, id))
		return -EBUSY;
	for (uint32_t i = txn->snapshot_count + txn->deleted_count; i-- > txn->snapshot_count;)
		if (refers_to(&txn->snapshots[i], id))
			stele_txn_forget_snapshot(txn, i);
	at = (uint32_t)(segment - txn->segments);
	txn->state = STELE_TXN_DIRTY;
	txn->segment_count--;
	memmove(txn->segments + at, txn->segments + at + 1,
		(txn->segment_count - at) * sizeof(*txn->segments));
	return 0;
}

/* ---- parts of the tree ------------------------------------------------------ */

bool stele_txn_has_part(const struct stele_txn *txn, uint64_t segment_id)
{
	for (uint32_t i = 0; i < txn->part_count; i++)
		if (txn->parts[i] == segment_id)
			return true;
	return false;
}

int stele_txn_room_for_parts(struct stele_txn *txn)
{
	/* One of each segment and snapshot, and the root. */
	const size_t count = (size_t)txn->image->catalog.counts.segments + txn->segment_count +
			     txn->snapshot_count + 1;
	uint64_t *parts = realloc(txn->parts, count * sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	txn->parts = parts;
	return 0;
}

void stele_txn_add_part(struct stele_txn *txn, uint64_t segment_id)
{
	txn->parts[txn->part_count++] = segment_id;
}

void stele_txn_load_parts(struct stele_txn *txn)
{
	const struct stele_catalog *catalog = &txn->image->catalog;
	struct stele_catalog_segment segment;

	txn->part_count = 0;
	for (uint32_t i = 0; i < catalog->counts.segments; i++) {
		stele_catalog_segment(catalog, i, &segment);
		if (stele_posix_is_part(&segment))
			stele_txn_add_part(txn, segment.id);
	}
}

/* ---- snapshots ------------------------------------------------------------- */

struct stele_txn_snapshot *stele_txn_find(struct stele_txn *txn,
						const char *name)
{
	if (!name)
		return txn->snapshot_count ?
			       &txn->snapshots[txn->snapshot_count - 1] :
			       NULL;
	for (uint32_t i = 0; i < txn->snapshot_count; i++)
		if (!strcmp(txn->snapshots[i].info.name, name))
			return &txn->snapshots[i];
	return NULL;
}

static const char *name_rule(const char *name)
{
	if (!strncmp(name, STELE_NAME_RESERVED, strlen(STELE_NAME_RESERVED)))
		return "names that begin with '" STELE_NAME_RESERVED
		       "' are reserved for tombstoned RBD snapshots";
	if (stele_name_ok(name, strlen(name)))
		return NULL;
	if (strchr(name, '@'))
		return "it is the name alone, without TARGET@";
	return "must be " STELE_NAME_RULE;
}

int stele_txn_check_name(const char *name, const struct stele_log *log)
{
	const char *rule = name_rule(name);

	if (!rule)
		return 0;
	stele_log_error(log, "invalid snapshot name '%s': %s", name, rule);
	return -EINVAL;
}

int stele_txn_check_new_name(struct stele_txn *txn, const char *name)
{
	const struct stele_log *log = &txn->image->log;
	int ret = stele_txn_check_name(name, log);

	if (ret < 0)
		return ret;
	if (stele_txn_find(txn, name)) {
		stele_log_error(log, "there is a snapshot '%s' already", name);
		return -EEXIST;
	}
	return stele_rbd_check_names(txn, name);
}

static bool refs_ok(const struct stele_txn *txn,
		    const struct stele_txn_snapshot *snapshot)
{
	const struct stele_txn_ref *refs = snapshot->refs;

	for (uint32_t i = 0; i < snapshot->info.ref_count; i++) {
		if (!stele_txn_segment(txn, refs[i].segment_id) ||
		    !refs[i].at.lists[0].offset != !refs[i].at.deleted_count)
			return false;
		for (uint32_t j = 0; j < i; j++)
			if (refs[j].segment_id == refs[i].segment_id)
				return false;
	}
	return true;
}

static int check_room(const struct stele_txn *txn,
		      const struct stele_txn_snapshot *more)
{
	uint64_t refs = more->info.ref_count, notes = more->info.note_size;

	for (uint32_t i = 0; i < txn->snapshot_count + txn->deleted_count; i++) {
		refs += txn->snapshots[i].info.ref_count;
		notes += txn->snapshots[i].info.note_size;
	}
	if (txn->snapshot_count + txn->deleted_count == STELE_SNAPSHOTS_MAX ||
	    txn->next_snapshot_id == UINT64_MAX)
		return log_too_many(txn, "snapshots", STELE_SNAPSHOTS_MAX);
	if (refs > STELE_REFS_MAX)
		return log_too_many(txn, "references to segments",
				    STELE_REFS_MAX);
	if (notes > STELE_NOTES_SIZE_MAX)
		return log_too_many(txn, "bytes of notes",
				    STELE_NOTES_SIZE_MAX);
	return 0;
}

/* One byte more, so that nothing is asked of malloc in vain. */
static void *copy_of(const void *data, size_t size)
{
	void *copy = malloc(size + 1);

	if (copy && size)
		memcpy(copy, data, size);
	return copy;
}

/* Copied to that place; whoever calls counts it. */
static int insert(struct stele_txn *txn, uint32_t at,
		  const struct stele_txn_snapshot *snapshot)
{
	const size_t count = (size_t)txn->snapshot_count + txn->deleted_count;
	struct stele_txn_snapshot copy = *snapshot, *all;

	all = realloc(txn->snapshots, (count + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	txn->snapshots = all;
	copy.refs = copy_of(snapshot->refs,
			    snapshot->info.ref_count * sizeof(*copy.refs));
	copy.note = copy_of(snapshot->note, snapshot->info.note_size);
	if (!copy.refs || !copy.note) {
		snapshot_release(&copy);
		return -ENOMEM;
	}
	memmove(&all[at + 1], &all[at], (count - at) * sizeof(*all));
	all[at] = copy;
	return 0;
}

int stele_txn_add_snapshot(struct stele_txn *txn,
			   const struct stele_txn_snapshot *snapshot)
{
	char name[STELE_SNAPSHOT_NAME_SIZE + 1]; /* the field need not have an end */
	int ret;

	snprintf(name, sizeof(name), "%.*s", (int)STELE_SNAPSHOT_NAME_SIZE,
		 snapshot->info.name);
	ret = stele_txn_check_new_name(txn, name);
	if (ret < 0)
		return ret;
	if (snapshot->info.parent >= txn->next_snapshot_id ||
	    !refs_ok(txn, snapshot))
		return -EINVAL;
	ret = check_room(txn, snapshot);
	if (ret == 0)
		ret = insert(txn, txn->snapshot_count, snapshot);
	if (ret < 0)
		return ret;
	txn->snapshots[txn->snapshot_count++].info.id = txn->next_snapshot_id++;
	txn->takes = true;
	txn->state = STELE_TXN_DIRTY;
	return 0;
}

int stele_txn_copy_catalog(const struct stele_txn *from, struct stele_txn *to)
{
	const size_t count = from->segment_count;
	int ret = 0;

	stele_txn_release_catalog(to);
	to->segments = calloc(count + 1, sizeof(*to->segments));
	if (!to->segments)
		return -ENOMEM;
	memcpy(to->segments, from->segments, count * sizeof(*to->segments));
	to->segment_count = from->segment_count;
	ret = stele_txn_room_for_parts(to);
	for (uint32_t i = 0; ret == 0 && i < from->part_count; i++)
		stele_txn_add_part(to, from->parts[i]);
	for (uint32_t i = 0; ret == 0 && i < from->snapshot_count + from->deleted_count; i++) {
		ret = insert(to, i, &from->snapshots[i]);
		if (ret == 0 && i < from->snapshot_count)
			to->snapshot_count++;
		else if (ret == 0)
			to->deleted_count++;
	}
	to->next_snapshot_id = from->next_snapshot_id;
	return ret;
}

/* One that was checked. */
static void set_name(struct stele_catalog_snapshot *info, const char *name)
{
	memset(info->name, 0, sizeof(info->name));
	strcpy(info->name, name);
}

int stele_txn_rename_snapshot(struct stele_txn *txn, const char *name,
			      const char *to)
{
	struct stele_txn_snapshot *snapshot =
		name ? stele_txn_find(txn, name) : NULL;
	int ret;

	if (!name)
		return -EINVAL;
	if (!snapshot)
		return -ENOENT;
	if (!strcmp(name, to))
		return 0;
	ret = stele_txn_check_new_name(txn, to);
	if (ret < 0)
		return ret;
	set_name(&snapshot->info, to);
	txn->state = STELE_TXN_DIRTY;
	return 0;
}

/* The first of these snapshots with a larger id; `end`: none. */
static uint32_t place_of(const struct stele_txn *txn, uint32_t first, uint32_t end,
			 uint64_t id)
{
	while (first < end && txn->snapshots[first].info.id < id)
		first++;
	return first;
}

/* What is between them moves up or down by one. */
static void move(struct stele_txn *txn, uint32_t from, uint32_t to)
{
	struct stele_txn_snapshot *all = txn->snapshots, moved = all[from];

	if (from < to)
		memmove(&all[from], &all[from + 1], (to - from) * sizeof(*all));
	else
		memmove(&all[to + 1], &all[to], (from - to) * sizeof(*all));
	all[to] = moved;
}

int stele_txn_remove_snapshot(struct stele_txn *txn, const char *name)
{
	struct stele_txn_snapshot *snapshot =
		name ? stele_txn_find(txn, name) : NULL;
	uint32_t from, to;

	if (!snapshot)
		return -ENOENT;
	from = (uint32_t)(snapshot - txn->snapshots);
	to = place_of(txn, txn->snapshot_count, txn->snapshot_count + txn->deleted_count,
		      snapshot->info.id);
	move(txn, from, to - 1);
	txn->snapshot_count--;
	txn->deleted_count++;
	if (txn->snapshots[to - 1].info.id >= txn->image->catalog.next_snapshot_id)
		stele_txn_forget_snapshot(txn, to - 1);
	txn->state = STELE_TXN_DIRTY;
	return 0;
}

/* Time 0: by the next commit, so later than all others. */
static bool is_later(const struct stele_catalog_snapshot *a,
		     const struct stele_catalog_snapshot *b)
{
	return !a->deleted_time || (b->deleted_time && a->deleted_time >= b->deleted_time);
}

int stele_txn_undelete_snapshot(struct stele_txn *txn, const char *name, const char *as)
{
	const uint32_t count = txn->snapshot_count + txn->deleted_count;
	struct stele_catalog_snapshot *info = NULL;
	uint32_t from = 0, to;
	int ret;

	for (uint32_t i = txn->snapshot_count; i < count; i++)
		if (!strcmp(txn->snapshots[i].info.name, name) &&
		    (!info || is_later(&txn->snapshots[i].info, info))) {
			info = &txn->snapshots[i].info;
			from = i;
		}
	if (!info)
		return -ENOENT;
	ret = stele_txn_check_new_name(txn, as ? as : name);
	if (ret < 0)
		return ret;
	if (as)
		set_name(info, as);
	info->deleted_time = 0;
	to = place_of(txn, 0, txn->snapshot_count, info->id);
	move(txn, from, to);
	txn->snapshot_count++;
	txn->deleted_count--;
	txn->state = STELE_TXN_DIRTY;
	return 0;
}

void stele_txn_forget_snapshot(struct stele_txn *txn, uint32_t index)
{
	const uint32_t last = txn->snapshot_count + --txn->deleted_count;

	snapshot_release(&txn->snapshots[index]);
	memmove(&txn->snapshots[index], &txn->snapshots[index + 1],
		(last - index) * sizeof(*txn->snapshots));
	txn->state = STELE_TXN_DIRTY;
}
