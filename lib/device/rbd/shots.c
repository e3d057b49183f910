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

#include "lib/device/rbd/bound.h"

#define LIST_GUESS 64

/* ---- list ------------------------------------------------------------------ */

void stele_rbd_snaps_release(struct stele_rbd_snaps *snaps)
{
	for (int i = 0; i < snaps->count; i++)
		free(snaps->list[i].name);
	free(snaps->list);
	memset(snaps, 0, sizeof(*snaps));
}

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
	struct stele_rbd_snap *snap = &out->list[out->count];
	rbd_snap_namespace_type_t type;
	int flag = 0, rc;

	rc = stele_ceph_real.rbd_snap_get_namespace_type(image, info->id, &type);
	if (!rc && type != RBD_SNAP_NAMESPACE_TYPE_USER)
		return 0;
	if (!rc)
		rc = stele_ceph_real.rbd_snap_is_protected(image, info->name, &flag);
	if (rc)
		return rc == -ENOENT ? 0 : rc; /* removed meanwhile */
	*snap = (struct stele_rbd_snap){
		.id = info->id,
		.name = strdup(info->name),
		.is_protected = flag,
	};
	out->count++;
	return snap->name ? 0 : -ENOMEM;
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
	out->list = calloc(rc || !count ? 1 : (size_t)count, sizeof(*out->list));
	if (!out->list)
		rc = -ENOMEM;
	for (int i = 0; i < count && !rc; i++)
		rc = add(out, call->image, &infos[i]);
	if (count >= 0)
		stele_ceph_real.rbd_snap_list_end(infos);
	free(infos);
	if (rc)
		stele_rbd_snaps_release(out);
	else
		qsort(out->list, (size_t)out->count, sizeof(*out->list), by_id);
	return rc;
}

static void drop_list(struct stele_rbd_call *call)
{
	stele_rbd_snaps_release(call->out);
}

int stele_rbd_snaps_list(rbd_image_t image, struct stele_rbd_snaps *out)
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

static int shots_each(struct stele_device *dev, stele_shot_fn fn, void *user)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	struct stele_rbd_snaps snaps;
	rbd_image_t image;
	int rc = stele_rbd_image(rbd, &image);

	if (rc)
		return rc;
	rc = stele_rbd_snaps_list(image, &snaps);
	if (rc)
		return stele_rbd_explain(rbd, "list the RBD snapshots of", rc);
	for (int i = 0; i < snaps.count && !rc; i++) {
		struct stele_shot shot = {
			.name = snaps.list[i].name,
			.id = snaps.list[i].id,
			.is_protected = snaps.list[i].is_protected,
		};

		rc = fn(user, &shot);
	}
	stele_rbd_snaps_release(&snaps);
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
