/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shown.c - see shown.h
 */
#include "lib/posix/shown.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/posix/front.h"
#include "lib/posix/tree.h"

/* A catalog's tables, as a tree wants them. All owned. */
struct tables {
	struct stele_catalog_segment *segments;
	struct stele_catalog_snapshot *infos; /* have the names */
	struct stele_posix_snapshot *snapshots;
	struct stele_catalog_ref *refs;
};

bool stele_posix_find(const struct stele_image *image, struct stele_catalog_segment *out)
{
	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		stele_catalog_segment(&image->catalog, i, out);
		if (stele_catalog_is_tree(out) && !out->unused_since)
			return true;
	}
	return false;
}

bool stele_posix_fits(const struct stele_image *image)
{
	const uint32_t block_min = stele_posix_block_min(image->dev);
	struct stele_disk_erofs_front front;
	struct stele_catalog_segment tree;

	if (!stele_posix_find(image, &tree))
		return false;
	return block_min <= STELE_POSIX_GRANULE_MIN ||
	       (stele_front_of_tree(image->dev, tree.offset, image->sb.uuid, &front) == 0 &&
		UINT32_C(1) << front.super.block_bits >= block_min);
}

static void tables_release(struct tables *t)
{
	free(t->segments);
	free(t->infos);
	free(t->snapshots);
	free(t->refs);
}

static int tables_fill(struct tables *t, const struct stele_catalog *catalog)
{
	const struct stele_catalog_counts *counts = &catalog->counts;

	t->segments = calloc(counts->segments + UINT64_C(1), sizeof(*t->segments));
	t->infos = calloc(counts->snapshots + UINT64_C(1), sizeof(*t->infos));
	t->snapshots = calloc(counts->snapshots + UINT64_C(1), sizeof(*t->snapshots));
	t->refs = calloc(counts->refs + UINT64_C(1), sizeof(*t->refs));
	if (!t->segments || !t->infos || !t->snapshots || !t->refs)
		return -ENOMEM;
	for (uint32_t i = 0; i < counts->segments; i++)
		stele_catalog_segment(catalog, i, &t->segments[i]);
	for (uint32_t i = 0; i < counts->refs; i++)
		stele_catalog_ref(catalog, i, &t->refs[i]);
	for (uint32_t i = 0; i < counts->snapshots; i++) {
		struct stele_catalog_snapshot *info = &t->infos[i];

		stele_catalog_snapshot(catalog, i, info);
		t->snapshots[i] = (struct stele_posix_snapshot){
			.name = info->name,
			.time = info->time,
			.refs = t->refs + info->first_ref,
			.ref_count = info->ref_count,
		};
	}
	return 0;
}

int stele_posix_check(struct stele_image *image, uint64_t *differs)
{
	struct stele_posix_tree tree = {.image = image, .block_min = STELE_POSIX_GRANULE_MIN};
	struct stele_catalog_segment where;
	struct tables tables = {0};
	int ret;

	if (!stele_posix_find(image, &where))
		return 0;
	*differs = where.offset;
	ret = tables_fill(&tables, &image->catalog);
	tree.segments = tables.segments;
	tree.segment_count = image->catalog.counts.segments;
	tree.snapshots = tables.snapshots;
	tree.snapshot_count = image->catalog.counts.snapshots;
	if (ret == 0)
		ret = stele_posix_tree_plan(&tree);
	if (ret == 0 && tree.size != where.size)
		ret = -EUCLEAN;
	if (ret == 0)
		ret = stele_posix_tree_check(&tree, where.offset, differs);
	stele_posix_tree_release(&tree);
	tables_release(&tables);
	return ret;
}
