/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.c - see catalog.h
 */
#include "lib/image/catalog.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/image/copies.h"
#include "lib/image/lists.h"

int stele_catalog_load_place(struct stele_device *dev, const struct stele_superblock *sb,
			     void **blocks, struct stele_catalog *out, const char **why)
{
	int ret;

	*why = "cannot be read";
	*blocks = stele_device_alloc(dev, sb->catalog_size);
	if (!*blocks)
		return -ENOMEM;
	ret = stele_device_read(dev, *blocks, sb->catalog_offset, sb->catalog_size);
	if (ret == 0)
		ret = stele_lists_decode(*blocks, sb->catalog_size, sb, out, why);
	if (ret == 0) {
		*why = NULL;
		return 0;
	}
	free(*blocks);
	*blocks = NULL;
	return ret;
}

int stele_catalog_load(struct stele_device *dev, const struct stele_superblock *sb,
		       void **blocks, struct stele_catalog *out, const char **why)
{
	int ret = stele_catalog_load_place(dev, sb, blocks, out, why);
	struct stele_superblock mirrored;
	const char *mirror_why;

	if (stele_error_of_blocks(dev, ret) && stele_superblock_mirrored(sb, &mirrored) &&
	    stele_catalog_load_place(dev, &mirrored, blocks, out, &mirror_why) == 0)
		ret = 0;
	return ret;
}
