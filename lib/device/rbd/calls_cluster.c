/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls_cluster.c - calls on a cluster, a pool or a whole image, as jobs that end
 *
 * As calls.c. Connections and images are entered and crossed out on the way, and a
 * connection that a job needs for ever stays: its threads would use what is freed.
 */
#include "lib/device/rbd/bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define real stele_ceph_real

struct stele_ceph stele_ceph_real;

/* ---- cluster ---------------------------------------------------------------- */

static struct stele_rbd_job *cluster_job(ssize_t (*run)(struct stele_rbd_job *),
					 rados_t cluster)
{
	struct stele_rbd_job *job = stele_rbd_job_new(run, NULL);

	if (job)
		job->cluster = cluster;
	return job;
}

static ssize_t run_rados_connect(struct stele_rbd_job *job)
{
	return real.rados_connect(job->cluster);
}

static int bound_rados_connect(rados_t cluster)
{
	struct stele_rbd_job *job = cluster_job(run_rados_connect, cluster);
	int rc;

	stele_rbd_client_add(cluster);
	rc = (int)stele_rbd_job_do(&job, 0);
	stele_rbd_job_free(job);
	return rc;
}

static ssize_t run_rados_shutdown(struct stele_rbd_job *job)
{
	real.rados_shutdown(job->cluster);
	return 0;
}

static void bound_rados_shutdown(rados_t cluster)
{
	struct stele_rbd_job *job;

	if (stele_rbd_client_busy(cluster))
		return;
	job = cluster_job(run_rados_shutdown, cluster);
	stele_rbd_job_do(&job, 0);
	if (job)
		stele_rbd_client_remove(cluster);
	stele_rbd_job_free(job);
}

/* `expire`: seconds. Also where something else hangs: it is the way out. */
static ssize_t run_rados_blocklist_add(struct stele_rbd_job *job)
{
	return real.rados_blocklist_add(job->cluster, job->text[0],
					(uint32_t)job->number[0]);
}

static int bound_rados_blocklist_add(rados_t cluster, char *address,
				     uint32_t expire)
{
	struct stele_rbd_job *job = cluster_job(run_rados_blocklist_add, cluster);
	int rc;

	job = stele_rbd_job_text(job, address, NULL);
	if (job)
		job->number[0] = expire;
	rc = (int)stele_rbd_job_do(&job, STELE_RBD_ALWAYS);
	stele_rbd_job_free(job);
	return rc;
}

struct answer {
	char *data, *words;
	size_t data_size, words_size;
};

static ssize_t run_rados_mon_command(struct stele_rbd_job *job)
{
	struct answer *answer = job->out;
	const char *command = job->text[0];

	return real.rados_mon_command(job->cluster, &command, 1, "", 0,
				      &answer->data, &answer->data_size,
				      &answer->words, &answer->words_size);
}

static void late_rados_mon_command(struct stele_rbd_job *job)
{
	const struct answer *answer = job->out;

	real.rados_buffer_free(answer->data);
	real.rados_buffer_free(answer->words);
}

/* One command, without input. */
static int bound_rados_mon_command(rados_t cluster, const char **commands,
				   size_t count, const char *input,
				   size_t input_size, char **data,
				   size_t *data_size, char **words,
				   size_t *words_size)
{
	struct stele_rbd_job *job = cluster_job(run_rados_mon_command, cluster);
	const struct answer *answer;
	int rc;

	(void)input;
	if (count != 1 || input_size) {
		stele_rbd_job_free(job);
		return -EINVAL;
	}
	job = stele_rbd_job_room(stele_rbd_job_text(job, commands[0], NULL),
				 sizeof(*answer));
	if (job)
		job->late = late_rados_mon_command;
	rc = (int)stele_rbd_job_do(&job, 0);
	if (job) {
		answer = job->out;
		*data = answer->data;
		*data_size = answer->data_size;
		*words = answer->words;
		*words_size = answer->words_size;
	}
	stele_rbd_job_free(job);
	return rc;
}

/* ---- pool ------------------------------------------------------------------- */

static ssize_t run_rados_ioctx_create(struct stele_rbd_job *job)
{
	return real.rados_ioctx_create(job->cluster, job->text[0], job->out);
}

static int bound_rados_ioctx_create(rados_t cluster, const char *pool,
				    rados_ioctx_t *io)
{
	struct stele_rbd_job *job = cluster_job(run_rados_ioctx_create, cluster);
	int rc;

	job = stele_rbd_job_room(stele_rbd_job_text(job, pool, NULL),
				 sizeof(*io));
	rc = (int)stele_rbd_job_do(&job, 0);
	if (job && !rc)
		memcpy(io, job->out, sizeof(*io));
	stele_rbd_job_free(job);
	return rc;
}

static void bound_rados_ioctx_destroy(rados_ioctx_t io)
{
	if (!stele_rbd_client_busy(real.rados_ioctx_get_cluster(io)))
		real.rados_ioctx_destroy(io);
}

