/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rbd.h - what the files of the RBD backend share, and nobody else sees
 *
 * A *link* is one connection to a cluster with one image open through it. A
 * device has one from the start; queues for reading may get some more. Threads
 * of librados don't survive a fork, so a child never touches the links of its
 * parent, not even to close them: it leaks them and connects anew. A device
 * that was opened for writing is refused there (-EOWNERDEAD).
 *
 * All waiting ends: each link sets the timeouts of all that librados does, and
 * bound.h ends what has none.
 */
#ifndef STELE_DEVICE_RBD_RBD_H
#define STELE_DEVICE_RBD_RBD_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/device/backend.h"
#include "lib/device/rbd/api.h"
#include "lib/device/snaps.h"
#include "lib/device/target_rbd.h"

#define STELE_RBD_USER_DEFAULT "admin"
#define STELE_RBD_ADDRESS_SIZE 4096u /* of a client, or several */
/* How long who is fenced stays so: 10 years; Ceph's times end in 2106. */
#define STELE_RBD_FENCE_SECONDS 315360000u

/* From options, environment and defaults; see man/stele-rbd.7. */
struct stele_rbd_settings {
	char *conf;  /* NULL: where Ceph looks by itself */
	char *user;  /* without "client." */
	uint32_t timeout, connections;
};

struct stele_rbd_link {
	rados_t cluster;    /* NULL: not connected */
	rados_ioctx_t io;
	rbd_image_t image;  /* NULL: none is open */
};

/* Of one process. link[0] is opened first and serves blocking transfers. */
struct stele_rbd_links {
	unsigned int fork_count;
	pthread_mutex_t lock; /* of what follows */
	_Atomic bool ready;   /* link[0] is */
	unsigned int queues;  /* opened so far */
	struct stele_rbd_link link[STELE_RBD_CONNECTIONS_MAX];
};

struct stele_rbd {
	struct stele_device base;
	struct stele_rbd_name name;
	struct stele_rbd_settings settings;
	char *path;	   /* for messages: without options */
	char *snap;	   /* NULL: the head */
	struct stele_storage_id id; /* known since link[0] was open */
	_Atomic uint64_t size; /* bytes; never looked up for one transfer */
	_Atomic bool pool_gone; /* which has been logged */
	bool locked;	   /* by us: the exclusive lock, see lock.c */
	struct {
		_Atomic int64_t seen; /* when the lock was ours: boot time, ns */
		_Atomic bool lost;    /* it is not ours any more */
	} guard; /* see fence.c */
	struct stele_rbd_links *_Atomic links;
};

/* ---- settings.c -------------------------------------------------------- */

/* Return: 0; -EINVAL (a bad $STELE_TIMEOUT; logged); -ENOMEM. */
int stele_rbd_settings_get(const struct stele_rbd_name *name,
			   const struct stele_log *log,
			   struct stele_rbd_settings *out);
void stele_rbd_settings_release(struct stele_rbd_settings *settings);

/* ---- connect.c --------------------------------------------------------- */

/*
 * Connect to the cluster, and to the pool and namespace. Everything is logged.
 * Return: 0; -ENOENT (no configuration, no pool); -EACCES (no keyring, no such
 * user, not allowed); -ETIMEDOUT; errno.
 */
int stele_rbd_connect(const struct stele_rbd *rbd, struct stele_rbd_link *out);
/* See stele_rbd_client_close(). Of another process: do not call. */
void stele_rbd_disconnect(struct stele_rbd_link *link, bool background);
/* Has the pool been deleted since the image was opened? Then that is logged, once. */
bool stele_rbd_pool_gone(struct stele_rbd *rbd);
/*
 * "cannot WHAT 'rbd:...': why, and what to do". Return: the error, as stele.h
 * has it.
 */
int stele_rbd_explain(const struct stele_rbd *rbd, const char *what, int error);

/* ---- link.c ------------------------------------------------------------ */

/* The image that this process may use for blocking transfers. 0 or -errno. */
int stele_rbd_image(struct stele_rbd *rbd, rbd_image_t *image);
/* Its pool. */
int stele_rbd_ioctx(struct stele_rbd *rbd, rados_ioctx_t *io);
/* The one for the next queue. */
int stele_rbd_queue_image(struct stele_rbd *rbd, rbd_image_t *image);
/* At open: link[0], which fills id and size. Logged. */
int stele_rbd_links_open(struct stele_rbd *rbd);
/*
 * Also in a forked child, where it only forgets those of the parent; and in doubt, where
 * nobody waits for their end.
 */
void stele_rbd_links_close(struct stele_rbd *rbd, bool in_doubt);
/* See ops->pick. */
int stele_rbd_pick(struct stele_device *dev, const char *name);

