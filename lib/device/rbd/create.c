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
#include "lib/device/rbd/bound.h"

#define FEATURES                                                        \
	(RBD_FEATURE_LAYERING | RBD_FEATURE_EXCLUSIVE_LOCK |            \
	 RBD_FEATURE_OBJECT_MAP | RBD_FEATURE_FAST_DIFF |               \
	 RBD_FEATURE_DEEP_FLATTEN)
#define FORMAT 2

/* Numbers: size, order of the objects' size. */
static ssize_t run_create(struct stele_rbd_call *call)
{
	rbd_image_options_t opts;
	int rc;

	stele_ceph_real.rbd_image_options_create(&opts);
	rc = stele_ceph_real.rbd_image_options_set_uint64(
		opts, RBD_IMAGE_OPTION_FORMAT, FORMAT);
	if (!rc)
		rc = stele_ceph_real.rbd_image_options_set_uint64(
			opts, RBD_IMAGE_OPTION_FEATURES, FEATURES);
	if (!rc)
		rc = stele_ceph_real.rbd_image_options_set_uint64(
			opts, RBD_IMAGE_OPTION_ORDER, call->number[1]);
	if (!rc)
		rc = stele_ceph_real.rbd_create4(call->io, call->text[0],
						 call->number[0], opts);
	stele_ceph_real.rbd_image_options_destroy(opts);
	return rc;
}

static int create(const struct stele_rbd *rbd, rados_ioctx_t io, uint64_t size,
		  uint32_t object_size)
{
	const struct stele_rbd_call call = {
		.io = io,
		.text = {rbd->name.image},
		.number = {size, (uint64_t)__builtin_ctz(object_size)},
	};

	return (int)stele_rbd_do(run_create, STELE_RBD_CHANGES, &call);
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
	stele_rbd_disconnect(&link, false);
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
	stele_rbd_disconnect(&link, false);
	rbd->base.ops->close(&rbd->base);
	return rc;
}

static int count_data(uint64_t offset, size_t size, int exists, void *user)
{
	struct stele_rbd_call *call = user;

	(void)offset;
	if (exists)
		*(uint64_t *)call->out += size;
	return stele_rbd_step(call) ? 0 : -ECANCELED;
}

/* Whole objects only. Number: the image's size. */
static ssize_t run_data(struct stele_rbd_call *call)
{
	return stele_ceph_real.rbd_diff_iterate2(call->image, NULL, 0,
						 call->number[0], 1, 1,
						 count_data, call);
}

int stele_rbd_data(struct stele_device *dev, uint64_t *bytes)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	struct stele_rbd_call call = {.out = bytes, .size = sizeof(*bytes)};
	int rc = stele_rbd_image(rbd, &call.image);

	*bytes = 0;
	if (!rc)
		rc = stele_ceph.rbd_get_size(call.image, &call.number[0]);
	if (!rc && call.number[0])
		rc = (int)stele_rbd_do(run_data, 0, &call);
	return rc ? stele_rbd_explain(rbd, "ask for the data of", rc) : 0;
}
