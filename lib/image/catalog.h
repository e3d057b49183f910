/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog.h - the catalog of a superblock, read from where it is, or from its mirror
 *
 * A single bad block must not cost every snapshot of a dataset. So a catalog that is not
 * unusually large is stored twice, and whoever reads one reads it through here. The mirror
 * is no part of the commit protocol: the next commit but one overwrites it while the
 * superblock that leads to it may still be there.
 */
#ifndef STELE_IMAGE_CATALOG_H
#define STELE_IMAGE_CATALOG_H

#include "format/catalog.h"
#include "lib/device/device.h"

/*
 * Into *blocks, which the caller frees if 0 was returned, and which `out` then refers to.
 * *why: what is wrong with it; with 0: NULL, or what is wrong with the place in use, in
 * whose stead its mirror was read.
 * Return: 0; as stele_lists_decode(); errno of the device. What holds for the catalog
 * itself, if neither can be used.
 */
int stele_catalog_load(struct stele_device *dev, const struct stele_superblock *sb,
		       void **blocks, struct stele_catalog *out, const char **why);

/* The same of one place alone: `sb` leads to it, see stele_superblock_mirrored(). */
int stele_catalog_load_place(struct stele_device *dev, const struct stele_superblock *sb,
			     void **blocks, struct stele_catalog *out, const char **why);

#endif
