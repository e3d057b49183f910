/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - does an image conform to the format, down to the last byte?
 *
 * Every checksum, digest and invariant; after damage it continues wherever
 * possible. One call of opts->damage for each damaged item, one at a time, from
 * any of its threads. Memory is bounded for any image: buffers, and 16
 * bytes for each of at most 2^24 samples at a time (a larger segment is
 * checked in several passes over its keys).
 */
#ifndef STELE_VERIFY_VERIFY_H
#define STELE_VERIFY_VERIFY_H

#include "lib/image/image.h"

/*
 * `snapshot`: its index in the catalog, or -1 for all, and for segments that
 * none references. Counts are added to *report.
 * Return: 0 sound; 1 damage; -EAGAIN (somebody has committed since the load: begin
 * again); -ECANCELED; -ENOMEM; errno of the queue.
 */
int stele_verify_image(struct stele_image *image, int64_t snapshot,
		       const struct stele_verify_opts *opts,
		       struct stele_verify_report *report);
/*
 * Of an image that cannot be loaded because of its contents, with `error` and `why`: what is
 * damaged. Return: 1; otherwise as above.
 */
int stele_verify_lost(struct stele_device *dev, int error, const char *why,
		      const struct stele_verify_opts *opts,
		      struct stele_verify_report *report);

#endif
