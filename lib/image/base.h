/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h - the snapshot that a new one is made from
 */
#ifndef STELE_IMAGE_BASE_H
#define STELE_IMAGE_BASE_H

#include "lib/image/snapshot.h"

struct stele_base {
	struct stele_image *image; /* the caller's, as the snapshot */
	const struct stele_snapshot *snapshot; /* NULL: nothing */
};

#endif
