/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.c - one snapshot, laid out anew as one segment
 */
#include "lib/stele.h"

#include <errno.h>

int stele_compact(const char *target, const char *name,
		  const struct stele_build_opts *opts,
		  struct stele_build_report *report)
{
	(void)target;
	(void)name;
	(void)opts;
	(void)report;
	return -EOPNOTSUPP;
}
