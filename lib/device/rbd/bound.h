/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound.h - no call of librbd or librados keeps us longer than its timeout
 *
 * librados ends a single request after its timeout; a call of librbd may be many
 * of them, one after the other, and some wait for what has no timeout: watches, notices
 * to other clients, the lock. None can be told to give up. So each call that asks
 * the cluster is a *job*: a thread of its own makes it, with memory of its own, and who
 * wants the result waits for so long, then goes on without (-ETIMEDOUT).
 *
 * A *client* is one rados_t: what the cluster's blocklist knows. While a job that was given
 * up runs, no other starts there, and the client is never closed. After a change
 * whose end nobody knows it is *in doubt*: it may still be carried out, at any time,
 * until the client is on the blocklist.
 */
#ifndef STELE_DEVICE_RBD_BOUND_H
#define STELE_DEVICE_RBD_BOUND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/device/rbd/api.h"

struct stele_rbd_client;

enum stele_rbd_job_flags {
	STELE_RBD_CHANGES = 1 << 0, /* cut off, it leaves the client in doubt */
	STELE_RBD_ALWAYS = 1 << 1,  /* also beside one that was given up */
};

struct stele_rbd_job {
	ssize_t (*run)(struct stele_rbd_job *job); /* 0, a count or -errno */
	/* Optional: release what run() got, when nobody waits for it any more. */
	void (*late)(struct stele_rbd_job *job);
	/* For run(). Text and out are the job's own, freed with it. */
	rados_t cluster;
	rados_ioctx_t io;
	rbd_image_t image;
	char *text[2];
	uint64_t number[2];
	void *out;
	size_t size; /* of out */

	/* The mechanism's. */
	struct stele_rbd_client *client;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	bool done, given_up;
	unsigned int steps; /* of its progress */
	ssize_t res;
};

/* NULL: no memory. At least one of the three handles is set, here or behind it. */
struct stele_rbd_job *stele_rbd_job_new(ssize_t (*run)(struct stele_rbd_job *),
					rbd_image_t image);
/* With copies of text, or room for results. NULL (also of NULL): no memory. */
struct stele_rbd_job *stele_rbd_job_text(struct stele_rbd_job *job,
					 const char *a, const char *b);
struct stele_rbd_job *stele_rbd_job_room(struct stele_rbd_job *job, size_t size);
/*
 * What run() returns; -ETIMEDOUT: given up; -EAGAIN: no thread; -ENOMEM: *job is NULL.
 * What is behind it in *job is the caller's again: results, and to be freed.
 */
ssize_t stele_rbd_job_do(struct stele_rbd_job **job, unsigned int flags);
/* NULL is fine. */
void stele_rbd_job_free(struct stele_rbd_job *job);
/* For run(): it goes on, so that nobody gives up. false: somebody has. */
bool stele_rbd_job_step(struct stele_rbd_job *job);

/* A rados_t that is about to connect; its timeout is the one that was set there. */
void stele_rbd_client_add(rados_t cluster);
/* Return: false: a job still needs it, it must stay for as long as the process. */
bool stele_rbd_client_remove(rados_t cluster);
bool stele_rbd_client_busy(rados_t cluster);
/* An image is reached through its client. */
void stele_rbd_image_add(rbd_image_t image, rados_t cluster);
void stele_rbd_image_remove(rbd_image_t image);

/* Something that was sent may still be carried out. */
void stele_rbd_doubt(rbd_image_t image);
bool stele_rbd_in_doubt(rbd_image_t image);

/* How many ticks (stele_wait_tick()) to wait at this timeout, in seconds. */
unsigned int stele_rbd_ticks(uint32_t timeout);

/* ---- calls.c, calls_cluster.c ---------------------------------------- */

/* The libraries' own; behind all that is bounded. */
extern struct stele_ceph stele_ceph_real;
/* In the place of all that ask the cluster: those that end. Once. */
void stele_rbd_bound_calls(struct stele_ceph *calls);
void stele_rbd_bound_image_calls(struct stele_ceph *calls);

#endif
