/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - see client.h
 *
 * One lock guards the list and all that is in it. It is never held during a call of
 * librados or librbd.
 */
#include "lib/device/rbd/client.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/device/backend.h"

#define EXIT_TICKS  (5000 / STELE_TICK_MS)
#define FLUSH_TICKS (1000 / STELE_TICK_MS)

enum state { SURE, DOUBT, FENCED };

struct image {
	rbd_image_t image;
	struct image *next;
};

struct stele_rbd_client {
	rados_t cluster;
	rados_ioctx_t io;     /* NULL: none */
	struct image *images; /* that are open */
	uint32_t timeout;     /* seconds */
	unsigned int jobs;    /* that run */
	unsigned int late;    /* of them, those that were given up */
	enum state state;
	bool abandoned; /* to be closed as soon as that is possible */
	bool closing;	/* by a thread that alone may touch the handles */
	bool closed, awaited;
	struct stele_rbd_client *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stele_rbd_client *clients;
static atomic_bool ended;
static atomic_uint inside; /* calls that are no jobs */

/* A child has nothing of its parent, whose other threads may have held the lock. */
static void forget(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&changed, NULL);
	clients = NULL;
	atomic_store(&inside, 0);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget);
}

int stele_rbd_thread(void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

unsigned int stele_rbd_ticks(uint32_t timeout)
{
	const unsigned int second = 1000 / STELE_TICK_MS;

	return (timeout + 1) * second + timeout * second / 4;
}

/* ---- find (all with the lock) ----------------------------------------------- */

static bool has_image(const struct stele_rbd_client *client, rbd_image_t image)
{
	const struct image *entry = client->images;

	while (entry && entry->image != image)
		entry = entry->next;
	return entry;
}

/* By one of the three. What is being closed has no handles: they may be others' soon. */
static struct stele_rbd_client *find(rados_t cluster, rados_ioctx_t io,
				     rbd_image_t image)
{
	for (struct stele_rbd_client *c = clients; c; c = c->next)
		if (!c->closing && ((cluster && c->cluster == cluster) ||
				    (io && c->io == io) ||
				    (image && has_image(c, image))))
			return c;
	return NULL;
}

/* ---- close ------------------------------------------------------------------ */

static void *close_client(void *arg)
{
	struct stele_rbd_client *client = arg, **place = &clients;
	struct image *image;

	while ((image = client->images)) {
		client->images = image->next;
		stele_ceph_real.rbd_close(image->image);
		free(image);
	}
	if (client->io)
		stele_ceph_real.rados_ioctx_destroy(client->io);
	stele_ceph_real.rados_shutdown(client->cluster);

	pthread_mutex_lock(&lock);
	while (*place != client)
		place = &(*place)->next;
	*place = client->next;
	client->closed = true;
	if (!client->awaited)
		free(client);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* With the lock. */
static void close_if_possible(struct stele_rbd_client *client)
{
	if (!client->abandoned || client->closing || client->jobs ||
	    client->state == DOUBT)
		return;
	client->closing = true;
	if (stele_rbd_thread(close_client, client))
		client->closing = false;
}

void stele_rbd_client_close(rados_t cluster, bool background)
{
	struct stele_rbd_client *client;
	unsigned int ticks = 0;

	pthread_mutex_lock(&lock);
	client = atomic_load(&ended) ? NULL : find(cluster, NULL, NULL);
	if (client) {
		client->abandoned = true;
		close_if_possible(client);
		client->awaited = client->closing && !background;
	}
	if (client && client->awaited) {
		while (!client->closed && ticks < stele_rbd_ticks(client->timeout))
			if (!stele_wait_tick(&changed, &lock))
				ticks++;
		client->awaited = false;
		if (client->closed)
			free(client);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- exit ------------------------------------------------------------------- */

bool stele_rbd_ended(void)
{
	return atomic_load(&ended);
}

bool stele_rbd_enter(void)
{
	atomic_fetch_add(&inside, 1);
	if (!atomic_load(&ended))
		return true;
	atomic_fetch_sub(&inside, 1);
	return false;
}

void stele_rbd_leave(void)
{
	atomic_fetch_sub(&inside, 1);
}

/* With the lock. One that is in doubt keeps its lock, so there is nothing to wait for. */
static bool close_all(void)
{
	unsigned int ticks = 0;

	while (clients && ticks < EXIT_TICKS) {
		for (struct stele_rbd_client *c = clients; c; c = c->next) {
			if (c->state == DOUBT)
				return false;
			c->abandoned = true;
			if (!atomic_load(&inside))
				close_if_possible(c);
		}
		if (!stele_wait_tick(&changed, &lock))
			ticks++;
	}
	return !clients;
}

static void *flush_all(void *arg)
{
	fflush(NULL);
	pthread_mutex_lock(&lock);
	*(bool *)arg = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* With the lock. A stream on which another thread waits for input would keep us. */
static void flush(void)
{
	static bool done;
	unsigned int ticks = 0;

	if (stele_rbd_thread(flush_all, &done))
		return;
	while (!done && ticks < FLUSH_TICKS)
		if (!stele_wait_tick(&changed, &lock))
			ticks++;
}

/*
 * Runs before the destructors of the libraries, which were loaded before. Handlers
 * that the program registered earlier run after them: what they call here is refused.
 */
static void end(int status, void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	atomic_store(&ended, true);
	if (!close_all()) {
		flush();
		_exit(status);
	}
	pthread_mutex_unlock(&lock);
}

int stele_rbd_watch_exit(void)
{
	return on_exit(end, NULL) ? -ENOMEM : 0;
}

/* ---- what a client has ------------------------------------------------------ */

int stele_rbd_client_add(rados_t cluster, uint32_t timeout)
{
	struct stele_rbd_client *client = calloc(1, sizeof(*client));

	if (!client)
		return -ENOMEM;
	client->cluster = cluster;
	client->timeout = timeout;
	pthread_mutex_lock(&lock);
	client->next = clients;
	clients = client;
	pthread_mutex_unlock(&lock);
	return 0;
}

/*
 * The first connection made OpenSSL register a handler of its own, which must not run
 * before ours: closing a connection still uses it.
 */
static void watch_exit_again(void)
{
	static atomic_bool done;

	if (!atomic_exchange(&done, true))
		stele_rbd_watch_exit();
}

void stele_rbd_client_set_io(rados_t cluster, rados_ioctx_t io)
{
	struct stele_rbd_client *client;

	watch_exit_again();
	pthread_mutex_lock(&lock);
	client = find(cluster, NULL, NULL);
	if (client)
		client->io = io;
	pthread_mutex_unlock(&lock);
}

int stele_rbd_image_add(rbd_image_t image, rados_ioctx_t io)
{
	struct image *entry = calloc(1, sizeof(*entry));
	struct stele_rbd_client *client;

	if (!entry)
		return -ENOMEM;
	entry->image = image;
	pthread_mutex_lock(&lock);
	client = find(NULL, io, NULL);
	if (client) {
		entry->next = client->images;
		client->images = entry;
	}
	pthread_mutex_unlock(&lock);
	if (!client)
		free(entry);
	return client ? 0 : -EBADF;
}

void stele_rbd_image_remove(rbd_image_t image)
{
	struct stele_rbd_client *client;
	struct image **place, *entry;

	pthread_mutex_lock(&lock);
	client = find(NULL, NULL, image);
	if (client) {
		place = &client->images;
		while ((*place)->image != image)
			place = &(*place)->next;
		entry = *place;
		*place = entry->next;
		free(entry);
	}
	pthread_mutex_unlock(&lock);
}

static void set_state(rbd_image_t image, enum state state)
{
	struct stele_rbd_client *client;

	pthread_mutex_lock(&lock);
	client = find(NULL, NULL, image);
	if (client && client->state < state)
		client->state = state;
	pthread_mutex_unlock(&lock);
}

void stele_rbd_doubt(rbd_image_t image)
{
	set_state(image, DOUBT);
}

void stele_rbd_fenced(rbd_image_t image)
{
	set_state(image, FENCED);
}

bool stele_rbd_in_doubt(rbd_image_t image)
{
	struct stele_rbd_client *client;
	bool doubt;

	pthread_mutex_lock(&lock);
	client = find(NULL, NULL, image);
	doubt = client && client->state != SURE;
	pthread_mutex_unlock(&lock);
	return doubt;
}

/* ---- jobs ------------------------------------------------------------------- */

int stele_rbd_client_enter(rados_t cluster, rados_ioctx_t io,
			   rbd_image_t image, bool always,
			   struct stele_rbd_client **out)
{
	struct stele_rbd_client *client;
	int timeout = -EBADF;

	pthread_mutex_lock(&lock);
	client = find(cluster, io, image);
	if (atomic_load(&ended)) {
		timeout = -ECANCELED;
	} else if (client && client->late && !always) {
		timeout = -ETIMEDOUT;
	} else if (client) {
		client->jobs++;
		timeout = (int)client->timeout;
	}
	pthread_mutex_unlock(&lock);
	*out = client;
	return timeout;
}

void stele_rbd_client_late(struct stele_rbd_client *client)
{
	pthread_mutex_lock(&lock);
	client->late++;
	pthread_mutex_unlock(&lock);
}

void stele_rbd_client_doubt(struct stele_rbd_client *client)
{
	pthread_mutex_lock(&lock);
	if (client->state == SURE)
		client->state = DOUBT;
	pthread_mutex_unlock(&lock);
}

void stele_rbd_client_leave(struct stele_rbd_client *client, bool late)
{
	pthread_mutex_lock(&lock);
	client->jobs--;
	client->late -= late;
	close_if_possible(client);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}
