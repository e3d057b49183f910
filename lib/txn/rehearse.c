/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rehearse.c - a second transaction that stands where one stands, and writes nothing
 *
 * It has a copy of the catalog as the next commit shall have it, and of the space handed
 * out, on a device that keeps what is written over the device of the first.
 */
#include "lib/txn/txn.h"

#include <errno.h>
#include <string.h>

#include "lib/device/rehearsal.h"

static int copy_extents(const struct stele_extents *from,
			struct stele_extents *to)
{
	int ret = 0;

	stele_extents_release(to);
	for (uint32_t i = 0; i < from->count && ret == 0; i++)
		ret = stele_extents_add(to, from->list[i].offset,
					from->list[i].size);
	return ret;
}

static int copy_changes(const struct stele_txn *from, struct stele_txn *to)
{
	int ret = stele_txn_copy_catalog(from, to);

	to->feature_incompat = from->feature_incompat;
	to->posix = from->posix;
	to->renew = from->renew;
	to->image_size = from->image_size;
	to->sized = from->sized;
	to->time = from->time;
	to->force = from->force;
	to->revoke = from->revoke;
	to->grace = from->grace;
	to->takes = from->takes;
	to->stale = from->stale;
	to->state = from->state;
	to->frees = from->frees;
	to->freed_size = from->freed_size;
	if (ret == 0)
		ret = stele_rbd_snaps_copy(&to->tombstones, &from->tombstones);
	if (ret == 0)
		ret = copy_extents(&from->used, &to->used);
	return ret;
}

int stele_txn_rehearse(struct stele_txn *txn, struct stele_txn *out)
{
	struct stele_device *dev;
	int ret;

	memset(out, 0, sizeof(*out));
	if (txn->state != STELE_TXN_CLEAN && txn->state != STELE_TXN_DIRTY)
		return -EINVAL;
	ret = stele_rehearsal_over(txn->image->dev, &dev);
	if (ret < 0)
		return ret;
	ret = stele_txn_reload(out, dev, txn->image);
	if (ret < 0)
		return ret;
	out->log = out->own.log = txn->log;
	out->own.generation_max = txn->image->generation_max;
	if (txn->target.path)
		out->target.path = strdup(txn->target.path);
	return copy_changes(txn, out);
}
