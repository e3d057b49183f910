/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - a snapshot to another target
 */
#include "lib/stele.h"

#include <errno.h>

int stele_copy(const char *source, const char *target,
	       const struct stele_copy_opts *opts,
	       struct stele_copy_report *report)
{
	(void)source;
	(void)target;
	(void)opts;
	(void)report;
	return -EOPNOTSUPP;
}
