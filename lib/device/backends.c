/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backends.c - see backends.h
 */
#include "lib/device/backends.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Errors by which a kernel or a sandbox says that there is no io_uring. */
static bool means_absent(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -ENOSYS ||
	       rc == -ENOMEM || rc == -EINVAL;
}

/* What was allowed when the file was opened may be forbidden by now. */
static int open_uring_queue(struct stele_device *dev, unsigned int depth,
			    void *arena, size_t arena_size,
			    struct stele_queue **out)
{
	struct stele_file *file = (struct stele_file *)dev;
	int rc = stele_uring_open_queue(dev, depth, arena, arena_size, out);

	if (!rc || !means_absent(rc) || file->forced)
		return rc;
	if (!atomic_exchange(&file->stepped_down, true))
		stele_log_warning(&dev->log,
				  "cannot use io_uring any more: %s; "
				  "falling back to threads",
				  strerror(-rc));
	return stele_threads_open_queue(dev, depth, arena, arena_size, out);
}

static const struct stele_file_backend uring = {
	.name = STELE_BACKEND_URING,
	.queue_open = open_uring_queue,
	.queue_join = stele_uring_join,
};

static const struct stele_file_backend threads = {
	.name = STELE_BACKEND_THREADS,
	.queue_open = stele_threads_open_queue,
};

static const struct stele_file_backend *const backends[] = {
	&uring,
	&threads,
	&stele_backend_iopoll,
	&stele_backend_hybrid,
	&stele_backend_sqpoll,
	&stele_backend_passthrough,
};
#define BACKEND_COUNT (sizeof(backends) / sizeof(backends[0]))
#define NAMES_SIZE    128 /* of all of them */

static const struct stele_file_backend *find(const char *name)
{
	for (size_t i = 0; i < BACKEND_COUNT; i++)
		if (!strcmp(backends[i]->name, name))
			return backends[i];
	return NULL;
}

static void set(struct stele_file *file, const struct stele_file_backend *which)
{
	file->ops.name = which->name;
	file->ops.queue_open = which->queue_open;
	file->ops.queue_join = which->queue_join;
}

/* ---- the default, and threads ------------------------------------------------ */

static int choose_uring(struct stele_file *file)
{
	const struct stele_log *log = &file->base.log;
	int rc = stele_uring_probe();

	if (!rc)
		return 0;
	if (!file->forced && means_absent(rc)) {
		stele_log_warning(log,
				  "cannot use io_uring: %s; "
				  "falling back to threads", strerror(-rc));
		set(file, &threads);
		return 0;
	}
	stele_log_error(log, "cannot use backend '%s': %s", STELE_BACKEND_URING,
			strerror(-rc));
	return rc;
}

/* ---- those by name ------------------------------------------------------------ */

static int refuse(const struct stele_file *file, const char *path,
		  const char *why)
{
	stele_log_error(&file->base.log, "cannot use backend '%s' on '%s': %s",
			file->ops.name, path, why);
	return -EOPNOTSUPP;
}

/* One block, by a queue as any other, from memory that the queue may register. */
static int read_once(struct stele_device *dev)
{
	struct stele_request request = {.op = STELE_OP_READ,
					.size = dev->limits.logical_block};
	struct stele_request *done;
	struct stele_queue *queue;
	int rc;

	request.data = stele_device_alloc(dev, request.size);
	if (!request.data)
		return -ENOMEM;
	rc = stele_queue_open(dev, 1, request.data, request.size, &queue);
	if (!rc) {
		rc = stele_queue_submit(queue, &request);
		if (!rc)
			rc = stele_queue_reap(queue, &done, 1, 1);
		rc = rc < 0 ? rc : request.status;
		if (stele_queue_close(queue))
			return -EIO; /* and its memory stays */
	}
	free(request.data);
	return rc;
}

static int choose_named(struct stele_file *file, const char *path,
			const struct stele_file_backend *which)
{
	const char *why = NULL;
	int rc;

	if (which->reads_only && file->base.writable)
		return refuse(file, path,
			      "it only reads, and this is opened "
			      "to write");
	if (which->refuse)
		why = which->refuse(file);
	if (why)
		return refuse(file, path, why);
	rc = read_once(&file->base);
	if (rc == -ENODATA && !which->reads_only)
		return 0; /* a file that is still empty */
	if (rc == -EINVAL)
		return refuse(file, path, "this kernel has no such ring");
	return rc ? refuse(file, path, strerror(-rc)) : 0;
}

static int refuse_unknown(const struct stele_log *log, const char *name, bool from_env)
{
	char names[NAMES_SIZE] = "";
	size_t size = 0;

	for (size_t i = 0; i < BACKEND_COUNT && size < sizeof(names); i++)
		size += (size_t)snprintf(names + size, sizeof(names) - size,
					 "%s%s", i ? ", " : "",
					 backends[i]->name);
	stele_log_error(log, "unknown backend '%s'%s: there are %s",
			name, from_env ? " in $" STELE_BACKEND_ENV : "", names);
	return -EINVAL;
}

/* Return: 1: by its name; 0: the default; -EINVAL (logged). */
static int look_up(const char *wanted, const struct stele_log *log,
		   const struct stele_file_backend **which)
{
	const bool from_env = !wanted || !*wanted;

	if (from_env)
		wanted = getenv(STELE_BACKEND_ENV);
	*which = wanted && *wanted ? find(wanted) : &uring;
	if (!*which)
		return refuse_unknown(log, wanted, from_env);
	return wanted && *wanted;
}

int stele_backend_check(const char *wanted, const struct stele_log *log)
{
	const struct stele_file_backend *which;
	const int ret = look_up(wanted, log, &which);

	return ret < 0 ? ret : 0;
}

int stele_backend_choose(struct stele_file *file, const char *path,
			 const char *wanted)
{
	const struct stele_file_backend *which;
	const int ret = look_up(wanted, &file->base.log, &which);

	if (ret < 0)
		return ret;
	file->forced = ret;
	set(file, which);
	if (which == &threads)
		return 0;
	return which == &uring ? choose_uring(file)
			       : choose_named(file, path, which);
}
