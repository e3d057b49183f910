/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.c - what leads to all snapshots: the front, and the entries of the root
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/posix/part.h"

static int fill(const struct stele_posix_tree *tree, struct stele_posix_directory *root)
{
	int ret = stele_posix_directory_begin(root, STELE_EROFS_ROOT_NID, STELE_EROFS_ROOT_NID);

	for (uint32_t i = 0; ret == 0 && i < tree->snapshot_count; i++) {
		const char *name = tree->snapshots[i].name;

		ret = stele_posix_directory_add(root, name, (uint32_t)strlen(name),
						STELE_EROFS_DIRECTORY,
						tree->directories[i] / STELE_EROFS_NID_SIZE);
	}
	stele_posix_directory_end(root);
	return ret;
}

int stele_posix_root_plan(const struct stele_posix_tree *tree, struct stele_catalog_segment *out)
{
	const uint32_t block = stele_posix_block_size(tree);
	struct stele_posix_directory root = {0};
	int ret = fill(tree, &root);

	out->inode_count = 1;
	out->size = STELE_BLOCK_SIZE +
		    round_up(stele_posix_directory_size(&root, block), STELE_BLOCK_SIZE);
	stele_posix_directory_release(&root);
	return ret;
}

/* That of the newest snapshot. */
static int64_t time_of(const struct stele_posix_tree *tree)
{
	int64_t time = 0;

	for (uint32_t i = 0; i < tree->snapshot_count; i++)
		if (tree->snapshots[i].time > time)
			time = tree->snapshots[i].time;
	return time;
}

/* The blocks that anything of it may have: of nothing that may change without it. */
static uint32_t count_blocks(const struct stele_posix_tree *tree,
			     const struct stele_catalog_segment *part)
{
	const uint64_t own = part->offset + part->size;
	const uint64_t end = (own > tree->end ? own : tree->end) >> tree->block_bits;

	return end < UINT32_MAX ? (uint32_t)end : UINT32_MAX;
}

static int put_front(const struct stele_posix_tree *tree,
		     const struct stele_catalog_segment *part,
		     const struct stele_erofs_inode *root, const struct stele_posix_output *out)
{
	struct stele_erofs_super super = {
		.block_bits = tree->block_bits,
		.block_count = count_blocks(tree, part),
		.inode_count = tree->inode_count + part->inode_count,
		.time = tree->image->sb.create_time,
	};
	void *block = stele_device_alloc(out->dev, STELE_BLOCK_SIZE);
	int ret;

	if (!block)
		return -ENOMEM;
	memset(block, 0, STELE_BLOCK_SIZE);
	memcpy(super.uuid, tree->image->sb.uuid, sizeof(super.uuid));
	memcpy(super.volume, tree->image->sb.label, STELE_EROFS_VOLUME_SIZE);
	stele_erofs_front_encode(&super, root, block);
	ret = stele_posix_put(out, block, part->offset, STELE_BLOCK_SIZE);
	free(block);
	return ret;
}

int stele_posix_root_put(const struct stele_posix_tree *tree,
			 const struct stele_catalog_segment *part,
			 const struct stele_posix_output *out)
{
	struct stele_posix_directory root = {0};
	struct stele_posix_area area = {0};
	struct stele_erofs_inode inode;
	int ret = fill(tree, &root);

	if (ret == 0)
		ret = stele_posix_area_begin(&area, out, part->offset + STELE_BLOCK_SIZE);
	if (ret == 0)
		ret = stele_posix_directory_put(&root, stele_posix_block_size(tree), &area,
						&inode);
	if (ret == 0)
		ret = stele_posix_area_flush(&area);
	if (ret == 0) {
		inode.time = time_of(tree);
		ret = put_front(tree, part, &inode, out);
	}
	stele_posix_area_release(&area);
	stele_posix_directory_release(&root);
	return ret;
}
