/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - an image follows its target
 */
#include "lib/stele.h"

#include <errno.h>

int stele_resize(const char *target, uint64_t size,
		 const struct stele_change_opts *opts,
		 struct stele_resize_report *report)
{
	(void)target;
	(void)size;
	(void)opts;
	(void)report;
	return -EOPNOTSUPP;
}
