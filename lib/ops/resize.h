/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.h - an image follows its target, on an open writer
 */
#ifndef STELE_OPS_RESIZE_H
#define STELE_OPS_RESIZE_H

#include "lib/txn/change.h"

/* As stele_resize(). */
int stele_change_resize(struct stele_writer *writer,
			const struct stele_change *change, uint64_t size,
			struct stele_resize_report *report);

#endif
