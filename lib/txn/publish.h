/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.h - the shot of a snapshot that has just been built
 *
 * Where the storage keeps shots, a snapshot is read by a protected one of its
 * name, made after the commit. What is left undone the next writer does, see
 * writer.h, by which images are changed later.
 */
#ifndef STELE_TXN_PUBLISH_H
#define STELE_TXN_PUBLISH_H

#include "lib/device/device.h"

/* Nothing where there are no shots. 0; errno (logged). */
int stele_shots_publish(struct stele_device *dev, const char *name);

#endif
