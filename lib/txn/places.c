/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.c - snapshots share references
 *
 * After each append the new snapshot has the references of its base and one more. So a
 * snapshot whose references are the first ones of another one's has no others in the
 * table. Those that are the first ones of none, the whole ones, are in it one after the
 * other. Without a snapshot the table is never larger: what others shared with it is
 * shorter than it was.
 */
#include "lib/txn/txn.h"

#include <stdlib.h>
#include <string.h>
#include <errno.h>

static int compare_refs(const struct stele_txn_ref *a,
			const struct stele_txn_ref *b)
{
	if (a->segment_id != b->segment_id)
		return a->segment_id < b->segment_id ? -1 : 1;
	if (a->at.deleted_count != b->at.deleted_count)
		return a->at.deleted_count < b->at.deleted_count ? -1 : 1;
	return memcmp(a->at.lists, b->at.lists, sizeof(a->at.lists));
}

/* How many of them are the same, from the first one on. */
static uint32_t common(const struct stele_txn_snapshot *a,
		       const struct stele_txn_snapshot *b)
{
	uint32_t i = 0;

	while (i < a->info.ref_count && i < b->info.ref_count &&
	       !compare_refs(&a->refs[i], &b->refs[i]))
		i++;
	return i;
}

/* As words: what another one begins with comes right before what begins with it. */
static int compare(const void *a, const void *b, void *user)
{
	const struct stele_txn_snapshot *snapshots = user;
	const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct stele_txn_snapshot *x = &snapshots[i], *y = &snapshots[j];
	const uint32_t same = common(x, y);

	if (same < x->info.ref_count && same < y->info.ref_count)
		return compare_refs(&x->refs[same], &y->refs[same]);
	if (x->info.ref_count != y->info.ref_count)
		return x->info.ref_count < y->info.ref_count ? -1 : 1;
	return (i > j) - (i < j);
}

/* Whose references each snapshot has, or the first ones of: by snapshot. */
static void find_whole(const struct stele_txn *txn, const uint32_t *order,
		       uint32_t *whose)
{
	const uint32_t count = txn->snapshot_count + txn->deleted_count;

	for (uint32_t i = count; i-- > 0;) {
		const struct stele_txn_snapshot *s = &txn->snapshots[order[i]];

		whose[order[i]] = order[i];
		if (i + 1 < count &&
		    common(s, &txn->snapshots[order[i + 1]]) == s->info.ref_count)
			whose[order[i]] = whose[order[i + 1]];
	}
}

int stele_txn_place_refs(const struct stele_txn *txn,
			 struct stele_txn_places *places)
{
	const uint32_t count = txn->snapshot_count + txn->deleted_count;
	uint32_t *order = calloc((size_t)count + 1, sizeof(*order));
	uint32_t *whose = calloc((size_t)count + 1, sizeof(*whose));
	int ret = order && whose ? 0 : -ENOMEM;

	*places = (struct stele_txn_places){
		.first = calloc((size_t)count + 1, sizeof(*places->first)),
		.whole = calloc((size_t)count + 1, sizeof(*places->whole)),
	};
	if (!places->first || !places->whole)
		ret = -ENOMEM;
	for (uint32_t i = 0; i < count && ret == 0; i++)
		order[i] = i;
	if (ret == 0 && count) {
		qsort_r(order, count, sizeof(*order), compare, txn->snapshots);
		find_whole(txn, order, whose);
	}
	for (uint32_t i = 0; i < count && ret == 0; i++) {
		places->whole[i] = whose[i] == i;
		places->first[i] = places->count;
		if (places->whole[i])
			places->count += txn->snapshots[i].info.ref_count;
	}
	for (uint32_t i = 0; i < count && ret == 0; i++)
		places->first[i] = places->first[whose[i]];
	free(order);
	free(whose);
	return ret;
}

void stele_txn_places_release(struct stele_txn_places *places)
{
	free(places->first);
	free(places->whole);
	memset(places, 0, sizeof(*places));
}
