/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - what has parts, where they lie, and the same steps for each of them
 */
#include "lib/posix/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/posix/part.h"

#define USERS_NAMED 3u /* snapshots, in a message */
#define USERS_SIZE  (USERS_NAMED * (STELE_NAME_SIZE_MAX + 8) + 32)

/* ---- plan --------------------------------------------------------------------- */

uint32_t stele_posix_block_min(const struct stele_device *dev)
{
	const uint32_t block = dev->limits.logical_block;

	return dev->resizable || block < STELE_POSIX_GRANULE_MIN ? STELE_POSIX_GRANULE_MIN :
								   block;
}

int stele_posix_check_granule(const struct stele_descriptor *d, uint32_t block_min,
			      const char *users, const struct stele_log *log)
{
	if (d->granule >= block_min)
		return 0;
	stele_log_error(log,
			"segment %016" PRIx64 "%s has a granule of %u: only samples at multiples "
			"of %u can be files%s",
			d->id, users, d->granule, block_min,
			block_min > STELE_POSIX_GRANULE_MIN ? " on this device" : "");
	return -EOPNOTSUPP;
}

static bool has_segment(const struct stele_posix_snapshot *s, uint32_t segment)
{
	for (uint32_t i = 0; i < s->ref_count; i++)
		if (s->refs[i].segment == segment)
			return true;
	return false;
}

/* " of 'v1', 'v2'": some of the snapshots that have it. */
static void name_users(const struct stele_posix_tree *tree, uint32_t segment, char *text,
		       size_t size)
{
	uint32_t count = 0;
	size_t at = 0;

	for (uint32_t i = 0; i < tree->snapshot_count; i++) {
		if (!has_segment(&tree->snapshots[i], segment) || ++count > USERS_NAMED)
			continue;
		at += (size_t)snprintf(text + at, size - at, "%s'%s'", count > 1 ? ", " : " of ",
				       tree->snapshots[i].name);
	}
	if (count > USERS_NAMED)
		snprintf(text + at, size - at, " and %u more", count - USERS_NAMED);
}

static int look_at_segment(struct stele_posix_tree *tree, uint32_t index)
{
	const struct stele_catalog_segment *where = &tree->segments[index];
	struct stele_segment segment;
	char users[USERS_SIZE] = "";
	int ret = stele_segment_load_bare(tree->image, where, &segment);

	if (ret < 0)
		return ret;
	if (segment.descriptor.granule < tree->block_min)
		name_users(tree, index, users, sizeof(users));
	ret = stele_posix_check_granule(&segment.descriptor, tree->block_min, users,
					&tree->image->log);
	if (ret == 0 && segment.descriptor.granule < stele_posix_block_size(tree))
		tree->block_bits = STELE_EROFS_BITS_MIN;
	tree->files[index].nids = stele_posix_files_nids(&segment);
	stele_segment_release(&segment);
	if (where->offset + where->size > tree->end)
		tree->end = where->offset + where->size;
	return ret;
}

static int look_at_segments(struct stele_posix_tree *tree)
{
	int ret = 0;

	for (uint32_t i = 0; i < tree->snapshot_count; i++) {
		const struct stele_posix_snapshot *s = &tree->snapshots[i];

		for (uint32_t j = 0; ret == 0 && j < s->ref_count; j++)
			if (!tree->files[s->refs[j].segment].nids)
				ret = look_at_segment(tree, s->refs[j].segment);
	}
	return ret;
}

static int compare_ids(const void *a, const void *b, void *user)
{
	const struct stele_catalog_segment *segments = user;
	const uint64_t x = segments[*(const uint32_t *)a].id;
	const uint64_t y = segments[*(const uint32_t *)b].id;

	return (x > y) - (x < y);
}

static int sort_ids(struct stele_posix_tree *tree)
{
	tree->by_id = calloc(tree->segment_count + UINT64_C(1), sizeof(*tree->by_id));
	if (!tree->by_id)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->segment_count; i++)
		tree->by_id[i] = i;
	qsort_r(tree->by_id, tree->segment_count, sizeof(*tree->by_id), compare_ids,
		(void *)tree->segments);
	return 0;
}

