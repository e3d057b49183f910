/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - the clients of a process, and what is open through each
 *
 * A *client* is one rados_t: what the cluster's blocklist knows. It owns its pool
 * handle and its open images, so that all of it can be closed by whoever is last:
 * its owner, a call that was given up and ends at last, or the process at its exit.
 * A client whose last change may still be carried out is *in doubt*: closing it would
 * release the lock, so it stays open until it has been fenced.
 *
 * Threads of librados that outlive the destructors of its library crash. So at
 * exit() every client is closed, whoever left it open; where one cannot be closed,
 * the process ends without running those destructors.
 */
#ifndef STELE_DEVICE_RBD_CLIENT_H
#define STELE_DEVICE_RBD_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/device/rbd/api.h"

struct stele_rbd_client;

/* Once, after the libraries were loaded, before any client. 0; -ENOMEM. */
int stele_rbd_watch_exit(void);
/* Has exit() begun? Then librados is not to be called any more. */
bool stele_rbd_ended(void);
/* Around a call that is no job, and hands memory to librbd. false: exit() has begun. */
bool stele_rbd_enter(void);
void stele_rbd_leave(void);

/* Takes the handle, which has not connected yet. `timeout`: seconds. 0; -ENOMEM. */
int stele_rbd_client_add(rados_t cluster, uint32_t timeout);
/*
 * Closes what is open there. Waits for it at most for its timeout, and not at all
 * behind a call that was given up, nor when `background`: then it is done when possible.
 */
void stele_rbd_client_close(rados_t cluster, bool background);

/* What the client owns from now on. 0; -ENOMEM. */
void stele_rbd_client_set_io(rados_t cluster, rados_ioctx_t io);
int stele_rbd_image_add(rbd_image_t image, rados_ioctx_t io);
/* It is about to be closed. */
void stele_rbd_image_remove(rbd_image_t image);

/* Something that was sent may still be carried out. */
void stele_rbd_doubt(rbd_image_t image);
/* Also when it has been fenced. */
bool stele_rbd_in_doubt(rbd_image_t image);
/* Nothing that was sent will be carried out. */
void stele_rbd_fenced(rbd_image_t image);

/* ---- for bound.c ----------------------------------------------------- */

/*
 * A job is to run at the client of one of the handles (the others are NULL). Return: its
 * timeout in seconds; -ETIMEDOUT: another one hangs there (unless `always`); -ECANCELED:
 * exit() has begun; -EBADF.
 */
int stele_rbd_client_enter(rados_t cluster, rados_ioctx_t io,
			   rbd_image_t image, bool always,
			   struct stele_rbd_client **out);
/* It was given up, and runs. */
void stele_rbd_client_late(struct stele_rbd_client *client);
/* It has ended; `late`: it had been given up. The last use of the client. */
void stele_rbd_client_leave(struct stele_rbd_client *client, bool late);
void stele_rbd_client_doubt(struct stele_rbd_client *client);
/* A detached thread without signals. 0 or -errno. */
int stele_rbd_thread(void *(*run)(void *arg), void *arg);
/* How many ticks (stele_wait_tick()) to wait at this timeout, in seconds. */
unsigned int stele_rbd_ticks(uint32_t timeout);

#endif
