/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - an image on a device that may be overwritten as a whole
 */
#ifndef STELE_OPS_BUILD_H
#define STELE_OPS_BUILD_H

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
 * Plan and write, onto a device that stays the caller's. For tests: any source, any
 * device. -ENOSPC comes before a byte is written.
 */
int stele_build_on(struct stele_device *dev, const struct stele_source *source,
		   const char *snapshot, const struct stele_build_opts *opts,
		   struct stele_build_report *report);

#endif
