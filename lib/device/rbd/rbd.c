/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rbd.c - a Ceph RBD image, by librbd, as a device
 *
 * The end of an image is looked after here: librbd says -EINVAL there. Its
 * objects are the boundary: what lies within one costs one RADOS operation.
 */
#include "lib/device/rbd/rbd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/checked.h"
#include "lib/device/rbd/bound.h"

#define BLOCK	     512u
#define DEPTH	     128u
#define BOUNDARY_MIN 4096u
#define FLAGS_KNOWN  (STELE_DEVICE_WRITE | STELE_DEVICE_EXCL | STELE_DEVICE_SOLE)

/* ---- transfers ------------------------------------------------------------- */

ssize_t stele_rbd_room(struct stele_rbd *rbd, enum stele_op op, uint64_t offset,
		       size_t size)
{
	uint64_t end = round_down(atomic_load(&rbd->size), BLOCK);

	if (op == STELE_OP_FLUSH)
		return 0;
	if (offset >= end)
		return op == STELE_OP_WRITE ? -ENOSPC : 0;
	return (ssize_t)(size < end - offset ? size : end - offset);
}

static int start(rbd_image_t image, enum stele_op op, void *data,
		 uint64_t offset, size_t size, rbd_completion_t completion)
{
	switch (op) {
	case STELE_OP_READ:
		return stele_ceph.rbd_aio_read(image, offset, size, data,
					       completion);
	case STELE_OP_WRITE:
		return stele_ceph.rbd_aio_write(image, offset, size, data,
						completion);
	case STELE_OP_DISCARD:
		return stele_ceph.rbd_aio_discard(image, offset, size,
						  completion);
	case STELE_OP_FLUSH:
		return stele_ceph.rbd_aio_flush(image, completion);
	}
	return -EINVAL;
}

int stele_rbd_start(rbd_image_t image, enum stele_op op, void *data,
		    uint64_t offset, size_t size, rbd_completion_t completion)
{
	int rc;

	if (!stele_rbd_enter())
		return -ECANCELED;
	rc = start(image, op, data, offset, size, completion);
	stele_rbd_leave();
	return rc;
}

/*
 * What librbd did not send (-EINVAL) is not under way, nor what a fenced client did.
 * A full pool refuses at once. Of several objects one may have refused, and another
 * not have answered: but then the request took as long as the timeout.
 */
static bool is_settled(const struct stele_rbd *rbd, int64_t started, ssize_t res)
{
	if (res >= 0 || res == -EINVAL || res == -ESHUTDOWN)
		return true;
	return (res == -ENOSPC || res == -EDQUOT) &&
	       stele_rbd_now() - started <
		       (int64_t)rbd->settings.timeout * 1000000000;
}

void stele_rbd_weigh(const struct stele_rbd *rbd, rbd_image_t image,
		     enum stele_op op, int64_t started, ssize_t res)
{
	if (op != STELE_OP_READ && !is_settled(rbd, started, res))
		stele_rbd_doubt(image);
}

ssize_t stele_rbd_result(enum stele_op op, size_t size, ssize_t res)
{
	/* Somebody made the image smaller: this is the end. */
	if (res == -EINVAL)
		return op == STELE_OP_WRITE ? -ENOSPC : 0;
	if (res == -ENOENT)
		return -ESTALE; /* the image or its RBD snapshot is gone */
	/* Of a full pool a discard is refused where it would take space: nothing
	 * is there that it could give back. */
	if (res == -ENOSPC || res == -EDQUOT)
		return op == STELE_OP_DISCARD ? 0 : -EDQUOT;
	return op == STELE_OP_WRITE && !res ? (ssize_t)size : res;
}

/* Numbers: op, offset; the size is the room's, but for a discard, which has none. */
static ssize_t run_transfer(struct stele_rbd_call *call)
{
	rbd_completion_t completion;
	ssize_t res;

	res = stele_ceph.rbd_aio_create_completion(NULL, NULL, &completion);
	if (res)
		return res;
	res = stele_rbd_start(call->image, (enum stele_op)call->number[0],
			      call->out, call->number[1],
			      (size_t)call->number[2], completion);
	if (!res) {
		stele_ceph.rbd_aio_wait_for_complete(completion);
		res = stele_ceph.rbd_aio_get_return_value(completion);
	}
	stele_ceph.rbd_aio_release(completion);
	return res;
}

