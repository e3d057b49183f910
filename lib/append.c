/* SPDX-License-Identifier: Apache-2.0 */
/*
 * append.c - a new snapshot: an old one, and what a source has more
 */
#include "lib/stele.h"

#include <errno.h>

int stele_append(const char *source, const char *target,
		 const struct stele_build_opts *opts,
		 struct stele_append_report *report)
{
	(void)source;
	(void)target;
	(void)opts;
	(void)report;
	return -EOPNOTSUPP;
}
