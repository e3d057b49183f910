/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.h - the space of what no snapshot uses, on an open image
 */
#ifndef STELE_OPS_GC_H
#define STELE_OPS_GC_H

#include "lib/txn/change.h"

/* As stele_gc(). `writer` NULL: only say what could be done with `image`. */
int stele_gc_run(struct stele_image *image, struct stele_writer *writer,
		 const struct stele_change *change, stele_gc_fn fn, void *user,
		 struct stele_gc_report *report);

#endif