static ssize_t do_transfer(struct stele_rbd *rbd, rbd_image_t image,
			   enum stele_op op, void *data, uint64_t offset,
			   size_t size)
{
	const struct stele_rbd_call call = {
		.image = image,
		.number = {op, offset, size},
		.out = data,
		.size = data ? size : 0,
	};
	const int64_t started = stele_rbd_now();
	ssize_t res = stele_rbd_do(run_transfer,
				   op == STELE_OP_READ ?
					   0 :
					   STELE_RBD_CHANGES | STELE_RBD_SENDS,
				   &call);

	stele_rbd_weigh(rbd, image, op, started, res);
	return stele_rbd_judge(rbd, stele_rbd_result(op, size, res));
}

static ssize_t rbd_transfer(struct stele_device *dev, enum stele_op op,
			    void *data, uint64_t offset, size_t size)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	ssize_t res = stele_rbd_room(rbd, op, offset, size);
	rbd_image_t image;
	int rc;

	if (op != STELE_OP_FLUSH && res <= 0)
		return res;
	rc = op == STELE_OP_READ ? stele_rbd_image(rbd, &image) :
				   stele_rbd_writer_image(rbd, &image);
	if (rc)
		return rc;
	return do_transfer(rbd, image, op, data, offset, (size_t)res);
}

/* ---- size ------------------------------------------------------------------ */

static int rbd_size(struct stele_device *dev, uint64_t *size)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_image_t image;
	int rc = stele_rbd_image(rbd, &image);

	if (!rc)
		rc = stele_ceph.rbd_get_size(image, size);
	if (!rc)
		atomic_store(&rbd->size, *size);
	return rc;
}

static int rbd_resize_image(struct stele_device *dev, uint64_t size)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_image_t image;
	int rc = stele_rbd_writer_image(rbd, &image);

	if (!rc)
		rc = stele_ceph.rbd_resize(image, size);
	if (rc)
		return stele_rbd_explain(rbd, "resize", rc);
	atomic_store(&rbd->size, size);
	return 0;
}

/* ---- is it still there? ---------------------------------------------------- */

/*
 * RBD gives up a snapshot's objects before its name: what is still listed may
 * read as zeros already. It must have lost its protection before.
 */
static int check_fresh(struct stele_rbd *rbd, rbd_image_t image)
{
	char id[sizeof(rbd->id.image)] = "";
	uint64_t snap = rbd->id.snap;
	bool is_protected;
	int rc = stele_ceph.rbd_get_id(image, id, sizeof(id));

	if (!rc && strcmp(id, rbd->id.image))
		return -ESTALE;
	if (!rc && rbd->snap) {
		rc = stele_rbd_snap_find(image, NULL, &snap, &is_protected);
		if (rc == -ENOENT || (!rc && !is_protected))
			rc = -ESTALE;
	}
	return rc;
}

/*
 * A handle without a watch learns nothing: only another one tells. Of a writer: is it
 * still the one?
 */
static int rbd_check(struct stele_device *dev)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rados_ioctx_t io;
	rbd_image_t image;
	int rc = stele_rbd_ioctx(rbd, &io);

	if (!rc && rbd->locked)
		return stele_rbd_guard_now(rbd);
	if (rc)
		return rc;
	rc = stele_ceph.rbd_open_read_only(io, rbd->name.image, &image, NULL);
	if (rc)
		return rc == -ENOENT ? -ESTALE : rc;
	rc = check_fresh(rbd, image);
	stele_ceph.rbd_close(image);
	return rc;
}

ssize_t stele_rbd_judge(struct stele_rbd *rbd, ssize_t res)
{
	return res == -EPERM && stele_rbd_pool_gone(rbd) ? -ESTALE : res;
}

static int rbd_identify(struct stele_device *dev, struct stele_storage_id *id)
{
	*id = ((struct stele_rbd *)dev)->id;
	return 0;
}

/* The default user is left open: others may have a right of their own. */
static char *rbd_uri(struct stele_device *dev)
{
	const struct stele_rbd *rbd = (struct stele_rbd *)dev;
	struct stele_rbd_name name = rbd->name;
	char *conf = NULL, *text;

	if (rbd->settings.conf)
		conf = realpath(rbd->settings.conf, NULL);
	name.conf = conf ? conf : rbd->settings.conf;
	if (strcmp(rbd->settings.user, STELE_RBD_USER_DEFAULT))
		name.user = rbd->settings.user;
	text = stele_rbd_name_format(&name);
	free(conf);
	return text;
}

/* ---- open and close -------------------------------------------------------- */

