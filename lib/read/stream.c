/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - one sample, piece by piece
 */
#include "lib/read/dataset.h"

#include <errno.h>

int stele_dataset_stream(struct stele_dataset *ds, uint64_t id,
			 stele_stream_fn fn, void *user)
{
	(void)ds;
	(void)id;
	(void)fn;
	(void)user;
	return -EOPNOTSUPP;
}
