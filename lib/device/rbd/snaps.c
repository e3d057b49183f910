/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snaps.c - the RBD snapshots of an image, through librbd
 *
 * A reader of an RBD snapshot leaves no trace in the cluster, so readers never block
 * a change. A mapping by this machine's kernel does: it is refused before the RBD
 * snapshot loses its protection.
 */
#include "lib/device/rbd/rbd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/rbd/bound.h"

#define LIST_GUESS 64

/* ---- list ------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
	uint64_t left = ((const struct stele_rbd_snap *)a)->id;
	uint64_t right = ((const struct stele_rbd_snap *)b)->id;

	return left < right ? -1 : left > right;
}

/* Those of groups, mirrors and the trash are not named by anybody. */
static int add(struct stele_rbd_snaps *out, rbd_image_t image,
	       const rbd_snap_info_t *info)
{
	rbd_snap_namespace_type_t type;
	int flag = 0, rc;

	rc = stele_ceph_real.rbd_snap_get_namespace_type(image, info->id, &type);
	if (!rc && type != RBD_SNAP_NAMESPACE_TYPE_USER)
		return 0;
	if (!rc)
		rc = stele_ceph_real.rbd_snap_is_protected(image, info->name, &flag);
	if (rc)
		return rc == -ENOENT ? 0 : rc; /* removed meanwhile */
	return stele_rbd_snaps_add(out, info->name, info->id, flag);
}

static ssize_t run_list(struct stele_rbd_call *call)
{
	struct stele_rbd_snaps *out = call->out;
	rbd_snap_info_t *infos = NULL;
	int room = LIST_GUESS, count, rc;

	do {
		free(infos);
		infos = calloc((size_t)room, sizeof(*infos));
		if (!infos)
			return -ENOMEM;
		count = stele_ceph_real.rbd_snap_list(call->image, infos, &room);
	} while (count == -ERANGE);
	rc = count < 0 ? count : 0;
	for (int i = 0; i < count && !rc; i++)
		rc = add(out, call->image, &infos[i]);
	if (count >= 0)
		stele_ceph_real.rbd_snap_list_end(infos);
	free(infos);
	if (rc)
		stele_rbd_snaps_release(out);
	else if (out->count)
		qsort(out->list, out->count, sizeof(*out->list), by_id);
	return rc;
}

static void drop_list(struct stele_rbd_call *call)
{
	stele_rbd_snaps_release(call->out);
}

static int list(rbd_image_t image, struct stele_rbd_snaps *out)
{
	const struct stele_rbd_call call = {
		.image = image,
		.out = out,
		.size = sizeof(*out),
		.drop = drop_list,
	};

	memset(out, 0, sizeof(*out));
	return (int)stele_rbd_do(run_list, 0, &call);
}

int stele_rbd_snap_find(rbd_image_t image, const char *name, uint64_t *id,
			bool *is_protected)
{
	const struct stele_rbd_snap *snap;
	struct stele_rbd_snaps snaps;
	int rc = list(image, &snaps);

	if (rc)
		return rc;
	snap = name ? stele_rbd_snaps_find(&snaps, name) :
		      stele_rbd_snaps_find_id(&snaps, *id);
	if (snap) {
		*id = snap->id;
		*is_protected = snap->is_protected;
	}
	rc = snap ? 0 : -ENOENT;
	stele_rbd_snaps_release(&snaps);
	return rc;
}

static int snaps_list(struct stele_device *dev, struct stele_rbd_snaps *out)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_image_t image;
	int rc = stele_rbd_image(rbd, &image);

	if (rc)
		return rc;
	rc = list(image, out);
	return rc ? stele_rbd_explain(rbd, "list the RBD snapshots of", rc) : 0;
}

/* ---- change ---------------------------------------------------------------- */

/* "cannot remove RBD snapshot 'v1' of 'rbd:...': ..." */
static int explain(const struct stele_rbd *rbd, const char *what,
		   const char *name, int rc)
{
	char text[STELE_NAME_SIZE_MAX * 2 + 64];

	snprintf(text, sizeof(text), "%s RBD snapshot '%s' of", what, name);
	return stele_rbd_explain(rbd, text, rc);
}

static int snap_make(struct stele_device *dev, const char *name)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_image_t image;
	int rc = stele_rbd_writer_image(rbd, &image);

	if (!rc)
		rc = stele_ceph.rbd_snap_create(image, name);
	return rc ? explain(rbd, "make", name, rc) : 0;
}

static int unprotect(struct stele_rbd *rbd, rbd_image_t image, const char *name)
{
	int rc = stele_rbd_check_mapped(rbd, name);

	if (rc)
		return rc;
	rc = stele_ceph.rbd_snap_unprotect(image, name);
	if (rc != -EBUSY)
		return rc;
	stele_log_error(&rbd->base.log,
			"RBD snapshot '%s' of '%s' has clones ('rbd children "
			"%s@%s')",
			name, rbd->path, rbd->path + strlen(STELE_RBD_PREFIX),
			name);
	return rc;
}

static int snap_protect(struct stele_device *dev, const char *name, bool wanted)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_image_t image;
	int flag, rc = stele_rbd_writer_image(rbd, &image);

	if (!rc)
		rc = stele_ceph.rbd_snap_is_protected(image, name, &flag);
	if (rc)
		return explain(rbd, "protect", name, rc);
	if (!!flag == wanted)
		return 0;
	if (!wanted) {
		rc = unprotect(rbd, image, name);
		return rc && rc != -EBUSY ? explain(rbd, "unprotect", name, rc) :
					    rc;
	}
	rc = stele_ceph.rbd_snap_protect(image, name);
	return rc ? explain(rbd, "protect", name, rc) : 0;
}

static int snap_rename(struct stele_device *dev, const char *from,
			const char *to)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_image_t image;
	int rc = stele_rbd_writer_image(rbd, &image);

	if (!rc)
		rc = stele_ceph.rbd_snap_rename(image, from, to);
	return rc ? explain(rbd, "rename", from, rc) : 0;
}

static int snap_remove(struct stele_device *dev, const char *name)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_image_t image;
	int rc = stele_rbd_writer_image(rbd, &image);

	if (!rc)
		rc = stele_rbd_check_mapped(rbd, name);
	if (rc)
		return rc;
	rc = stele_ceph.rbd_snap_remove(image, name);
	return rc ? explain(rbd, "remove", name, rc) : 0;
}

const struct stele_rbd_snap_ops stele_rbd_snap_ops = {
	.list = snaps_list,
	.make = snap_make,
	.protect = snap_protect,
	.rename = snap_rename,
	.remove = snap_remove,
};
