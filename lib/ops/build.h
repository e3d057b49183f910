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
 * Plan and write, onto a device that stays the caller's. For tests: any source, any
 * device. -ENOSPC comes before a byte is written.
 */
int stele_build_on(struct stele_device *dev, const struct stele_source *source,
		   const char *snapshot, const struct stele_build_opts *opts,
		   struct stele_build_report *report);

#endif
