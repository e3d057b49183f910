/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stale.h - damaged, or gone?
 *
 * Readers are invisible, so what they read may be deleted under them, and its
 * space overwritten. A record's checksum is seeded with segment and number:
 * it then fails. Only the newest catalog (on RBD: the list of RBD
 * snapshots) can tell this from damage.
 */
#ifndef STELE_IMAGE_STALE_H
#define STELE_IMAGE_STALE_H

#include "lib/image/image.h"

/*
 * Reading a part of segment `id` at `offset` failed with `error`, twice if it was retried.
 * Does blocking I/O unless the error is of another kind, or staleness is
 * already known. Any thread.
 *
 * Return: -ESTALE (the segment, or the RBD snapshot that was opened, no longer
 * exists; logged once); else `error`.
 */
int stele_image_judge(const struct stele_image *image, uint64_t id,
		      uint64_t offset, int error);

#endif
