/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create.c - RBD images come, go, and are asked what they hold
 *
 * Features: the exclusive lock keeps writers apart; layering gives clones and
 * protected snapshots; with object map and fast diff it is known without a
 * look at each object what was written, which is asked here, by `rbd du` and by
 * backups; deep-flatten lets clones go. All of them krbd knows from Linux 5.3 on.
 * Where objects lie (data pool, namespace) is for the cluster's settings to say.
 */
#include "lib/device/rbd/rbd.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/checked.h"

#define FEATURES                                                        \
	(RBD_FEATURE_LAYERING | RBD_FEATURE_EXCLUSIVE_LOCK |            \
	 RBD_FEATURE_OBJECT_MAP | RBD_FEATURE_FAST_DIFF |               \
	 RBD_FEATURE_DEEP_FLATTEN)
#define FORMAT 2

static int create(const struct stele_rbd *rbd, rados_ioctx_t io, uint64_t size,
		  uint32_t object_size)
{
	rbd_image_options_t opts;
	int rc;

	stele_ceph.rbd_image_options_create(&opts);
	rc = stele_ceph.rbd_image_options_set_uint64(opts,
						     RBD_IMAGE_OPTION_FORMAT,
						     FORMAT);
	if (!rc)
		rc = stele_ceph.rbd_image_options_set_uint64(
			opts, RBD_IMAGE_OPTION_FEATURES, FEATURES);
	if (!rc)
		rc = stele_ceph.rbd_image_options_set_uint64(
			opts, RBD_IMAGE_OPTION_ORDER,
			(uint64_t)__builtin_ctz(object_size));
	if (!rc)
		rc = stele_ceph.rbd_create4(io, rbd->name.image, size, opts);
	/* When it was given up, librbd may still look at them. */
	if (rc != -ETIMEDOUT)
		stele_ceph.rbd_image_options_destroy(opts);
	return rc;
}

/* Whoever may not create images may well write those that are there. */
static int is_there(const struct stele_rbd *rbd, rados_ioctx_t io)
{
	rbd_image_t image;
	int rc = stele_ceph.rbd_open_read_only(io, rbd->name.image, &image,
					       NULL);

	if (!rc)
		stele_ceph.rbd_close(image);
	return rc;
}

int stele_rbd_create(const char *path, uint64_t size, uint32_t object_size,
		     const struct stele_log *log)
{
	struct stele_rbd_link link = {0};
	struct stele_rbd *rbd;
	int rc;

	if (!is_power_of_two(object_size) ||
	    object_size < STELE_OBJECT_SIZE_MIN ||
	    object_size > STELE_OBJECT_SIZE_MAX) {
		stele_log_error(log,
				"an object size of %u is no power of two "
				"between 4 KiB and 32 MiB",
				object_size);
		return -EINVAL;
	}
	rc = stele_rbd_new(path, log, &rbd);
	if (rc)
		return rc;
	rc = stele_rbd_connect(rbd, &link);
	if (!rc) {
		rc = is_there(rbd, link.io);
		if (!rc)
			rc = -EEXIST;
		else if (rc != -ENOENT)
			stele_rbd_explain(rbd, "open", rc);
	}
	if (rc == -ENOENT && link.io && size) {
		rc = create(rbd, link.io, size, object_size);
		if (rc && rc != -EEXIST)
			stele_rbd_explain(rbd, "create", rc);
	} else if (rc == -ENOENT && link.io) {
		rc = 0;
	}
	stele_rbd_disconnect(&link);
	rbd->base.ops->close(&rbd->base);
	return rc;
}

int stele_rbd_destroy(const char *path, const struct stele_log *log)
{
	struct stele_rbd_link link = {0};
	struct stele_rbd *rbd;
	int rc = stele_rbd_new(path, log, &rbd);

	if (rc)
		return rc;
	rc = stele_rbd_connect(rbd, &link);
	if (!rc) {
		rc = stele_ceph.rbd_remove(link.io, rbd->name.image);
		if (rc)
			stele_rbd_explain(rbd, "remove", rc);
	}
	stele_rbd_disconnect(&link);
	rbd->base.ops->close(&rbd->base);
	return rc;
}

static int count_data(uint64_t offset, size_t size, int exists, void *user)
{
	(void)offset;
	if (exists)
		*(uint64_t *)user += size;
	return 0;
}

int stele_rbd_data(struct stele_device *dev, uint64_t *bytes)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_image_t image;
	uint64_t size;
	int rc = stele_rbd_image(rbd, &image);

	*bytes = 0;
	if (!rc)
		rc = stele_ceph.rbd_get_size(image, &size);
	if (!rc && size)
		rc = stele_ceph.rbd_diff_iterate2(image, NULL, 0, size, 1, 1,
						  count_data, bytes);
	return rc ? stele_rbd_explain(rbd, "ask for the data of", rc) : 0;
}
