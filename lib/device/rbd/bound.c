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
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/backend.h"

struct job {
	struct stele_rbd_call call; /* the first; texts and room are the job's own */
	ssize_t (*run)(struct stele_rbd_call *call);
	struct stele_rbd_client *client;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	bool done, given_up;
	unsigned int steps; /* of its progress */
	ssize_t res;
};

static void free_job(struct job *job)
{
	pthread_cond_destroy(&job->changed);
	pthread_mutex_destroy(&job->lock);
	free((char *)job->call.text[0]);
	free((char *)job->call.text[1]);
	free(job->call.out);
	free(job);
}

static struct job *new_job(ssize_t (*run)(struct stele_rbd_call *),
			   unsigned int flags, const struct stele_rbd_call *call)
{
	struct job *job = calloc(1, sizeof(*job));
	bool complete = true;

	if (!job)
		return NULL;
	job->run = run;
	job->call = *call;
	pthread_mutex_init(&job->lock, NULL);
	pthread_cond_init(&job->changed, NULL);
	for (int i = 0; i < 2; i++) {
		job->call.text[i] = call->text[i] ? strdup(call->text[i]) : NULL;
		complete &= !call->text[i] || job->call.text[i];
	}
	job->call.out = call->size ? calloc(1, call->size) : NULL;
	complete &= !call->size || job->call.out;
	if (!complete) {
		free_job(job);
		return NULL;
	}
	if (flags & STELE_RBD_SENDS && call->size)
		memcpy(job->call.out, call->out, call->size);
	return job;
}

bool stele_rbd_step(struct stele_rbd_call *call)
{
	struct job *job = (struct job *)call;
	bool given_up;

	pthread_mutex_lock(&job->lock);
	job->steps++;
	given_up = job->given_up;
	pthread_mutex_unlock(&job->lock);
	return !given_up;
}

static void *run_job(void *arg)
{
	struct job *job = arg;
	struct stele_rbd_client *client = job->client;
	ssize_t res = job->run(&job->call);
	bool given_up;

	pthread_mutex_lock(&job->lock);
	job->res = res;
	job->done = true;
	given_up = job->given_up;
	pthread_cond_signal(&job->changed);
	pthread_mutex_unlock(&job->lock);
	if (!given_up)
		return NULL; /* it is not ours any more */
	if (job->call.drop && res >= 0)
		job->call.drop(&job->call);
	free_job(job);
	stele_rbd_client_leave(client, true);
	return NULL;
}

/* Is it done? If not, it belongs to its thread from now on. */
static bool wait_for(struct job *job, uint32_t timeout, unsigned int flags)
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
	if (!done) {
		stele_rbd_client_late(job->client);
		if (flags & STELE_RBD_CHANGES)
			stele_rbd_client_doubt(job->client);
	}
	pthread_mutex_unlock(&job->lock);
	return done;
}

static ssize_t take_result(const struct job *job, unsigned int flags,
			   const struct stele_rbd_call *call)
{
	if (job->res == -ETIMEDOUT && flags & STELE_RBD_CHANGES)
		stele_rbd_client_doubt(job->client);
	if (job->res >= 0 && call->size && !(flags & STELE_RBD_SENDS))
		memcpy(call->out, job->call.out, call->size);
	return job->res;
}

ssize_t stele_rbd_do(ssize_t (*run)(struct stele_rbd_call *call),
		     unsigned int flags, const struct stele_rbd_call *call)
{
	struct job *job = new_job(run, flags, call);
	int timeout;
	ssize_t res;

	if (!job)
		return -ENOMEM;
	timeout = stele_rbd_client_enter(call->cluster, call->io, call->image,
					 flags & STELE_RBD_ALWAYS, &job->client);
	if (timeout < 0) {
		free_job(job);
		return timeout;
	}
	res = stele_rbd_thread(run_job, job);
	if (!res) {
		if (!wait_for(job, (uint32_t)timeout, flags))
			return -ETIMEDOUT;
		res = take_result(job, flags, call);
	}
	stele_rbd_client_leave(job->client, false);
	free_job(job);
	return res;
}
