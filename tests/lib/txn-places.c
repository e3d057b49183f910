/* SPDX-License-Identifier: Apache-2.0 */
/*
 * txn-places.c - snapshots share references in the catalog of the next generation
 *
 * A chain of appends has as many as its last one. Of random lists each finds its own
 * where it was told, nothing is there twice that need not be, and without any one of
 * the snapshots there are never more: a full image can still be deleted from.
 */
#include "lib/txn/txn.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

#define MOST 24u

struct made {
	struct stele_txn txn;
	struct stele_txn_snapshot snapshots[MOST];
	struct stele_txn_ref refs[MOST][MOST];
};

static bool same(const struct stele_txn_ref *a, const struct stele_txn_ref *b)
{
	return a->segment_id == b->segment_id &&
	       a->at.deleted_count == b->at.deleted_count &&
	       !memcmp(a->at.lists, b->at.lists, sizeof(a->at.lists));
}

static bool begins_with(const struct stele_txn_snapshot *a,
			const struct stele_txn_snapshot *b)
{
	for (uint32_t i = 0; i < b->info.ref_count; i++)
		if (i >= a->info.ref_count || !same(&a->refs[i], &b->refs[i]))
			return false;
	return true;
}

/* The references of those that no other one begins with; of equal ones the first. */
static uint32_t fewest(const struct stele_txn *txn)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < txn->snapshot_count; i++) {
		const struct stele_txn_snapshot *s = &txn->snapshots[i];
		bool whole = true;

		for (uint32_t j = 0; j < txn->snapshot_count; j++)
			if (j != i && begins_with(&txn->snapshots[j], s) &&
			    (j < i || !begins_with(s, &txn->snapshots[j])))
				whole = false;
		if (whole)
			count += s->info.ref_count;
	}
	return count;
}

/* How many there are; what is wrong is counted. */
static uint32_t place(const struct stele_txn *txn, unsigned int *wrong)
{
	static struct stele_txn_ref table[MOST * MOST];
	struct stele_txn_places places;
	uint32_t count;

	if (stele_txn_place_refs(txn, &places) < 0)
		bail("no memory");
	memset(table, 0xff, sizeof(table));
	for (uint32_t i = 0; i < txn->snapshot_count; i++)
		if (places.whole[i])
			memcpy(table + places.first[i], txn->snapshots[i].refs,
			       txn->snapshots[i].info.ref_count * sizeof(*table));
	for (uint32_t i = 0; i < txn->snapshot_count; i++) {
		const struct stele_txn_snapshot *s = &txn->snapshots[i];

		for (uint32_t j = 0; j < s->info.ref_count; j++)
			*wrong += !same(&s->refs[j], &table[places.first[i] + j]);
		*wrong += places.first[i] + s->info.ref_count > places.count;
	}
	count = places.count;
	stele_txn_places_release(&places);
	return count;
}

static void add(struct made *m, uint32_t refs)
{
	struct stele_txn_snapshot *s = &m->snapshots[m->txn.snapshot_count];

	s->refs = m->refs[m->txn.snapshot_count++];
	s->info.ref_count = refs;
	m->txn.snapshots = m->snapshots;
}

static void test_chain(void)
{
	static struct made m;
	unsigned int wrong = 0;

	is_uint(0, place(&m.txn, &wrong), "of none, none");
	for (uint32_t i = 0; i < MOST; i++) {
		add(&m, i);
		for (uint32_t j = 0; j < i; j++)
			m.refs[i][j].segment_id = j + 1;
	}
	is_uint(MOST - 1, place(&m.txn, &wrong), "as many as the last one has");
	for (uint32_t j = 0; j < 10; j++)
		m.refs[10][j].at.deleted_count = 7;
	is_uint(MOST - 1 + 10, place(&m.txn, &wrong), "another list is its own");
	is_uint(0, wrong, "each finds its own");
}

/* Few values, so that much is the same. */
static void make_random(struct made *m)
{
	memset(m, 0, sizeof(*m));
	for (uint32_t i = 0, n = (uint32_t)rand() % MOST; i <= n; i++) {
		const uint32_t from = i ? (uint32_t)rand() % i : 0;

		add(m, (uint32_t)rand() % 8);
		memcpy(m->refs[i], m->refs[from], sizeof(m->refs[i]));
		for (uint32_t j = (uint32_t)rand() % 8; j < 8; j++) {
			m->refs[i][j].segment_id = j + 1 + (uint32_t)rand() % 2;
			m->refs[i][j].at.lists[0].offset = rand() % 3 ? 0 : 4096;
			m->refs[i][j].at.lists[1].owner = rand() % 9 ? 0 : 1;
		}
	}
}

static void test_random(void)
{
	unsigned int wrong = 0, more = 0, larger = 0;

	for (unsigned int i = 0; i < 2000; i++) {
		static struct made m, less;
		uint32_t count;

		make_random(&m);
		count = place(&m.txn, &wrong);
		more += count != fewest(&m.txn);
		less = m;
		less.txn.snapshots = less.snapshots;
		for (uint32_t out = 0; out < m.txn.snapshot_count; out++) {
			memcpy(less.snapshots, m.snapshots, sizeof(m.snapshots));
			less.txn.snapshot_count = m.txn.snapshot_count - 1;
			memmove(less.snapshots + out, less.snapshots + out + 1,
				(MOST - 1 - out) * sizeof(*less.snapshots));
			larger += place(&less.txn, &wrong) > count;
		}
	}
	is_uint(0, wrong, "random ones find their own");
	is_uint(0, more, "nothing is there twice");
	is_uint(0, larger, "without one there are no more");
}

int main(void)
{
	plan_lazy();
	srand(1);
	test_chain();
	test_random();
	return done();
}
