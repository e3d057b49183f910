/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_unique.c - no key twice among the live samples of a snapshot
 *
 * The keys of each segment are sorted, so a walk over all segments at once
 * sees equal keys side by side. One page and one key of memory for each.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/check.h"
#include "lib/image/section.h"

struct merge {
	struct stele_check *check;
	const struct stele_snapshot *snapshot;
	struct stele_keys_walk *walks;
	char last[STELE_RECORD_KEY_MAX];
	uint32_t last_size;
};

/* On to the next live key. Return: 1; 0 at the end; negative errno. */
static int next_live(const struct merge *m, struct stele_keys_walk *walk)
{
	uint64_t id;
	int ret;

	do
		ret = stele_keys_walk_next(walk);
	while (ret == 1 && stele_snapshot_id(m->snapshot, walk->segment,
					     walk->cursor.key.number,
					     &id) == -ENOENT);
	if (ret == 0)
		walk->done = true;
	return ret;
}

static int compare(const struct stele_keys_walk *a,
		   const struct stele_keys_walk *b)
{
	return stele_key_compare(a->cursor.key.key, a->cursor.key.key_size,
				 b->cursor.key.key, b->cursor.key.key_size);
}

static struct stele_keys_walk *smallest(const struct merge *m)
{
	struct stele_keys_walk *best = NULL;

	for (uint32_t i = 0; i < m->snapshot->segment_count; i++) {
		struct stele_keys_walk *walk = &m->walks[i];

		if (!walk->done && (!best || compare(walk, best) < 0))
			best = walk;
	}
	return best;
}

static void check_last(struct merge *m, const struct stele_keys_walk *walk)
{
	const struct stele_key *key = &walk->cursor.key;

	if (m->last_size && stele_key_compare(m->last, m->last_size, key->key,
					      key->key_size) == 0) {
		struct stele_damage damage = {
			.error = -EUCLEAN, .what = "snapshot",
			.key = key->key, .key_size = key->key_size,
			.detail = "two live samples have this key",
		};

		stele_segment_slot(walk->segment, key->number, &damage.offset,
				   &damage.size);
		damage.has_id = stele_snapshot_id(m->snapshot, walk->segment,
						  key->number, &damage.id) == 0;
		stele_check_damage(m->check, &damage);
	}
	m->last_size = key->key_size;
	memcpy(m->last, key->key, key->key_size);
}

static int open_walks(struct merge *m)
{
	int ret = 0;

	for (uint32_t i = 0; i < m->snapshot->segment_count && ret >= 0; i++) {
		ret = stele_keys_walk_open(m->check->image,
					   &m->snapshot->segments[i], NULL, 0,
					   &m->walks[i]);
		if (ret == 0)
			ret = next_live(m, &m->walks[i]);
	}
	return ret < 0 ? ret : 0;
}

int stele_verify_unique(struct stele_check *check,
			const struct stele_snapshot *snapshot)
{
	struct stele_keys_walk *walk;
	struct merge *m;
	int ret;

	/* Within one segment the keys ascend strictly: that was checked. */
	if (snapshot->segment_count < 2)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->check = check;
	m->snapshot = snapshot;
	m->walks = calloc(snapshot->segment_count, sizeof(*m->walks));
	ret = m->walks ? open_walks(m) : -ENOMEM;
	while (ret >= 0 && (walk = smallest(m))) {
		check_last(m, walk);
		ret = next_live(m, walk);
	}
	for (uint32_t i = 0; m->walks && i < snapshot->segment_count; i++)
		stele_keys_walk_release(&m->walks[i]);
	free(m->walks);
	free(m);
	if (ret == -ENOMEM)
		return ret;
	/* A damaged page was reported with its segment; not one that is new. */
	if (ret < 0 && check->report->damaged == 0)
		stele_check_report(check, ret, "snapshot",
				   check->image->sb.catalog_offset,
				   check->image->sb.catalog_size,
				   "keys of snapshot '%s' cannot be compared",
				   snapshot->info.name);
	return 0;
}