int stele_posix_tree_plan(struct stele_posix_tree *tree)
{
	int ret = sort_ids(tree);

	if (!tree->block_bits)
		tree->block_bits = STELE_EROFS_BITS_MAX;
	tree->files = calloc(tree->segment_count + UINT64_C(1), sizeof(*tree->files));
	tree->directories = calloc(tree->snapshot_count + UINT64_C(1),
				   sizeof(*tree->directories));
	if (!tree->files || !tree->directories)
		ret = -ENOMEM;
	return ret < 0 ? ret : look_at_segments(tree);
}

void stele_posix_tree_release(struct stele_posix_tree *tree)
{
	free(tree->by_id);
	free(tree->files);
	free(tree->directories);
	tree->by_id = NULL;
	tree->files = NULL;
	tree->directories = NULL;
}

/* ---- places ------------------------------------------------------------------- */

bool stele_posix_tree_has_files(const struct stele_posix_tree *tree, uint32_t segment)
{
	return tree->files[segment].nids;
}

/* Of the segment or snapshot that is the i-th by its id. */
static uint64_t id_at(const struct stele_posix_tree *tree, bool snapshot, uint32_t i)
{
	return snapshot ? tree->snapshots[i].id : tree->segments[tree->by_id[i]].id;
}

bool stele_posix_tree_find(const struct stele_posix_tree *tree,
			   const struct stele_catalog_segment *part, uint32_t *index)
{
	const bool snapshot = part->part == STELE_PART_DIRECTORIES;
	const uint32_t count = snapshot ? tree->snapshot_count : tree->segment_count;
	uint32_t low = 0, high = count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (id_at(tree, snapshot, middle) < part->of)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count || id_at(tree, snapshot, low) != part->of)
		return false;
	*index = snapshot ? low : tree->by_id[low];
	return snapshot || stele_posix_tree_has_files(tree, *index);
}

void stele_posix_tree_place(struct stele_posix_tree *tree,
			    const struct stele_catalog_segment *part)
{
	uint32_t index;

	if (part->part == STELE_PART_ROOT || !stele_posix_tree_find(tree, part, &index))
		return;
	if (part->part == STELE_PART_FILES)
		tree->files[index].offset = part->offset;
	else
		tree->directories[index] = part->offset;
	tree->inode_count += part->inode_count;
	if (part->offset + part->size > tree->end)
		tree->end = part->offset + part->size;
}

bool stele_posix_tree_is_placed(const struct stele_posix_tree *tree,
				enum stele_catalog_part part, uint32_t index)
{
	return part == STELE_PART_FILES ? tree->files[index].offset : tree->directories[index];
}

/* ---- parts -------------------------------------------------------------------- */

int stele_posix_part_plan(struct stele_posix_tree *tree, enum stele_catalog_part part,
			  uint32_t index, struct stele_catalog_segment *out)
{
	*out = (struct stele_catalog_segment){.part = part};
	switch (part) {
	case STELE_PART_FILES:
		out->of = tree->segments[index].id;
		return stele_posix_files_plan(tree, index, out);
	case STELE_PART_DIRECTORIES:
		out->of = tree->snapshots[index].id;
		return stele_posix_directories_plan(tree, index, out);
	default:
		return stele_posix_root_plan(tree, out);
	}
}

static int check_end(const struct stele_posix_tree *tree,
		     const struct stele_catalog_segment *part)
{
	if ((part->offset + part->size) >> tree->block_bits <= STELE_EROFS_BLOCK_MAX)
		return 0;
	stele_log_error(&tree->image->log,
			"the tree of files would lie beyond 2^32 blocks of %u bytes",
			stele_posix_block_size(tree));
	return -EFBIG;
}

static int run(struct stele_posix_tree *tree, const struct stele_catalog_segment *part,
	       uint64_t *differs)
{
	const struct stele_posix_output out = {tree->image->dev, differs};
	uint32_t index = 0;
	int ret = check_end(tree, part);

	if (ret < 0)
		return ret;
	if (part->part == STELE_PART_ROOT)
		return stele_posix_root_put(tree, part, &out);
	if (!stele_posix_tree_find(tree, part, &index))
		return -EINVAL;
	return part->part == STELE_PART_FILES ?
		       stele_posix_files_put(tree, index, part, &out) :
		       stele_posix_directories_put(tree, index, part, &out);
}

int stele_posix_part_write(struct stele_posix_tree *tree,
			   const struct stele_catalog_segment *part)
{
	return run(tree, part, NULL);
}

int stele_posix_part_check(struct stele_posix_tree *tree,
			   const struct stele_catalog_segment *part, uint64_t *differs)
{
	*differs = part->offset;
	return run(tree, part, differs);
}
