/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shown.h - the tree that the catalog of an image leads to
 */
#ifndef STELE_POSIX_SHOWN_H
#define STELE_POSIX_SHOWN_H

#include "lib/image/image.h"

/* False: it has none that is in use. */
bool stele_posix_find(const struct stele_image *image, struct stele_catalog_segment *out);
/*
 * Are its blocks as large as those of the device, as a kernel wants them? False: they are
 * not, or cannot be read, or there is no tree. One that came with its image may be so.
 */
bool stele_posix_fits(const struct stele_image *image);
/*
 * Is it what the catalog's snapshots make, byte for byte? Return: 0 (also: there is none);
 * -EUCLEAN (no, and *differs says where on the target); errors of stele_posix_tree_plan().
 */
int stele_posix_check(struct stele_image *image, uint64_t *differs);

#endif