/* ---- queue.c ----------------------------------------------------------- */

int stele_rbd_queue_open(struct stele_device *dev, unsigned int depth,
			 void *arena, size_t arena_size,
			 struct stele_queue **out);

/* ---- lock.c ------------------------------------------------------------ */

/*
 * Be the one writer of the image; with `alone`, have it open alone, too
 * (readers without a watch are not seen). A dead writer is fenced.
 * Return: 0; -EBUSY (logged: who); -EOPNOTSUPP (an image without the lock;
 * logged); errno (logged).
 */
int stele_rbd_lock(struct stele_rbd *rbd, bool alone);
/* Idempotent. Nothing, while in doubt or when it is not ours any more. */
void stele_rbd_unlock(struct stele_rbd *rbd);
/* By a fresh handle, is it, since we took it? Return: 1; 0; errno. */
int stele_rbd_owns_lock(const struct stele_rbd *rbd, rbd_image_t image);

/* ---- fence.c ----------------------------------------------------------- */

/*
 * Lock a client out, for years, also one that is for a shorter time. It is so when
 * this returns. 0 or -errno.
 */
int stele_rbd_fence(const struct stele_rbd *rbd, const char *address);
/* Is it? false, too, where we may not ask. */
bool stele_rbd_is_fenced(const struct stele_rbd *rbd, const char *address);
/* The lock is ours, as from now. */
void stele_rbd_guard_begin(struct stele_rbd *rbd);
/*
 * Before each change: if we slept, is the lock still ours? `now`: look in any case.
 * Return: 0; -ESHUTDOWN (logged); -ETIMEDOUT (also: a change before is in doubt); errno.
 */
int stele_rbd_guard(struct stele_rbd *rbd);
int stele_rbd_guard_now(struct stele_rbd *rbd);
/* stele_rbd_image(), for a change. */
int stele_rbd_writer_image(struct stele_rbd *rbd, rbd_image_t *image);
/*
 * Before the links are closed: fence ourselves if a change is in doubt (logged). Return:
 * false: so it was. Then closing waits in vain for those who did not answer; and if we
 * could not be fenced, it would let go of the lock, so that it never happens.
 */
bool stele_rbd_settle(struct stele_rbd *rbd);

/* ---- snaps.c ----------------------------------------------------------- */

extern const struct stele_rbd_snap_ops stele_rbd_snap_ops;
/* Find an RBD snapshot by name or (NULL) id. Return: 0; -ENOENT; errno. */
int stele_rbd_snap_find(rbd_image_t image, const char *name, uint64_t *id,
			bool *is_protected);

/* ---- create.c ---------------------------------------------------------- */

/* See ops->data. */
int stele_rbd_data(struct stele_device *dev, uint64_t *bytes);

/* ---- mapped.c ---------------------------------------------------------- */

/*
 * Has this machine's kernel (krbd) that RBD snapshot mapped; with NULL, the head or any
 * of them? Return: 0; -EBUSY (logged).
 */
int stele_rbd_check_mapped(const struct stele_rbd *rbd, const char *snap);

/* ---- rbd.c ----------------------------------------------------------------- */

/*
 * The library is loaded; name, settings and path are set. Close does what is left.
 * Return: 0; -EINVAL, -EOPNOTSUPP (logged); -ENOMEM.
 */
int stele_rbd_new(const char *path, const struct stele_log *log,
		  struct stele_rbd **out);
/* What of it lies within the image: bytes; or 0 (read, discard), -ENOSPC. */
ssize_t stele_rbd_room(struct stele_rbd *rbd, enum stele_op op, uint64_t offset,
		       size_t size);
/* Hand one transfer to librbd. 0 or -errno; then no completion will come. */
int stele_rbd_start(rbd_image_t image, enum stele_op op, void *data,
		    uint64_t offset, size_t size, rbd_completion_t completion);
/* A completion's value, as the seam wants it. */
ssize_t stele_rbd_result(enum stele_op op, size_t size, ssize_t res);
/*
 * Of a pool that is gone librbd says -EPERM, as of a right that was taken away: the
 * cluster tells which. -ESTALE (logged once) or that. Waits; not for a callback.
 */
ssize_t stele_rbd_judge(struct stele_rbd *rbd, ssize_t res);
/*
 * A change that failed, and may still be carried out, leaves its client in doubt.
 * `started`: stele_rbd_now() before it was sent.
 */
void stele_rbd_weigh(const struct stele_rbd *rbd, rbd_image_t image,
		     enum stele_op op, int64_t started, ssize_t res);
/* Nanoseconds since boot, suspended or not. */
int64_t stele_rbd_now(void);

#endif
