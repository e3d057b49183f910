/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare.c - what the superblock copies of a target lead to, and must stay
 *
 * Recovery may come to take any ready copy that decodes, if those above it are
 * lost, and its catalog decodes; a slot whose mirror was not written may lead to
 * two generations. So all four are followed, and a witness of what no copy shows. A catalog of
 * an older generation that was read and is wrong can lead nowhere any more.
 */
#include "lib/txn/txn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/image/catalog.h"
#include "lib/image/copies.h"

/* One that cannot be read may be newer than all others. */
static int check_readable(const struct stele_image *image,
			  const struct stele_copies *copies)
{
	for (unsigned int i = 0; i < STELE_SUPERBLOCK_COPIES; i++) {
		const struct stele_copy *copy = &copies->copy[i];

		if (!copy->error || stele_error_of_content(copy->error))
			continue;
		stele_log_error(&image->log,
				"superblock copy %u at byte %" PRIu64
				" cannot be judged, so the image is not "
				"changed: %s",
				i, copy->offset, copy->why);
		return copy->error;
	}
	return 0;
}

int stele_image_check_fresh(const struct stele_image *image,
			    struct stele_copies *now)
{
	int ret = stele_copies_read(image->dev, now);

	if (ret == 0)
		ret = stele_copies_compare(&image->copies, now);
	if (ret == -ESTALE)
		stele_log_error(&image->log, "the image was changed by "
					     "somebody else meanwhile");
	return ret;
}

static bool is_selected(const struct stele_image *image,
			const struct stele_superblock *sb)
{
	return sb->generation == image->sb.generation &&
	       sb->catalog_offset == image->sb.catalog_offset &&
	       sb->catalog_crc == image->sb.catalog_crc &&
	       !memcmp(sb->uuid, image->sb.uuid, sizeof(sb->uuid));
}

/* All that may be in use, as far as the image reaches. */
static int add_whole(struct stele_extents *extents,
		     const struct stele_image *image,
		     const struct stele_superblock *sb)
{
	stele_log_warning(&image->log,
			  "the catalog of generation %" PRIu64 " at %" PRIu64
			  " is damaged: space below %" PRIu64
			  ", which it may refer to, is not reused yet",
			  sb->generation, sb->catalog_offset, sb->high_water);
	return stele_extents_add(extents, STELE_DATA_OFFSET,
				 sb->high_water - STELE_DATA_OFFSET);
}

static int add_copy(struct stele_extents *extents, struct stele_image *image,
		    const struct stele_superblock *sb)
{
	struct stele_catalog catalog;
	const char *why;
	void *blocks;
	int ret = stele_catalog_load(image->dev, sb, &blocks, &catalog, &why);

	if (ret == 0)
		ret = stele_extents_add_catalog(extents, &catalog, sb);
	else if (ret == -ENOMEM)
		; /* it may well be sound */
	else if (!stele_error_of_content(ret) ||
		 sb->generation > image->sb.generation)
		ret = add_whole(extents, image, sb);
	else
		ret = 0;
	free(blocks);
	return ret;
}

int stele_extents_add_copies(struct stele_extents *extents,
			     struct stele_image *image)
{
	struct stele_copies copies;
	int ret;

	ret = stele_image_check_fresh(image, &copies);
	if (ret == 0)
		ret = check_readable(image, &copies);
	for (unsigned int i = 0; ret == 0 && i < STELE_SUPERBLOCKS; i++) {
		const struct stele_superblock *sb = &copies.copy[i].sb;

		if (copies.copy[i].error || sb->state != STELE_STATE_READY)
			continue;
		/* Its mirror mostly says the same. */
		if (i >= 2 && !copies.copy[i - 2].error &&
		    stele_superblock_same(sb, &copies.copy[i - 2].sb))
			continue;
		if (is_selected(image, sb))
			ret = stele_extents_add_catalog(extents,
							&image->catalog, sb);
		else
			ret = add_copy(extents, image, sb);
	}
	return ret;
}

static int remove_all(struct stele_extents *extents,
		      const struct stele_extents *others)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < others->count; i++)
		ret = stele_extents_remove(extents, others->list[i].offset,
					   others->list[i].size);
	return ret;
}

int stele_image_kept_size(struct stele_image *image, uint64_t *size)
{
	struct stele_extents kept = {0}, own = {0};
	struct stele_copies copies;
	int ret = stele_copies_read(image->dev, &copies);

	*size = 0;
	if (ret == 0)
		ret = stele_extents_add_copies(&kept, image);
	if (ret == 0)
		ret = stele_extents_add_catalog(&own, &image->catalog,
						&image->sb);
	for (unsigned int i = 0; ret == 0 && i < STELE_SUPERBLOCKS; i++)
		if (copies.copy[i].error == 0)
			ret = stele_extents_add(&own,
						copies.copy[i].sb.catalog_offset,
						copies.copy[i].sb.catalog_size);
	if (ret == 0)
		ret = remove_all(&kept, &own);
	for (uint32_t i = 0; ret == 0 && i < kept.count; i++)
		*size += kept.list[i].size;
	stele_extents_release(&kept);
	stele_extents_release(&own);
	return ret;
}
