/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound.c - see bound.h
 *
 * Time is counted in ticks that were waited for: a process that was stopped meanwhile
 * has not waited. librados ends a request by itself, and cleanly, at the timeout;
 * here a little later, so that only what goes on behind it is given up.
 */
#include "lib/device/rbd/bound.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/backend.h"

#define TIMEOUT_UNKNOWN 30u /* of a client that has not connected */

struct stele_rbd_client {
	rados_t cluster;
	uint32_t timeout;     /* seconds */
	unsigned int users;   /* images and jobs */
	unsigned int late;    /* jobs that were given up and run */
	atomic_bool doubt;
	struct stele_rbd_client *next;
};

struct image {
	rbd_image_t image;
	struct stele_rbd_client *client;
	struct image *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of both lists */
static struct stele_rbd_client *clients;
static struct image *images;

/* A child has nothing of its parent, whose other threads may have held the lock. */
static void forget(void)
{
	pthread_mutex_init(&lock, NULL);
	clients = NULL;
	images = NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget);
}

/* ---- clients and images ---------------------------------------------------- */

static struct stele_rbd_client *find_client(rados_t cluster)
{
	struct stele_rbd_client *client = clients;

	while (client && client->cluster != cluster)
		client = client->next;
	return client;
}

static struct stele_rbd_client *client_of_image(rbd_image_t image)
{
	struct image *entry = images;

	while (entry && entry->image != image)
		entry = entry->next;
	return entry ? entry->client : NULL;
}

void stele_rbd_client_add(rados_t cluster)
{
	struct stele_rbd_client *client = calloc(1, sizeof(*client));
	char text[16] = "";

	if (!client)
		return; /* bounded by TIMEOUT_UNKNOWN */
	client->cluster = cluster;
	if (!stele_ceph.rados_conf_get(cluster, "client_mount_timeout", text,
				       sizeof(text)))
		client->timeout = (uint32_t)strtoul(text, NULL, 10);
	if (!client->timeout)
		client->timeout = TIMEOUT_UNKNOWN;
	pthread_mutex_lock(&lock);
	client->next = clients;
	clients = client;
	pthread_mutex_unlock(&lock);
}

bool stele_rbd_client_busy(rados_t cluster)
{
	struct stele_rbd_client *client;
	bool busy;

	pthread_mutex_lock(&lock);
	client = find_client(cluster);
	busy = client && client->users;
	pthread_mutex_unlock(&lock);
	return busy;
}

bool stele_rbd_client_remove(rados_t cluster)
{
	struct stele_rbd_client **place = &clients, *client;
	bool idle;

	pthread_mutex_lock(&lock);
	while (*place && (*place)->cluster != cluster)
		place = &(*place)->next;
	client = *place;
	idle = !client || !client->users;
	if (client && idle) {
		*place = client->next;
		free(client);
	}
	pthread_mutex_unlock(&lock);
	return idle;
}

