/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rbd.c - list, make, protect, tombstone, remove
 */
#include "lib/txn/rbd.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX	  STELE_NAME_RESERVED
#define NAME_SIZE 128u /* with terminator */
/* Of one name, tombstoned until the same second. */
#define ATTEMPTS_MAX 100

static int load_snaps(struct stele_txn *txn, struct stele_rbd_snaps *snaps)
{
	struct stele_device *dev = txn->image->dev;
	int ret = stele_device_snaps(dev)->list(dev, snaps);

	if (ret < 0)
		stele_log_error(&txn->log, "cannot list RBD snapshots: %s",
				stele_strerror(ret));
	return ret;
}

/* Make and protect, or whichever is missing. */
static int complete(struct stele_txn *txn, const char *name,
		    const struct stele_rbd_snap *snap)
{
	struct stele_device *dev = txn->image->dev;
	const struct stele_rbd_snap_ops *ops = stele_device_snaps(dev);
	int ret = 0;

	if (snap && snap->is_protected)
		return 0;
	if (!snap)
		ret = ops->make(dev, name);
	if (ret == 0)
		ret = ops->protect(dev, name, true);
	if (ret < 0)
		stele_log_error(&txn->log,
				"snapshot '%s' is committed, but its RBD "
				"snapshot is not complete, so that nobody can "
				"open it yet: %s; the next change to the image "
				"completes it",
				name, stele_strerror(ret));
	return ret;
}

int stele_rbd_complete(struct stele_txn *txn)
{
	struct stele_rbd_snaps snaps = {0};
	int error = 0, ret;

	if (!stele_device_snaps(txn->image->dev))
		return 0;
	ret = load_snaps(txn, &snaps);
	for (uint32_t i = 0; ret == 0 && i < txn->snapshot_count; i++) {
		const char *name = txn->snapshots[i].info.name;
		int failed = complete(txn, name, stele_rbd_snaps_find(&snaps, name));

		if (error == 0)
			error = failed;
	}
	stele_rbd_snaps_release(&snaps);
	return ret < 0 ? ret : error;
}

/* Does the catalog that is on the device have it? Then its RBD snapshot is ours. */
static bool is_committed(const struct stele_txn *txn, const char *name)
{
	struct stele_catalog_snapshot snapshot;

	for (uint32_t i = 0; i < txn->image->catalog.counts.snapshots; i++) {
		stele_catalog_snapshot(&txn->image->catalog, i, &snapshot);
		if (!strcmp(snapshot.name, name))
			return true;
	}
	return false;
}

static int check_name(struct stele_txn *txn, const struct stele_rbd_snaps *snaps,
		      const char *name)
{
	if (is_committed(txn, name) || !stele_rbd_snaps_find(snaps, name))
		return 0;
	stele_log_error(&txn->log,
			"there is an RBD snapshot '%s' that is none of ours: "
			"take another name, or remove it",
			name);
	return -EEXIST;
}

int stele_rbd_check_names(struct stele_txn *txn, const char *name)
{
	struct stele_rbd_snaps snaps = {0};
	int ret;

	if (!stele_device_snaps(txn->image->dev))
		return 0;
	ret = load_snaps(txn, &snaps);
	if (ret == 0 && name)
		ret = check_name(txn, &snaps, name);
	for (uint32_t i = 0; !name && ret == 0 && i < txn->snapshot_count; i++)
		ret = check_name(txn, &snaps, txn->snapshots[i].info.name);
	stele_rbd_snaps_release(&snaps);
	return ret;
}

/* ---- snapshots that go ------------------------------------------------------ */

bool stele_tombstone_parse(const char *text, int64_t *until, const char **name)
{
	const char *digits = text + strlen(PREFIX);
	char *end;
	long long value;

	if (strncmp(text, PREFIX, strlen(PREFIX)) != 0 ||
	    !isdigit((unsigned char)*digits))
		return false;
	errno = 0;
	value = strtoll(digits, &end, 10);
	if (errno || *end != '-' || !end[1])
		return false;
	*until = value;
	if (name)
		*name = end + 1;
	return true;
}

/*
 * Tombstone that of snapshot `name`. None is a success: it was made half, or is
 * tombstoned already. Return: 0; errno of the storage (logged).
 */
static int make_tombstone(struct stele_device *dev, const struct stele_log *log,
			  const char *name, int64_t until)
{
	const struct stele_rbd_snap_ops *snaps = stele_device_snaps(dev);
	char to[NAME_SIZE];
	int ret = -EEXIST;

	for (int i = 0; i < ATTEMPTS_MAX && ret == -EEXIST; i++) {
		snprintf(to, sizeof(to), PREFIX "%" PRId64 "-%s",
			 until + i, name);
		ret = snaps->rename(dev, name, to);
	}
	if (ret < 0 && ret != -ENOENT)
		stele_log_error(log, "cannot tombstone RBD snapshot '%s': %s", name,
				stele_strerror(ret));
	return ret == -ENOENT ? 0 : ret;
}

int stele_rbd_remove(struct stele_device *dev,
			   const struct stele_log *log, const char *name)
{
	const struct stele_rbd_snap_ops *snaps = stele_device_snaps(dev);
	int ret = snaps->protect(dev, name, false);

	if (ret == -ENOENT)
		return 0;
	if (ret == 0 || ret == -EINVAL) /* it was not protected */
		ret = snaps->remove(dev, name);
	if (ret < 0 && ret != -ENOENT) {
		stele_log_error(log, "cannot remove RBD snapshot '%s': %s", name,
				stele_strerror(ret));
		snaps->protect(dev, name, true);
	}
	return ret == -ENOENT ? 0 : ret;
}

static bool stays(const struct stele_txn *txn,
		  const struct stele_catalog_snapshot *old)
{
	for (uint32_t i = 0; i < txn->snapshot_count; i++)
		if (txn->snapshots[i].info.id == old->id)
			return !strcmp(txn->snapshots[i].info.name, old->name);
	return false;
}

int stele_rbd_drop(struct stele_txn *txn, int64_t time)
{
	struct stele_device *dev = txn->image->dev;
	const uint32_t count = txn->image->catalog.counts.snapshots;
	int ret = 0;

	if (!stele_device_snaps(dev))
		return 0;
	for (uint32_t i = 0; ret == 0 && i < count; i++) {
		struct stele_catalog_snapshot old;

		stele_catalog_snapshot(&txn->image->catalog, i, &old);
		if (stays(txn, &old))
			continue;
		if (txn->revoke)
			ret = stele_rbd_remove(dev, &txn->log, old.name);
		else
			ret = make_tombstone(dev, &txn->log, old.name,
					     time + (int64_t)txn->grace);
	}
	return ret;
}
