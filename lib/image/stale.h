/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stale.h - damaged, or gone?
 *
 * Readers are invisible, so what they read may be deleted under them, and its
 * space be written anew. A record's checksum is seeded with segment and number:
 * it fails then. Only a look at the newest catalog (on storage that keeps
 * shots: at its list of them) tells this from damage.
 */
#ifndef STELE_IMAGE_STALE_H
#define STELE_IMAGE_STALE_H

#include "lib/image/image.h"

/*
 * Reading a part of the segment `id` at `offset` gave `error`, twice where that was tried.
 * Does blocking I/O unless the error is about something else, or staleness is
 * known. Any thread.
 *
 * Return: -ESTALE (the segment, or the shot that was opened, is not there any
 * more; logged once); else `error`.
 */
int stele_image_judge(const struct stele_image *image, uint64_t id,
		      uint64_t offset, int error);

#endif