void stele_rbd_image_add(rbd_image_t image, rados_t cluster)
{
	struct image *entry = calloc(1, sizeof(*entry));

	pthread_mutex_lock(&lock);
	if (entry)
		entry->client = find_client(cluster);
	if (entry && entry->client) {
		entry->image = image;
		entry->client->users++;
		entry->next = images;
		images = entry;
		entry = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(entry);
}

void stele_rbd_image_remove(rbd_image_t image)
{
	struct image **place = &images, *entry;

	pthread_mutex_lock(&lock);
	while (*place && (*place)->image != image)
		place = &(*place)->next;
	entry = *place;
	if (entry) {
		entry->client->users--;
		*place = entry->next;
	}
	pthread_mutex_unlock(&lock);
	free(entry);
}

void stele_rbd_doubt(rbd_image_t image)
{
	struct stele_rbd_client *client;

	pthread_mutex_lock(&lock);
	client = client_of_image(image);
	if (client)
		atomic_store(&client->doubt, true);
	pthread_mutex_unlock(&lock);
}

bool stele_rbd_in_doubt(rbd_image_t image)
{
	struct stele_rbd_client *client;
	bool doubt;

	pthread_mutex_lock(&lock);
	client = client_of_image(image);
	doubt = client && atomic_load(&client->doubt);
	pthread_mutex_unlock(&lock);
	return doubt;
}

/* ---- jobs ------------------------------------------------------------------ */

struct stele_rbd_job *stele_rbd_job_new(ssize_t (*run)(struct stele_rbd_job *),
					rbd_image_t image)
{
	struct stele_rbd_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->run = run;
	job->image = image;
	pthread_mutex_init(&job->lock, NULL);
	pthread_cond_init(&job->changed, NULL);
	return job;
}

struct stele_rbd_job *stele_rbd_job_text(struct stele_rbd_job *job,
					 const char *a, const char *b)
{
	if (!job)
		return NULL;
	job->text[0] = a ? strdup(a) : NULL;
	job->text[1] = b ? strdup(b) : NULL;
	if (!!job->text[0] == !!a && !!job->text[1] == !!b)
		return job;
	stele_rbd_job_free(job);
	return NULL;
}

struct stele_rbd_job *stele_rbd_job_room(struct stele_rbd_job *job, size_t size)
{
	if (!job)
		return NULL;
	job->size = size;
	job->out = calloc(1, size ? size : 1);
	if (job->out)
		return job;
	stele_rbd_job_free(job);
	return NULL;
}

void stele_rbd_job_free(struct stele_rbd_job *job)
{
	if (!job)
		return;
	pthread_cond_destroy(&job->changed);
	pthread_mutex_destroy(&job->lock);
	free(job->text[0]);
	free(job->text[1]);
	free(job->out);
	free(job);
}

bool stele_rbd_job_step(struct stele_rbd_job *job)
{
	bool given_up;

	pthread_mutex_lock(&job->lock);
	job->steps++;
	given_up = job->given_up;
	pthread_mutex_unlock(&job->lock);
	return !given_up;
}

/* Return: how long to wait, in seconds; -ETIMEDOUT: another one hangs there. */
static int enter(struct stele_rbd_job *job, unsigned int flags)
{
	rados_t cluster = job->cluster;
	int timeout = TIMEOUT_UNKNOWN;

	if (job->io)
		cluster = stele_ceph.rados_ioctx_get_cluster(job->io);
	pthread_mutex_lock(&lock);
	job->client = job->image ? client_of_image(job->image) :
				   find_client(cluster);
	if (job->client && job->client->late && !(flags & STELE_RBD_ALWAYS)) {
		timeout = -ETIMEDOUT;
	} else if (job->client) {
		job->client->users++;
		timeout = (int)job->client->timeout;
	}
	pthread_mutex_unlock(&lock);
	return timeout;
}

static void leave(struct stele_rbd_client *client, unsigned int late)
{
	if (!client)
		return;
	pthread_mutex_lock(&lock);
	client->users--;
	client->late -= late;
	pthread_mutex_unlock(&lock);
}

static void *run_job(void *arg)
{
	struct stele_rbd_job *job = arg;
	struct stele_rbd_client *client = job->client;
	ssize_t res = job->run(job);
	bool given_up;

	pthread_mutex_lock(&job->lock);
	job->res = res;
	job->done = true;
	given_up = job->given_up;
	pthread_cond_signal(&job->changed);
	pthread_mutex_unlock(&job->lock);
	if (!given_up)
		return NULL; /* it is not ours any more */
	if (job->late)
		job->late(job);
	stele_rbd_job_free(job);
	leave(client, 1);
	return NULL;
}

/* Signals are for the caller's threads. */
static int start(struct stele_rbd_job *job)
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
	err = pthread_create(&thread, &attr, run_job, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

unsigned int stele_rbd_ticks(uint32_t timeout)
{
	const unsigned int second = 1000 / STELE_TICK_MS;

	return (timeout + 1) * second + timeout * second / 4;
}

/* Is it done? If not, it belongs to its thread from now on. */
static bool wait_for(struct stele_rbd_job *job, uint32_t timeout,
		     unsigned int flags)
{
	const unsigned int ticks_max = stele_rbd_ticks(timeout);
	unsigned int ticks = 0, steps = 0;
	bool done;

	pthread_mutex_lock(&job->lock);
	while (!job->done && ticks < ticks_max) {
		if (!stele_wait_tick(&job->changed, &job->lock))
			ticks++;
		if (steps != job->steps)
			ticks = 0;
		steps = job->steps;
	}
	done = job->done;
	job->given_up = !done;
	if (!done && job->client) {
		pthread_mutex_lock(&lock);
		job->client->late++;
		pthread_mutex_unlock(&lock);
		if (flags & STELE_RBD_CHANGES)
			atomic_store(&job->client->doubt, true);
	}
	pthread_mutex_unlock(&job->lock);
	return done;
}

ssize_t stele_rbd_job_do(struct stele_rbd_job **job, unsigned int flags)
{
	struct stele_rbd_client *client;
	ssize_t res = -ETIMEDOUT;
	int timeout, err;

	if (!*job)
		return -ENOMEM;
	timeout = enter(*job, flags);
	if (timeout < 0)
		return timeout;
	client = (*job)->client;
	err = start(*job);
	if (err) {
		leave(client, 0);
		return err;
	}
	if (wait_for(*job, (uint32_t)timeout, flags))
		res = (*job)->res;
	else
		*job = NULL;
	if (!*job)
		return res;
	if (res == -ETIMEDOUT && client && flags & STELE_RBD_CHANGES)
		atomic_store(&client->doubt, true);
	leave(client, 0);
	return res;
}