/* ---- image ------------------------------------------------------------------ */

static struct stele_rbd_job *io_job(ssize_t (*run)(struct stele_rbd_job *),
				    rados_ioctx_t io)
{
	struct stele_rbd_job *job = stele_rbd_job_new(run, NULL);

	if (job)
		job->io = io;
	return job;
}

static ssize_t run_rbd_open(struct stele_rbd_job *job)
{
	return real.rbd_open(job->io, job->text[0], job->out, job->text[1]);
}

static ssize_t run_rbd_open_read_only(struct stele_rbd_job *job)
{
	return real.rbd_open_read_only(job->io, job->text[0], job->out,
				       job->text[1]);
}

static void late_open(struct stele_rbd_job *job)
{
	if (!job->res)
		real.rbd_close(*(rbd_image_t *)job->out);
}

static int open_image(ssize_t (*run)(struct stele_rbd_job *), rados_ioctx_t io,
		      const char *name, rbd_image_t *image, const char *shot)
{
	struct stele_rbd_job *job = io_job(run, io);
	int rc;

	job = stele_rbd_job_room(stele_rbd_job_text(job, name, shot),
				 sizeof(*image));
	if (job)
		job->late = late_open;
	rc = (int)stele_rbd_job_do(&job, 0);
	if (job && !rc) {
		memcpy(image, job->out, sizeof(*image));
		stele_rbd_image_add(*image, real.rados_ioctx_get_cluster(io));
	}
	stele_rbd_job_free(job);
	return rc;
}

static int bound_rbd_open(rados_ioctx_t io, const char *name,
			  rbd_image_t *image, const char *shot)
{
	return open_image(run_rbd_open, io, name, image, shot);
}

static int bound_rbd_open_read_only(rados_ioctx_t io, const char *name,
				    rbd_image_t *image, const char *shot)
{
	return open_image(run_rbd_open_read_only, io, name, image, shot);
}

static ssize_t run_rbd_close(struct stele_rbd_job *job)
{
	return real.rbd_close(job->image);
}

/* One that does not close stays in the list, and so its client. */
static int bound_rbd_close(rbd_image_t image)
{
	struct stele_rbd_job *job = stele_rbd_job_new(run_rbd_close, image);
	int rc = (int)stele_rbd_job_do(&job, 0);

	if (job && job->done)
		stele_rbd_image_remove(image);
	stele_rbd_job_free(job);
	return rc;
}

/* The options are the caller's, who keeps them when this is given up. */
static ssize_t run_rbd_create4(struct stele_rbd_job *job)
{
	return real.rbd_create4(job->io, job->text[0], job->number[0],
				*(rbd_image_options_t *)job->out);
}

static int bound_rbd_create4(rados_ioctx_t io, const char *name, uint64_t size,
			     rbd_image_options_t options)
{
	struct stele_rbd_job *job = io_job(run_rbd_create4, io);
	int rc;

	job = stele_rbd_job_room(stele_rbd_job_text(job, name, NULL),
				 sizeof(options));
	if (job) {
		job->number[0] = size;
		memcpy(job->out, &options, sizeof(options));
	}
	rc = (int)stele_rbd_job_do(&job, STELE_RBD_CHANGES);
	stele_rbd_job_free(job);
	return rc;
}

/* Objects go one by one: each is a step. */
static int on_step(uint64_t offset, uint64_t total, void *user)
{
	(void)offset, (void)total;
	stele_rbd_job_step(user);
	return 0;
}

static ssize_t run_rbd_remove(struct stele_rbd_job *job)
{
	return real.rbd_remove_with_progress(job->io, job->text[0], on_step, job);
}

static int bound_rbd_remove(rados_ioctx_t io, const char *name)
{
	struct stele_rbd_job *job = io_job(run_rbd_remove, io);
	int rc;

	job = stele_rbd_job_text(job, name, NULL);
	rc = (int)stele_rbd_job_do(&job, STELE_RBD_CHANGES);
	stele_rbd_job_free(job);
	return rc;
}

void stele_rbd_bound_calls(struct stele_ceph *calls)
{
	real = *calls;
	calls->rados_blocklist_add = bound_rados_blocklist_add;
	calls->rados_connect = bound_rados_connect;
	calls->rados_ioctx_create = bound_rados_ioctx_create;
	calls->rados_ioctx_destroy = bound_rados_ioctx_destroy;
	calls->rados_mon_command = bound_rados_mon_command;
	calls->rados_shutdown = bound_rados_shutdown;
	calls->rbd_close = bound_rbd_close;
	calls->rbd_create4 = bound_rbd_create4;
	calls->rbd_open = bound_rbd_open;
	calls->rbd_open_read_only = bound_rbd_open_read_only;
	calls->rbd_remove = bound_rbd_remove;
	stele_rbd_bound_image_calls(calls);
}
