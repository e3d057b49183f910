/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound.h - no call of librbd or librados keeps us longer than its timeout
 *
 * librados ends a single request after its timeout; a call of librbd may be many of
 * them, one after the other, and some wait for what has no timeout: watches, notices
 * to other clients, the lock. None can be told to give up. So each call that asks the
 * cluster is made by a thread of its own (a *job*), with memory of its own; who wants
 * the result waits for so long, then goes on without (-ETIMEDOUT). While a job that was
 * given up runs, no other starts at its client, see client.h.
 */
#ifndef STELE_DEVICE_RBD_BOUND_H
#define STELE_DEVICE_RBD_BOUND_H

#include <sys/types.h>

#include "lib/device/rbd/client.h"

enum stele_rbd_call_flags {
	STELE_RBD_CHANGES = 1 << 0, /* cut off, it leaves the client in doubt */
	STELE_RBD_ALWAYS = 1 << 1,  /* also beside one that was given up */
	STELE_RBD_SENDS = 1 << 2,   /* `out` is what run() reads */
};

/* What a job works on. run() gets one of its own, which is gone when it is done. */
struct stele_rbd_call {
	/* One of these. */
	rados_t cluster;
	rados_ioctx_t io;
	rbd_image_t image;

	const char *text[2]; /* NULL: none */
	uint64_t number[3];
	/*
	 * What run() fills: it has `size` zeroed bytes, which are copied to the caller's
	 * `out` if it does not fail.
	 */
	void *out;
	size_t size;
	/* Optional: release what run() got when nobody waits for it any more. */
	void (*drop)(struct stele_rbd_call *call);
};

/*
 * What run() returns: 0, a count, -errno. Else -ETIMEDOUT: given up; -EAGAIN: no thread;
 * -ENOMEM; -ECANCELED: the process is at its exit.
 */
ssize_t stele_rbd_do(ssize_t (*run)(struct stele_rbd_call *call),
		     unsigned int flags, const struct stele_rbd_call *call);
/* For run(): it goes on, so that nobody gives up. false: somebody has. */
bool stele_rbd_step(struct stele_rbd_call *call);

/* ---- calls.c --------------------------------------------------------- */

/* In the table: those that end, for each that asks the cluster. Once. */
void stele_rbd_bound_calls(struct stele_ceph *calls);
/* One command of the monitors. *answer: release with rados_buffer_free(). 0 or -errno. */
int stele_rbd_ask_monitors(rados_t cluster, const char *command, char **answer,
			   size_t *size);

#endif
