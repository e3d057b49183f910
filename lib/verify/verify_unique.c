/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_unique.c - no duplicate key among the live samples of a snapshot
 *
 * The keys of each segment are sorted, so a walk over all segments at once
 * sees equal keys side by side.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/verify/check.h"
#include "lib/image/merge.h"

struct walk {
	struct stele_check *check;
	const struct stele_snapshot *snapshot;
	struct stele_keys_merge merge;
	char last[STELE_RECORD_KEY_MAX];
	uint32_t last_size;
};

static void check_last(struct walk *w, const struct stele_segment *segment,
		       const struct stele_key *key)
{
	struct stele_damage damage = {
		.error = -EUCLEAN, .what = "snapshot",
		.key = key->key, .key_size = key->key_size,
		.detail = "two live samples have this key",
		.snapshot = w->snapshot->info.name,
	};

	if (stele_snapshot_id(w->snapshot, segment, key->number, &damage.id) ==
	    -ENOENT)
		return;
	if (w->last_size && stele_key_compare(w->last, w->last_size, key->key,
					      key->key_size) == 0) {
		stele_segment_slot(segment, key->number, &damage.offset,
				   &damage.item_size);
		damage.has_id = stele_snapshot_id(w->snapshot, segment,
						  key->number, &damage.id) == 0;
		stele_check_damage(w->check, &damage);
	}
	w->last_size = key->key_size;
	memcpy(w->last, key->key, key->key_size);
}

static int walk_keys(struct walk *w)
{
	const uint32_t count = w->snapshot->segment_count;
	const struct stele_key *key;
	uint32_t index;
	int ret = stele_keys_merge_init(&w->merge, count);

	for (uint32_t i = 0; i < count && ret == 0; i++)
		ret = stele_keys_merge_add(&w->merge, w->check->image,
					   &w->snapshot->segments[i], NULL, 0);
	while (ret >= 0) {
		ret = stele_keys_merge_next(&w->merge, &index, &key);
		if (ret <= 0)
			break;
		check_last(w, &w->snapshot->segments[index], key);
	}
	stele_keys_merge_release(&w->merge);
	return ret;
}

int stele_verify_unique(struct stele_check *check,
			const struct stele_snapshot *snapshot)
{
	struct walk *w;
	int ret;

	/* Within one segment the keys ascend strictly, as checked before. */
	if (snapshot->segment_count < 2)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->check = check;
	w->snapshot = snapshot;
	ret = walk_keys(w);
	free(w);
	if (ret == -ENOMEM)
		return ret;
	/* A damaged page was reported with its segment, unless it is new. */
	if (ret < 0 && check->report->damaged == 0)
		stele_check_report(check, ret, "snapshot",
				   check->image->sb.catalog_offset,
				   check->image->sb.catalog_size,
				   "keys of snapshot '%s' cannot be compared",
				   snapshot->info.name);
	return 0;
}
