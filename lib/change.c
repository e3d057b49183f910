/* SPDX-License-Identifier: Apache-2.0 */
/*
 * change.c - snapshots come, get other names, and go
 */
#include "lib/stele.h"

#include <errno.h>

int stele_snapshot_create(const char *target, const char *base,
			  const struct stele_key_ref *deleted, size_t deleted_count,
			  const struct stele_change_opts *opts,
			  struct stele_snapshot_info *out)
{
	(void)target;
	(void)base;
	(void)deleted;
	(void)deleted_count;
	(void)opts;
	(void)out;
	return -EOPNOTSUPP;
}

int stele_snapshot_rename(const char *target, const char *name,
			  const struct stele_change_opts *opts)
{
	(void)target;
	(void)name;
	(void)opts;
	return -EOPNOTSUPP;
}

int stele_snapshot_delete(const char *target,
			  const struct stele_change_opts *opts)
{
	(void)target;
	(void)opts;
	return -EOPNOTSUPP;
}
