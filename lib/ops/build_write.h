/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build_write.h - a plan becomes an image on an opened device
 *
 * lib/ops/build.c decides whether a target may be overwritten; here that is
 * settled. From stele_build_write()'s first write to its commit the target is
 * an unfinished image.
 */
#ifndef STELE_OPS_BUILD_WRITE_H
#define STELE_OPS_BUILD_WRITE_H

#include "lib/device/device.h"
#include "lib/segment/plan.h"

#define STELE_SNAPSHOT_DEFAULT "v1"

/*
 * End of the image on its target when its snapshot has this note (NULL: none):
 * not one byte more will be written, unless samples go away meanwhile. The catalog of
 * a next generation has room before it.
 */
uint64_t stele_build_end(const struct stele_plan *plan, const char *note);

/*
 * Where a UUID was given, the same input shall be the same bytes: give the segment an id
 * that follows from all that it will hold. Reads the source once more, before anything
 * is written. Return: as stele_content_id().
 */
int stele_build_identify(struct stele_builder *builder, struct stele_plan *plan,
			 const struct stele_source *source);

/*
 * Write everything and commit. `image_size`: bytes of the target that the image may
 * use, whole blocks, at least stele_build_end(). The device stays the caller's.
 * Return: 0; -ENOSPC; -ECANCELED; a source's errno; the device's errno.
 */
int stele_build_write(struct stele_builder *builder, struct stele_plan *plan,
		      const struct stele_source *source, struct stele_device *dev,
		      const char *snapshot, uint64_t image_size);

/*
 * Plan and write, onto a device that may be overwritten as a whole. For
 * tests: any source, any device. -ENOSPC comes before a byte is written.
 */
int stele_build_on(struct stele_device *dev, const struct stele_source *source,
		   const char *snapshot, const struct stele_build_opts *opts,
		   struct stele_build_report *report);

#endif
