/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.c - what two snapshots have different
 */
#include "lib/stele.h"

#include <errno.h>

int stele_diff(const char *a, const char *b, stele_difference_fn fn, void *user,
	       const struct stele_open_opts *opts,
	       struct stele_diff_report *report)
{
	(void)a;
	(void)b;
	(void)fn;
	(void)user;
	(void)opts;
	(void)report;
	return -EOPNOTSUPP;
}
