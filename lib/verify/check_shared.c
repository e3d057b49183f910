/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_shared.c - whatever snapshots share, checked only once
 *
 * Segments, deleted lists and the digests of these, and which references a
 * segment has. An image may have a million references to one segment with one
 * list: the work per reference must be no more than visiting it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/sections.h"
#include "lib/verify/check.h"
#include "lib/image/deleted.h"
#include "lib/image/digest.h"

#define USERS_NAMED 3u /* snapshots that have a damaged list */
#define USERS_SIZE  (USERS_NAMED * (STELE_NAME_SIZE_MAX + 8) + 48)

/* ---- references by segment ----------------------------------------------------- */

static uint32_t count_refs(const struct stele_catalog *catalog)
{
	struct stele_catalog_snapshot info;
	uint32_t count = 0;

	for (uint32_t i = 0; i < catalog->counts.snapshots; i++) {
		stele_catalog_snapshot(catalog, i, &info);
		count += info.ref_count;
	}
	return count;
}

/* By the catalog alone: where those of a segment begin, which have room behind that. */
static void count_by_segment(struct stele_check *check)
{
	const struct stele_catalog *catalog = &check->image->catalog;
	uint32_t *first = check->first_ref, at = 0;
	struct stele_catalog_snapshot info;
	struct stele_catalog_ref ref;

	for (uint32_t i = 0; i < catalog->counts.snapshots; i++) {
		stele_catalog_snapshot(catalog, i, &info);
		for (uint32_t j = 0; j < info.ref_count; j++) {
			stele_catalog_ref(catalog, info.first_ref + j, &ref);
			first[ref.segment + 1]++;
		}
	}
	for (uint32_t i = 0; i <= catalog->counts.segments; i++)
		at = first[i] += at;
}

/* Snapshot, list, first id: those of a segment in the snapshots' order. */
static void fill_snapshot(struct stele_check *check, uint32_t index)
{
	const struct stele_catalog *catalog = &check->image->catalog;
	struct stele_catalog_snapshot info;
	uint64_t id = 0;

	stele_catalog_snapshot(catalog, index, &info);
	for (uint32_t i = 0; i < info.ref_count; i++) {
		struct stele_catalog_segment where;
		struct stele_catalog_ref ref;
		struct stele_check_ref *out;

		stele_catalog_ref(catalog, info.first_ref + i, &ref);
		stele_catalog_segment(catalog, ref.segment, &where);
		out = &check->refs[check->first_ref[ref.segment]++];
		out->snapshot = index;
		out->first_id = id;
		if (ref.deleted_count)
			out->list = &check->lists[stele_lists_find(&check->known,
								   &ref)];
		id += where.sample_count - ref.deleted_count;
	}
}

static void fill_refs(struct stele_check *check)
{
	const struct stele_catalog_counts *counts = &check->image->catalog.counts;
	uint32_t *first = check->first_ref;

	count_by_segment(check);
	for (uint32_t i = 0; i < counts->snapshots; i++)
		fill_snapshot(check, i);
	/* That leaves first[i] where those of i end, that is, where i + 1 begin. */
	memmove(first + 1, first, counts->segments * sizeof(*first));
	first[0] = 0;
}

static void fill_lists(struct stele_check *check)
{
	for (uint32_t i = 0; i < check->known.count; i++) {
		const struct stele_list *known = &check->known.list[i];

		check->lists[i].known = known;
		if (known->first)
			check->lists[i].first = &check->lists[stele_lists_at(
				&check->known, known->first)];
	}
}

int stele_check_shared_init(struct stele_check *check)
{
	const struct stele_catalog *catalog = &check->image->catalog;
	const size_t segments = catalog->counts.segments;
	const size_t refs = count_refs(catalog);
	int ret = stele_lists_collect(&check->known, catalog);

	check->segments = calloc(segments + 1, sizeof(*check->segments));
	check->first_ref = calloc(segments + 2, sizeof(*check->first_ref));
	check->refs = calloc(refs + 1, sizeof(*check->refs));
	check->lists = calloc((size_t)check->known.count + 1,
			      sizeof(*check->lists));
	if (!check->segments || !check->first_ref || !check->refs ||
	    !check->lists)
		ret = -ENOMEM;
	if (ret == 0) {
		fill_lists(check);
		fill_refs(check);
	}
	return ret;
}

void stele_check_shared_release(struct stele_check *check)
{
	const uint32_t count = check->image->catalog.counts.segments;

	for (uint32_t i = 0; check->segments && i < count; i++)
		stele_segment_release(&check->segments[i].segment);
	for (uint32_t i = 0; check->lists && i < check->known.count; i++)
		stele_deleted_release(&check->lists[i].deleted);
	free(check->segments);
	free(check->first_ref);
	free(check->refs);
	free(check->lists);
	stele_lists_release(&check->known);
}

/* ---- deleted lists ------------------------------------------------------------- */

int stele_check_list_all(const struct stele_check_list *list,
			 struct stele_deleted *out)
{
	static const struct stele_deleted none;

	return stele_deleted_combine(&list->deleted,
				     list->first ? &list->first->deleted : &none,
				     STELE_DELETED_OR, out);
}

/* With its first one: are all of them as many as references say? And their digest. */
static int judge_list(struct stele_check_list *list)
{
	const uint64_t expected = list->known->deleted_count;
	struct stele_hash *hash = NULL;
	struct stele_deleted all;
	int ret = stele_check_list_all(list, &all);

	if (ret == 0)
		ret = stele_hash_new(&hash);
	if (ret == 0 && expected && all.count != expected) {
		list->why = "deleted: count differs from the catalog";
		ret = -EUCLEAN;
	}
	if (ret == 0)
		stele_hash_deleted(hash, &all, list->digest);
	stele_hash_free(hash);
	stele_deleted_release(&all);
	return ret;
}

