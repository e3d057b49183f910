/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - what the files of the seam share, and nobody else sees
 *
 * A list of requests, the one place that judges raw results, and the queues
 * that stand over a file. A backend that completes a request by itself (not
 * through a ring) keeps the raw result in request->status until wait() hands
 * both out; no raw result is larger than STELE_TRANSFER_SIZE_MAX.
 */
#ifndef STELE_DEVICE_BACKEND_H
#define STELE_DEVICE_BACKEND_H

#include "lib/device/device.h"
#include "lib/device/reserve.h"

#include <pthread.h>

/* A FIFO (lib/base/fifo.h) that is counted. */
struct stele_request_list {
	struct stele_request *head, **tail;
	unsigned int count;
};

void stele_request_push(struct stele_request_list *list,
			struct stele_request *request);
/* NULL when empty. */
struct stele_request *stele_request_pop(struct stele_request_list *list);
/* Up to max of them with the results in their status, as wait() wants it. */
int stele_request_drain(struct stele_request_list *list,
			struct stele_request **done, ssize_t *res,
			unsigned int max);

/* What a queue that completes requests by itself, in any thread, has for wait(). */
struct stele_done {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct stele_request_list list;
	int event_fd; /* readable exactly while the list holds something */
	/* To wait for one; then wait() fails with -ETIMEDOUT, for good. 0: no end. */
	unsigned int ticks_max;
	bool broken;
};

#define STELE_TICK_MS 250u
/* Wait, for a tick at most. Return: false: it went by. */
bool stele_wait_tick(pthread_cond_t *changed, pthread_mutex_t *lock);

int stele_done_init(struct stele_done *done);
/* In a forked child the lock may be held by a thread that is not there. */
void stele_done_release(struct stele_done *done, bool forked);
/* Whoever waits may close the queue at once: this is the last use of it. */
void stele_done_put(struct stele_done *done, struct stele_request *request,
		    ssize_t res);
/* The wait() of a queue. */
int stele_done_wait(struct stele_done *done, unsigned int min_wait,
		    struct stele_request **requests, ssize_t *res,
		    unsigned int max);

/* Is this request one that the device can take? 0, -EINVAL, -EROFS. */
int stele_request_check(const struct stele_device *dev,
			const struct stele_request *request);
/*
 * Account for one raw result. Return: true when the request is finished, with
 * its status set; false when what is left must be started (again).
 */
bool stele_request_advance(const struct stele_device *dev,
			   struct stele_request *request, ssize_t res);

/* Add a finished request to what was written, if it is a write. */
void stele_request_count(struct stele_device *dev,
			 const struct stele_request *request);

struct stele_nvme;

/* A file or block device. */
struct stele_file {
	struct stele_device base;
	struct stele_device_ops ops; /* of base: those of files, and its backend's */
	struct stele_nvme *nvme; /* of the backend "passthrough", else NULL */
	bool regular;
	bool in_memory; /* of a filesystem that has no device: to read it never waits */
	bool forced; /* its backend, by name: no other may serve */
	_Atomic bool stepped_down; /* the fallback to threads was logged */
	_Atomic uint64_t size; /* of a regular file: where writes end */
	char *real; /* owned: the name it was opened by; NULL: none, or not known */
	_Atomic bool cut; /* it was found shorter, which is logged */
	struct stele_reserved reserved;
};

/* What one write may transfer at `offset` of the `size` asked; -ENOSPC; -ESTALE (cut off). */
ssize_t stele_file_room(struct stele_file *file, uint64_t offset, size_t size);

/* Can this process use io_uring, here and now? 0 or -errno. */
int stele_uring_probe(void);
/* On a struct stele_file. */
int stele_uring_open_queue(struct stele_device *dev, unsigned int depth,
			   void *arena, size_t arena_size,
			   struct stele_queue **out);
/* On a struct stele_file; see stele_queue_open_in(). */
int stele_uring_join(struct stele_device *dev, unsigned int depth,
		     struct stele_queue_group *group, struct stele_queue **out);
/*
 * See stele_device_open(); `path` is without snapshot. Only where the build has
 * librbd. Return: 0; -EINVAL (spelling); -ENOENT (no such configuration, pool,
 * image, RBD snapshot); -EACCES; -EPERM (it is not protected); -ETIMEDOUT; -EBUSY;
 * errno. Everything is logged.
 */
int stele_device_open_rbd(const char *path, const char *snap,
			  unsigned int flags, const struct stele_log *log,
			  struct stele_device **out);
/* See stele_device_create() and stele_device_destroy(). */
int stele_rbd_create(const char *path, uint64_t size, uint32_t object_size,
		     const struct stele_log *log);
int stele_rbd_destroy(const char *path, const struct stele_log *log);
/* On any device whose transfer() may be called from several threads. */
int stele_threads_open_queue(struct stele_device *dev, unsigned int depth,
			     void *arena, size_t arena_size,
			     struct stele_queue **out);

#endif
