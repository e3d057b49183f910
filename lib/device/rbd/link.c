/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - connections with the image open, for this process
 *
 * Readers open without a watch, so they leave no trace in the cluster and need no right to
 * write. An RBD snapshot is opened by its id, and only if it is protected: a removed
 * one would read as zeros, or as the head, without an error.
 */
#include "lib/device/rbd/rbd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/rbd/client.h"

/* ---- open ------------------------------------------------------------------ */

static int explain_missing(const struct stele_rbd *rbd)
{
	stele_log_error(&rbd->base.log,
			"cannot open '%s': no image '%s' in pool '%s'%s%s%s",
			rbd->path, rbd->name.image, rbd->name.pool,
			rbd->name.ns ? ", namespace '" : "",
			rbd->name.ns ? rbd->name.ns : "",
			rbd->name.ns ? "'" : "");
	return -ENOENT;
}

/* The first time ids are learned; later they have to be these. */
static int check_ids(struct stele_rbd *rbd, const struct stele_rbd_link *link)
{
	struct stele_storage_id id = {.snap = rbd->id.snap};
	int rc = stele_ceph.rados_cluster_fsid(link->cluster, id.cluster,
					       sizeof(id.cluster));

	if (rc < 0)
		return rc;
	id.pool = stele_ceph.rados_ioctx_get_id(link->io);
	rc = stele_ceph.rbd_get_id(link->image, id.image, sizeof(id.image));
	if (rc)
		return rc;
	if (*rbd->id.cluster &&
	    (strcmp(rbd->id.cluster, id.cluster) || rbd->id.pool != id.pool ||
	     strcmp(rbd->id.image, id.image)))
		return -ESTALE;
	if (!*rbd->id.cluster)
		rbd->id = id;
	return 0;
}

static int take_snap(struct stele_rbd *rbd, rbd_image_t image)
{
	const char *known = rbd->id.snap ? NULL : rbd->snap;
	uint64_t id = rbd->id.snap;
	bool is_protected;
	int rc = stele_rbd_snap_find(image, known, &id, &is_protected);

	if (rc == -ENOENT && !known)
		return -ESTALE;
	if (rc == -ENOENT)
		stele_log_error(&rbd->base.log,
				"cannot open '%s@%s': the image has no RBD "
				"snapshot of that name ('rbd snap ls')",
				rbd->path, rbd->snap);
	else if (rc)
		stele_rbd_explain(rbd, "find the snapshot of", rc);
	else if (!is_protected)
		stele_log_error(&rbd->base.log,
				"cannot open '%s@%s': the RBD snapshot is not "
				"protected, so it may vanish while it is read "
				"(the next 'stele' command that writes protects "
				"it; or 'rbd snap protect')",
				rbd->path, rbd->snap);
	if (rc || !is_protected)
		return rc ? rc : -EPERM;
	rc = stele_ceph.rbd_snap_set_by_id(image, id);
	if (rc == -ENOENT)
		return -ESTALE;
	if (rc)
		return stele_rbd_explain(rbd, "open", rc);
	if (!rbd->id.snap)
		rbd->id.snap = id;
	return 0;
}

/* No queue is open yet, so link[0] is the only one. */
int stele_rbd_pick(struct stele_device *dev, const char *name)
{
	struct stele_rbd *rbd = (struct stele_rbd *)dev;
	rbd_image_t image;
	uint64_t size;
	int rc;

	if (dev->writable || rbd->snap)
		return -EINVAL;
	rc = stele_rbd_image(rbd, &image);
	if (rc)
		return rc;
	rbd->snap = strdup(name);
	if (!rbd->snap)
		return -ENOMEM;
	rc = take_snap(rbd, image);
	if (!rc)
		rc = stele_ceph.rbd_get_size(image, &size);
	if (rc)
		return rc;
	atomic_store(&rbd->size, size);
	dev->revocable = true;
	return 0;
}

/*
 * Connected, with the RBD snapshot or head open that the device stands for: the same
 * as at the first time (by id), else -ESTALE. Logged.
 */
