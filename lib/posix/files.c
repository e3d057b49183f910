/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - the inodes of a segment's samples
 *
 * By number, of all that have a key: which of them a snapshot names is for its directories to
 * say, now or later.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/image/section.h"
#include "lib/posix/part.h"

#define COMPACT_MAX UINT64_C(0xffffffff) /* bytes of the file of a compact inode */
#define NO_FILE	    UINT64_MAX		 /* in place of a size */

uint32_t stele_posix_files_nids(const struct stele_segment *segment)
{
	for (uint32_t i = 0; i < segment->descriptor.run_count; i++)
		if (segment->runs[i].slot_size > COMPACT_MAX)
			return 2;
	return 1;
}

int stele_posix_files_block(const struct stele_posix_tree *tree,
			    const struct stele_segment *segment, uint64_t number,
			    uint64_t size, uint32_t *block)
{
	uint64_t offset, slot_size;

	stele_segment_slot(segment, number, &offset, &slot_size);
	if (size > slot_size) {
		stele_log_error(&tree->image->log,
				"segment %016" PRIx64 ": sample %" PRIu64
				" is larger than its slot",
				segment->descriptor.id, number);
		return -EUCLEAN;
	}
	if ((offset + slot_size) >> tree->block_bits > STELE_EROFS_BLOCK_MAX)
		return -ERANGE;
	*block = (uint32_t)(offset >> tree->block_bits);
	return 0;
}

int stele_posix_files_plan(const struct stele_posix_tree *tree, uint32_t segment,
			   struct stele_catalog_segment *out)
{
	const uint64_t count = tree->segments[segment].sample_count;
	const uint64_t size = count * tree->files[segment].nids * STELE_EROFS_NID_SIZE;

	/* An extent is of one block, at least. */
	out->size = size ? round_up(size, STELE_BLOCK_SIZE) : STELE_BLOCK_SIZE;
	out->inode_count = count;
	return 0;
}

/* By number, malloced. */
static int load_sizes(const struct stele_posix_tree *tree, const struct stele_segment *segment,
		      uint64_t **out)
{
	const uint64_t count = segment->descriptor.sample_count;
	uint64_t *sizes = malloc((count + 1) * sizeof(*sizes));
	struct stele_keys_walk walk = {0};
	int ret = sizes ? 0 : -ENOMEM;

	*out = sizes;
	for (uint64_t i = 0; ret == 0 && i < count; i++)
		sizes[i] = NO_FILE;
	if (ret == 0)
		ret = stele_keys_walk_open(tree->image, segment, NULL, 0, &walk);
	while (ret == 0 && (ret = stele_keys_walk_next(&walk)) > 0) {
		const struct stele_key *key = &walk.cursor.key;

		ret = key->number < count ? 0 : -EUCLEAN;
		if (ret == 0)
			sizes[key->number] = key->size;
	}
	stele_keys_walk_release(&walk);
	return ret;
}

/* What is put. */
struct work {
	const struct stele_posix_tree *tree;
	const struct stele_segment *segment;
	const uint64_t *sizes;
	uint32_t nids;
};

/* Zeros, of what cannot be a file. */
static int put_file(const struct work *w, uint64_t number, uint64_t offset, uint8_t *out)
{
	struct stele_erofs_inode inode = {
		.type = STELE_EROFS_FILE,
		.extended = w->nids > 1,
		.link_count = 1,
		.size = w->sizes[number],
		.time = w->tree->image->sb.create_time,
	};
	int ret = -ERANGE;

	if (inode.size != NO_FILE)
		ret = stele_posix_files_block(w->tree, w->segment, number, inode.size,
					      &inode.block);
	if (ret == 0)
		stele_erofs_inode_encode(&inode, offset / STELE_EROFS_NID_SIZE, out);
	return ret == -ERANGE ? 0 : ret;
}

static int put_all(const struct work *w, struct stele_posix_area *area)
{
	const uint64_t count = w->segment->descriptor.sample_count;
	int ret = 0;

	if (!count) /* a block of its own, all the same */
		stele_posix_area_take(area, STELE_BLOCK_SIZE, &ret);
	for (uint64_t i = 0; ret == 0 && i < count; i++) {
		uint8_t *out = stele_posix_area_take(area, w->nids * STELE_EROFS_NID_SIZE, &ret);

		if (out)
			ret = put_file(w, i, stele_posix_area_at(area, out), out);
	}
	return ret < 0 ? ret : stele_posix_area_flush(area);
}

int stele_posix_files_put(const struct stele_posix_tree *tree, uint32_t segment,
			  const struct stele_catalog_segment *part,
			  const struct stele_posix_output *out)
{
	struct stele_posix_area area = {0};
	struct stele_segment loaded;
	uint64_t *sizes = NULL;
	int ret = stele_segment_load_bare(tree->image, &tree->segments[segment], &loaded);

	if (ret < 0)
		return ret;
	ret = load_sizes(tree, &loaded, &sizes);
	if (ret == 0)
		ret = stele_posix_area_begin(&area, out, part->offset);
	if (ret == 0)
		ret = put_all(&(struct work){tree, &loaded, sizes, tree->files[segment].nids},
			      &area);
	stele_posix_area_release(&area);
	free(sizes);
	stele_segment_release(&loaded);
	return ret;
}