int stele_check_list_load(struct stele_check *check,
			  struct stele_check_list *list)
{
	struct stele_catalog_segment where;

	if (list->tried)
		return list->error;
	stele_catalog_segment(&check->image->catalog, list->known->segment,
			      &where);
	list->tried = true;
	list->error = stele_deleted_load_list(check->image, &list->known->at,
					      where.sample_count, &list->deleted,
					      &list->why);
	if (list->error == 0 && list->first) {
		list->error = stele_check_list_load(check, list->first);
		list->reported |= list->error < 0; /* with that */
	}
	if (list->error == 0)
		list->error = judge_list(list);
	return list->error;
}

/* "; 'v1', 'v2' cannot be opened": some of the snapshots that it belongs to. */
static void name_users(const struct stele_check *check, const struct stele_check_list *list,
		       char text[USERS_SIZE])
{
	const uint32_t refs = count_refs(&check->image->catalog);
	struct stele_catalog_snapshot info;
	uint32_t count = 0;
	size_t at = 0;

	*text = '\0';
	for (uint32_t i = 0; i < refs; i++) {
		const struct stele_check_list *used = check->refs[i].list;

		if (!used || (used != list && used->first != list) || ++count > USERS_NAMED)
			continue;
		stele_catalog_snapshot(&check->image->catalog, check->refs[i].snapshot, &info);
		at += (size_t)snprintf(text + at, USERS_SIZE - at, "%s '%s'",
				       count > 1 ? "," : ";", info.name);
	}
	if (count > USERS_NAMED)
		at += (size_t)snprintf(text + at, USERS_SIZE - at, " and %u more",
				       count - USERS_NAMED);
	if (count)
		snprintf(text + at, USERS_SIZE - at, " cannot be opened");
}

int stele_check_list_report(struct stele_check *check,
			    struct stele_check_list *list)
{
	const struct stele_catalog_list *at = &list->known->at;
	const uint64_t blocks = stele_deleted_blocks(at->count);
	int ret = list->first ? stele_check_list_report(check, list->first) : 0;
	char users[USERS_SIZE];

	if (ret < 0)
		return ret;
	ret = stele_check_list_load(check, list);
	if (list->reported || ret == -ENOMEM)
		return ret == -ENOMEM ? ret : 0;
	list->reported = true;
	if (ret < 0) {
		name_users(check, list, users);
		stele_check_report(check, ret, "deleted list", at->offset,
				   blocks * STELE_BLOCK_SIZE, "%s%s", list->why, users);
	}
	return stele_check_progress(check, blocks * STELE_BLOCK_SIZE, blocks,
				    0);
}

/* ---- snapshots ----------------------------------------------------------------- */

/* Views of loaded segments. */
static int assemble(struct stele_check *check, struct stele_snapshot *snapshot)
{
	const struct stele_catalog_snapshot *info = &snapshot->info;
	struct stele_catalog_ref ref;

	for (uint32_t i = 0; i < info->ref_count; i++) {
		struct stele_segment *segment = &snapshot->segments[i];
		const struct stele_check_list *list;

		stele_catalog_ref(&check->image->catalog, info->first_ref + i,
				  &ref);
		if (!check->segments[ref.segment].sound)
			return -ENODATA;
		*segment = check->segments[ref.segment].segment;
		if (ref.deleted_count) {
			list = &check->lists[stele_lists_find(&check->known,
							      &ref)];
			segment->deleted.count = ref.deleted_count;
			segment->deleted_digest = list->digest;
		}
		segment->live_count -= ref.deleted_count;
		segment->first_id = snapshot->sample_count;
		snapshot->sample_count += segment->live_count;
		snapshot->segment_count++;
	}
	return 0;
}

/* The results hold in other snapshots, too. */
static void remember(struct stele_check *check,
		     const struct stele_snapshot *snapshot)
{
	struct stele_catalog_ref ref;

	for (uint32_t i = 0; i < snapshot->segment_count; i++) {
		stele_catalog_ref(&check->image->catalog,
				  snapshot->info.first_ref + i, &ref);
		check->segments[ref.segment].segment.extends_id =
			snapshot->segments[i].extends_id;
	}
}

int stele_check_snapshot_make(struct stele_check *check, uint32_t index,
			      struct stele_snapshot *out)
{
	int ret;

	memset(out, 0, sizeof(*out));
	stele_catalog_snapshot(&check->image->catalog, index, &out->info);
	out->segments = calloc((size_t)out->info.ref_count + 1,
			       sizeof(*out->segments));
	if (!out->segments)
		return -ENOMEM;
	ret = assemble(check, out);
	if (ret == 0)
		ret = stele_snapshot_check(check->image, out);
	if (ret == 0)
		remember(check, out);
	else
		stele_check_snapshot_free(out);
	return ret;
}

int stele_check_snapshot_deleted(const struct stele_check *check,
				 struct stele_snapshot *snapshot)
{
	struct stele_catalog_ref ref;
	int ret = 0;

	for (uint32_t i = 0; i < snapshot->segment_count && ret == 0; i++) {
		stele_catalog_ref(&check->image->catalog,
				  snapshot->info.first_ref + i, &ref);
		if (ref.deleted_count)
			ret = stele_check_list_all(
				&check->lists[stele_lists_find(&check->known, &ref)],
				&snapshot->segments[i].deleted);
	}
	return ret;
}

void stele_check_snapshot_free(struct stele_snapshot *snapshot)
{
	for (uint32_t i = 0; i < snapshot->segment_count; i++)
		stele_deleted_release(&snapshot->segments[i].deleted);
	free(snapshot->segments);
	memset(snapshot, 0, sizeof(*snapshot));
}