static int link_open(struct stele_rbd *rbd, struct stele_rbd_link *out)
{
	uint64_t size;
	int rc = stele_rbd_connect(rbd, out);

	if (rc)
		return rc;
	rc = rbd->base.writable
		     ? stele_ceph.rbd_open(out->io, rbd->name.image,
					   &out->image, NULL)
		     : stele_ceph.rbd_open_read_only(out->io, rbd->name.image,
						     &out->image, NULL);
	if (rc) {
		out->image = NULL;
		rc = rc == -ENOENT ? explain_missing(rbd) :
				     stele_rbd_explain(rbd, "open", rc);
	}
	if (!rc)
		rc = check_ids(rbd, out);
	if (!rc && rbd->snap)
		rc = take_snap(rbd, out->image);
	if (!rc)
		rc = stele_ceph.rbd_get_size(out->image, &size);
	if (!rc)
		atomic_store(&rbd->size, size);
	else
		stele_rbd_disconnect(out, false);
	if (rc == -ESTALE)
		stele_log_error(&rbd->base.log,
				"'%s%s%s' is not what was opened any more",
				rbd->path, rbd->snap ? "@" : "",
				rbd->snap ? rbd->snap : "");
	return rc;
}

/* ---- links of a process ---------------------------------------------------- */

static struct stele_rbd_links *new_links(void)
{
	struct stele_rbd_links *links = calloc(1, sizeof(*links));

	if (links) {
		links->fork_count = stele_fork_count();
		pthread_mutex_init(&links->lock, NULL);
	}
	return links;
}

static void free_links(struct stele_rbd_links *links)
{
	pthread_mutex_destroy(&links->lock);
	free(links);
}

/*
 * Those of this process. A forked child puts its own in the place of its
 * parent's, whose lock may be held by a thread that is not there.
 */
static int own_links(struct stele_rbd *rbd, struct stele_rbd_links **out)
{
	struct stele_rbd_links *links = atomic_load(&rbd->links), *own;

	if (links->fork_count != stele_fork_count()) {
		if (rbd->base.writable)
			return -EOWNERDEAD;
		own = new_links();
		if (!own)
			return -ENOMEM;
		if (atomic_compare_exchange_strong(&rbd->links, &links, own))
			links = own;
		else /* another thread of ours was faster */
			free_links(own);
	}
	*out = links;
	return 0;
}

static int ready_links(struct stele_rbd *rbd, struct stele_rbd_links **out)
{
	struct stele_rbd_links *links = NULL;
	int rc = own_links(rbd, &links);

	*out = links;
	if (stele_rbd_ended())
		return -ECANCELED;
	if (rc || atomic_load_explicit(&links->ready, memory_order_acquire))
		return rc;
	pthread_mutex_lock(&links->lock);
	if (!links->ready) {
		rc = link_open(rbd, &links->link[0]);
		atomic_store_explicit(&links->ready, !rc, memory_order_release);
	}
	pthread_mutex_unlock(&links->lock);
	return rc;
}

int stele_rbd_image(struct stele_rbd *rbd, rbd_image_t *image)
{
	struct stele_rbd_links *links;
	int rc = ready_links(rbd, &links);

	if (!rc)
		*image = links->link[0].image;
	return rc;
}

int stele_rbd_ioctx(struct stele_rbd *rbd, rados_ioctx_t *io)
{
	struct stele_rbd_links *links;
	int rc = ready_links(rbd, &links);

	if (!rc)
		*io = links->link[0].io;
	return rc;
}

/*
 * A further connection that cannot be had is no reason not to read. That the
 * RBD snapshot is not what it was, or not protected, is one.
 */
int stele_rbd_queue_image(struct stele_rbd *rbd, rbd_image_t *image)
{
	struct stele_rbd_links *links;
	struct stele_rbd_link *link;
	int rc = ready_links(rbd, &links);

	if (rc)
		return rc;
	pthread_mutex_lock(&links->lock);
	link = &links->link[0];
	if (!rbd->base.writable)
		link += links->queues++ % rbd->settings.connections;
	if (!link->image) {
		rc = link_open(rbd, link);
		if (rc)
			link = &links->link[0];
	}
	*image = link->image;
	pthread_mutex_unlock(&links->lock);
	return rc == -ESTALE || rc == -EPERM ? rc : 0;
}

int stele_rbd_links_open(struct stele_rbd *rbd)
{
	struct stele_rbd_links *links = new_links();

	if (!links)
		return -ENOMEM;
	atomic_store(&rbd->links, links);
	return ready_links(rbd, &links);
}

void stele_rbd_links_close(struct stele_rbd *rbd, bool in_doubt)
{
	struct stele_rbd_links *links = atomic_load(&rbd->links);

	if (!links)
		return;
	if (links->fork_count != stele_fork_count()) {
		free(links);
		return;
	}
	for (unsigned int i = 0; i < STELE_RBD_CONNECTIONS_MAX; i++)
		stele_rbd_disconnect(&links->link[i], in_doubt);
	free_links(links);
}
