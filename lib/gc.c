/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gc.c - the space of what no snapshot uses
 */
#include "lib/stele.h"

#include <errno.h>

int stele_gc(const char *target, const struct stele_change_opts *opts,
	     stele_gc_fn fn, void *user, struct stele_gc_report *report)
{
	(void)target;
	(void)opts;
	(void)fn;
	(void)user;
	(void)report;
	return -EOPNOTSUPP;
}
