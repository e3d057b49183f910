/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.h - the samples that a scan found, read when the image is written
 */
#ifndef STELE_CMD_FROM_READ_H
#define STELE_CMD_FROM_READ_H

#include "from/scan.h"

/* By kind; `user` is the struct from. */
extern const struct stele_source_ops *const from_read_ops[];

#endif
