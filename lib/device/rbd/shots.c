/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shots.c - the RBD snapshots of an image, as shots
 *
 * Who reads a shot leaves no trace in the cluster, so that a reader is never in
 * the way here. What this machine's kernel has mapped is, and is refused before
 * a shot loses its protection.
 */
#include "lib/device/rbd/rbd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_GUESS 64

/* ---- list ------------------------------------------------------------------ */

static int by_id(const void *a, const void *b)
{
	uint64_t left = ((const rbd_snap_info_t *)a)->id;
	uint64_t right = ((const rbd_snap_info_t *)b)->id;

	return left < right ? -1 : left > right;
}

int stele_rbd_snaps(rbd_image_t image, rbd_snap_info_t **list)
{
	int room = LIST_GUESS, count;

	*list = NULL;
	do {
		free(*list);
		*list = calloc((size_t)room, sizeof(**list));
		if (!*list)
			return -ENOMEM;
		count = stele_ceph.rbd_snap_list(image, *list, &room);
	} while (count == -ERANGE);
	if (count < 0) {
		free(*list);
		*list = NULL;
		return count;
	}
	qsort(*list, (size_t)count, sizeof(**list), by_id);
	return count;
}

/* Those of groups, mirrors and the trash are not named by anybody. */
static int tell(rbd_image_t image, const rbd_snap_info_t *snap,
		stele_shot_fn fn, void *user)
{
	struct stele_shot shot = {.name = snap->name, .id = snap->id};
	rbd_snap_namespace_type_t type;
	int flag = 0, rc;

	rc = stele_ceph.rbd_snap_get_namespace_type(image, snap->id, &type);
	if (rc || type != RBD_SNAP_NAMESPACE_TYPE_USER)
		return rc;
	rc = stele_ceph.rbd_snap_is_protected(image, snap->name, &flag);
	if (rc)
		return rc;
	shot.is_protected = flag;
	return fn(user, &shot);
}

static int shots_each(struct stele_device *dev, stele_shot_fn fn, void *user)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_snap_info_t *list;
	rbd_image_t image;
	int count, rc;

	rc = stele_rbd_image(rbd, &image);
	if (rc)
		return rc;
	count = stele_rbd_snaps(image, &list);
	if (count < 0)
		return stele_rbd_explain(rbd, "list the snapshots of", count);
	for (int i = 0; i < count && !rc; i++)
		rc = tell(image, &list[i], fn, user);
	stele_ceph.rbd_snap_list_end(list);
	free(list);
	return rc;
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

static int shots_make(struct stele_device *dev, const char *name)
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

static int shots_protect(struct stele_device *dev, const char *name, bool wanted)
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

static int shots_rename(struct stele_device *dev, const char *from,
			const char *to)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_image_t image;
	int rc = stele_rbd_writer_image(rbd, &image);

	if (!rc)
		rc = stele_ceph.rbd_snap_rename(image, from, to);
	return rc ? explain(rbd, "rename", from, rc) : 0;
}

static int shots_remove(struct stele_device *dev, const char *name)
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

const struct stele_shot_ops stele_rbd_shots = {
	.each = shots_each,
	.make = shots_make,
	.protect = shots_protect,
	.rename = shots_rename,
	.remove = shots_remove,
};
