/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shown.c - see shown.h
 */
#include "lib/posix/shown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/posix/front.h"

bool stele_posix_find(const struct stele_image *image, struct stele_catalog_segment *out)
{
	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		stele_catalog_segment(&image->catalog, i, out);
		if (stele_posix_is_part(out) && out->part == STELE_PART_ROOT)
			return true;
	}
	return false;
}

uint64_t stele_posix_size(const struct stele_image *image)
{
	struct stele_catalog_segment segment;
	uint64_t size = 0;

	for (uint32_t i = 0; i < image->catalog.counts.segments; i++) {
		stele_catalog_segment(&image->catalog, i, &segment);
		if (stele_posix_is_part(&segment))
			size += segment.size;
	}
	return size;
}

uint32_t stele_posix_block_bits(const struct stele_image *image)
{
	struct stele_disk_erofs_front front;
	struct stele_catalog_segment root;

	if (!stele_posix_find(image, &root) ||
	    stele_front_of_tree(image->dev, root.offset, image->sb.uuid, &front) < 0)
		return 0;
	return front.super.block_bits;
}

bool stele_posix_fits(const struct stele_image *image)
{
	const uint32_t block_min = stele_posix_block_min(image->dev);
	struct stele_catalog_segment root;

	if (!stele_posix_find(image, &root))
		return false;
	return block_min <= STELE_POSIX_GRANULE_MIN ||
	       stele_posix_shown_block(image) >= block_min;
}

/* ---- compared with what it should be ------------------------------------------------ */

static void fill_snapshots(struct stele_posix_shown *s, const struct stele_catalog *catalog)
{
	for (uint32_t i = 0; i < catalog->counts.snapshots; i++) {
		struct stele_catalog_snapshot *info = &s->infos[i];

		stele_catalog_snapshot(catalog, i, info);
		s->snapshots[i] = (struct stele_posix_snapshot){
			.name = info->name,
			.id = info->id,
			.time = info->time,
			.refs = s->refs + info->first_ref,
			.ref_count = info->ref_count,
		};
	}
}

static int fill(struct stele_posix_shown *s, const struct stele_catalog *catalog)
{
	const struct stele_catalog_counts *counts = &catalog->counts;

	s->segments = calloc(counts->segments + UINT64_C(1), sizeof(*s->segments));
	s->infos = calloc(counts->snapshots + UINT64_C(1), sizeof(*s->infos));
	s->snapshots = calloc(counts->snapshots + UINT64_C(1), sizeof(*s->snapshots));
	s->refs = calloc(counts->refs + UINT64_C(1), sizeof(*s->refs));
	if (!s->segments || !s->infos || !s->snapshots || !s->refs)
		return -ENOMEM;
	for (uint32_t i = 0; i < counts->segments; i++)
		stele_catalog_segment(catalog, i, &s->segments[i]);
	for (uint32_t i = 0; i < counts->refs; i++)
		stele_catalog_ref(catalog, i, &s->refs[i]);
	fill_snapshots(s, catalog);
	return 0;
}

int stele_posix_shown_load(struct stele_image *image, struct stele_posix_shown *out)
{
	const struct stele_catalog_counts *counts = &image->catalog.counts;
	struct stele_posix_tree *tree = &out->tree;
	int ret;

	memset(out, 0, sizeof(*out));
	ret = fill(out, &image->catalog);
	if (ret < 0)
		return ret;
	*tree = (struct stele_posix_tree){
		.image = image,
		.segments = out->segments,
		.segment_count = counts->segments,
		.snapshots = out->snapshots,
		.snapshot_count = counts->snapshots,
		.block_min = STELE_POSIX_GRANULE_MIN,
		.block_bits = stele_posix_block_bits(image),
	};
	if (!tree->block_bits)
		return -EUCLEAN;
	ret = stele_posix_tree_plan(tree);
	for (uint32_t i = 0; ret == 0 && i < counts->segments; i++)
		if (stele_posix_is_part(&out->segments[i]))
			stele_posix_tree_place(tree, &out->segments[i]);
	return ret;
}

int stele_posix_shown_check(struct stele_posix_shown *shown,
			    const struct stele_catalog_segment *part, uint64_t *differs)
{
	struct stele_catalog_segment planned;
	uint32_t index = 0;
	int ret;

	*differs = part->offset;
	if (part->part != STELE_PART_ROOT && !stele_posix_tree_find(&shown->tree, part, &index))
		return -EUCLEAN;
	ret = stele_posix_part_plan(&shown->tree, part->part, index, &planned);
	if (ret == 0 && (planned.size != part->size || planned.inode_count != part->inode_count))
		ret = -EUCLEAN;
	return ret < 0 ? ret : stele_posix_part_check(&shown->tree, part, differs);
}

void stele_posix_shown_release(struct stele_posix_shown *shown)
{
	stele_posix_tree_release(&shown->tree);
	free(shown->segments);
	free(shown->infos);
	free(shown->snapshots);
	free(shown->refs);
	memset(shown, 0, sizeof(*shown));
}

int stele_posix_check(struct stele_image *image, uint64_t *differs)
{
	struct stele_posix_shown shown;
	struct stele_catalog_segment root;
	int ret;

	if (!stele_posix_find(image, &root))
		return 0;
	*differs = root.offset;
	ret = stele_posix_shown_load(image, &shown);
	for (uint32_t i = 0; ret == 0 && i < shown.tree.segment_count; i++)
		if (stele_posix_is_part(&shown.segments[i]))
			ret = stele_posix_shown_check(&shown, &shown.segments[i], differs);
	stele_posix_shown_release(&shown);
	return ret;
}