static void rbd_close_device(struct stele_device *dev)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;

	stele_rbd_unlock(rbd);
	if (rbd->links)
		stele_rbd_links_close(rbd, !stele_rbd_settle(rbd));
	stele_rbd_settings_release(&rbd->settings);
	stele_rbd_name_release(&rbd->name);
	free(rbd->path);
	free(rbd->snap);
	free(rbd);
}

static const struct stele_device_ops rbd_ops = {
	.name = "rbd",
	.transfer = rbd_transfer,
	.size = rbd_size,
	.queue_open = stele_rbd_queue_open,
	.close = rbd_close_device,
	.check = rbd_check,
	.resize = rbd_resize_image,
	.data = stele_rbd_data,
	.snaps = &stele_rbd_snap_ops,
	.pick = stele_rbd_pick,
	.identify = rbd_identify,
	.uri = rbd_uri,
};

/* Striped images have the boundary of their stripes. */
static int read_limits(struct stele_rbd *rbd)
{
	struct stele_limits *limits = &rbd->base.limits;
	uint64_t unit, count, object = 0;
	rbd_image_info_t info;
	rbd_image_t image;
	int rc = stele_rbd_image(rbd, &image);

	if (!rc)
		rc = stele_ceph.rbd_stat(image, &info, sizeof(info));
	if (!rc)
		rc = stele_ceph.rbd_get_stripe_unit(image, &unit);
	if (!rc)
		rc = stele_ceph.rbd_get_stripe_count(image, &count);
	if (rc)
		return stele_rbd_explain(rbd, "ask for the objects of", rc);
	object = count > 1 ? unit : info.obj_size;
	*limits = (struct stele_limits){
		.logical_block = BLOCK,
		.memory_align = BLOCK, /* librbd wants none */
		.transfer_max = STELE_TRANSFER_SIZE_MAX,
		.depth_max = DEPTH,
	};
	if (object >= BOUNDARY_MIN && object <= UINT32_MAX &&
	    is_power_of_two(object))
		limits->boundary = (uint32_t)object;
	if (info.obj_size < limits->transfer_max && info.obj_size >= BLOCK)
		limits->transfer_max =
			(uint32_t)round_down(info.obj_size, BLOCK);
	return 0;
}

/* What the messages call it. */
static char *plain_path(const struct stele_rbd_name *name)
{
	struct stele_rbd_name bare = *name;

	bare.conf = bare.user = NULL;
	bare.timeout = bare.connections = 0;
	return stele_rbd_name_format(&bare);
}

int stele_rbd_new(const char *path, const struct stele_log *log,
		  struct stele_rbd **out)
{
	struct stele_rbd *rbd = calloc(1, sizeof(*rbd));
	int rc;

	if (!rbd)
		return -ENOMEM;
	rbd->base.ops = &rbd_ops;
	rbd->base.fd = -1;
	if (log)
		rbd->base.log = *log;
	rc = stele_rbd_name_parse(path, log, &rbd->name);
	if (!rc)
		rc = stele_rbd_settings_get(&rbd->name, log, &rbd->settings);
	if (!rc)
		rc = stele_rbd_api_load(log);
	if (!rc) {
		rbd->path = plain_path(&rbd->name);
		rc = rbd->path ? 0 : -ENOMEM;
	}
	if (rc)
		rbd_close_device(&rbd->base);
	else
		*out = rbd;
	return rc;
}

int stele_device_open_rbd(const char *path, const char *snap,
			  unsigned int flags, const struct stele_log *log,
			  struct stele_device **out)
{
	struct stele_rbd *rbd;
	int rc;

	if (snap && flags)
		return -EROFS;
	if (flags & ~(unsigned int)FLAGS_KNOWN)
		return -EINVAL;
	rc = stele_rbd_new(path, log, &rbd);
	if (rc)
		return rc;
	rbd->base.writable = flags & STELE_DEVICE_WRITE;
	rbd->base.resizable = !snap;
	rbd->base.revocable = snap;
	if (snap) {
		rbd->snap = strdup(snap);
		rc = rbd->snap ? 0 : -ENOMEM;
	}
	if (!rc)
		rc = stele_rbd_links_open(rbd);
	if (!rc)
		rc = read_limits(rbd);
	if (!rc && flags & STELE_DEVICE_EXCL)
		rc = stele_rbd_check_mapped(rbd, NULL);
	if (!rc && flags & (STELE_DEVICE_EXCL | STELE_DEVICE_SOLE))
		rc = stele_rbd_lock(rbd, flags & STELE_DEVICE_EXCL);
	if (rc) {
		rbd_close_device(&rbd->base);
		return rc;
	}
	*out = &rbd->base;
	return 0;
}
