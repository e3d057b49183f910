/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_rbd.c - an RBD image that a build may overwrite; see claim.h
 *
 * Overwriting the head does not harm RBD snapshots. Yet those through which the
 * snapshots of an older image of ours were read are of no use any more, and occupy
 * names that new ones may need, so they are removed with it. An RBD snapshot is ours
 * if the image in it says so.
 */
#include "lib/txn/claim.h"

#include <errno.h>
#include <string.h>

#include "lib/device/rehearsal.h"
#include "lib/image/snapshot.h"
#include "lib/txn/rbd.h"

int stele_claim_open_rbd(struct stele_claim *claim,
			 const struct stele_claim_opts *opts)
{
	uint32_t object = opts->object_size ? opts->object_size :
					      STELE_OBJECT_SIZE_DEFAULT;
	uint64_t size = opts->file_size;
	int ret;

	if (!size)
		size = round_up(opts->needed, object);
	ret = stele_device_create(claim->path, claim->dry ? 0 : size, object,
				  &claim->log);
	if (ret < 0 && ret != -EEXIST)
		return ret;
	claim->created = !ret;
	claim->size = size;
	if (claim->dry && claim->created)
		return stele_rehearsal_create(claim->path, size, object,
					      &claim->log, &claim->dev);
	ret = stele_device_open(claim->path, NULL,
				STELE_DEVICE_WRITE | STELE_DEVICE_EXCL, NULL,
				&claim->log, &claim->dev);
	return ret ? ret : stele_device_size(claim->dev, &claim->size);
}

/* ---- whose RBD snapshots are there? ------------------------------------------------ */

/* By its name, or by what a tombstoned one was called. */
static bool has_snapshot(const struct stele_image *image, const char *snap)
{
	const char *name;
	int64_t until;
	uint32_t index;

	return !stele_snapshot_find(image, snap, NULL, &index) ||
	       (stele_tombstone_parse(snap, &until, &name) &&
		!stele_snapshot_find(image, name, NULL, &index));
}

/* Takes the device. */
static bool image_has(struct stele_device *dev, const char *snap)
{
	struct stele_image image;
	bool has;

	if (stele_image_load(dev, NULL, &image)) {
		stele_device_close(dev);
		return false;
	}
	has = has_snapshot(&image, snap);
	stele_image_release(&image);
	return has;
}

/*
 * By what the RBD snapshot itself holds; one that was left unprotected, and so cannot
 * be opened, by what the head holds.
 */
static bool is_ours(struct stele_claim *claim, const char *snap)
{
	struct stele_device *dev;
	int ret;

	ret = stele_device_open(claim->path, snap, 0, NULL, NULL, &dev);
	if (ret == -EPERM)
		ret = stele_device_open(claim->path, NULL, 0, NULL, NULL, &dev);
	return ret ? false : image_has(dev, snap);
}

static int judge(struct stele_claim *claim, const char *snapshot, const char *name)
{
	if (!claim->force) {
		stele_log_error(&claim->log,
				"'%s' has an RBD snapshot '%s' ('rbd snap ls')",
				claim->path, name);
		return -EEXIST;
	}
	if (is_ours(claim, name))
		return stele_rbd_snaps_add(&claim->old_snaps, name, 0, true);
	if (snapshot && !strcmp(name, snapshot)) {
		stele_log_error(&claim->log,
				"'%s' has an RBD snapshot '%s' that no image of "
				"ours made; take another name for the snapshot",
				claim->path, name);
		return -EEXIST;
	}
	return 0;
}

int stele_claim_check_snaps(struct stele_claim *claim, const char *snapshot)
{
	struct stele_rbd_snaps snaps;
	int ret = stele_device_snaps(claim->dev)->list(claim->dev, &snaps);

	if (ret)
		return ret;
	for (size_t i = 0; i < snaps.count; i++)
		if (!ret || (ret == -EEXIST && !claim->force))
			ret = judge(claim, snapshot, snaps.list[i].name);
	stele_rbd_snaps_release(&snaps);
	return ret;
}

/* ---- overwrite ------------------------------------------------------------- */

/* Each may refuse to lose its protection; then those before it get it back. */
int stele_claim_remove_snaps(const struct stele_claim *claim, struct stele_device *dev)
{
	const struct stele_rbd_snap_ops *ops = stele_device_snaps(dev);
	const struct stele_rbd_snap *old = claim->old_snaps.list;
	size_t open = 0;
	int ret = 0;

	while (!ret && open < claim->old_snaps.count) {
		ret = ops->protect(dev, old[open].name, false);
		open += !ret;
	}
	for (size_t i = 0; i < open; i++) {
		if (ret)
			ops->protect(dev, old[i].name, true);
		else
			ret = ops->remove(dev, old[i].name);
	}
	return ret;
}

int stele_claim_empty_rbd(struct stele_claim *claim, uint64_t size)
{
	int ret = 0;

	if (!claim->created && claim->size)
		ret = stele_device_resize(claim->dev, 0);
	if (!ret && (!claim->created || size != claim->size))
		ret = stele_device_resize(claim->dev, size);
	return ret;
}
