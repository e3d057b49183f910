/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.c - an open dataset that Datasets, blocks and loaders share
 *
 * Closing a Dataset stops its service; the dataset itself is closed once nothing can ask
 * for a sample's fields any more. py_generation tells a forked child from its parent: what
 * has threads or rings is started anew there.
 */
#include "core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t py_lock = PTHREAD_MUTEX_INITIALIZER;
unsigned int py_generation = 1;

/* ---- fork -------------------------------------------------------------------- */

static void before_fork(void)
{
	pthread_mutex_lock(&py_lock);
	pthread_mutex_lock(&py_log_lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&py_log_lock);
	pthread_mutex_unlock(&py_lock);
}

static void in_child(void)
{
	py_generation++;
	pthread_mutex_init(&py_log_lock, NULL);
	pthread_mutex_init(&py_lock, NULL);
}

static void watch(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

void py_fork_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}

/* ---- open and close ------------------------------------------------------------ */

static void core_free(struct py_core *core)
{
	stele_view_close(core->view);
	stele_dataset_close(core->ds);
	py_lines_free(core->log.first);
	free(core->fields);
	free(core->target);
	free(core->backend);
	free(core);
}

static int load_fields(struct py_core *core)
{
	int err = 0;

	core->field_count = core->info.field_count;
	core->fields = calloc(core->field_count + 1, sizeof(*core->fields));
	if (!core->fields)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < core->field_count; i++) {
		core->fields[i].size = sizeof(*core->fields);
		err = stele_dataset_field(core->ds, i, &core->fields[i]);
	}
	return err;
}

static int load(struct py_core *core, int mmap)
{
	int err = stele_dataset_open(
		core->target,
		&STELE_OPTS(stele_open_opts, .log = py_log_add, .log_user = &core->log,
			    .backend = core->backend, .verify = core->verify),
		&core->ds);

	if (err)
		return err;
	core->info.size = sizeof(core->info);
	err = stele_dataset_info(core->ds, &core->info);
	core->direct_pays = strcmp(core->info.backend, "rbd") != 0;
	if (!err)
		err = load_fields(core);
	if (!err && mmap)
		err = stele_view_open(core->ds, NULL, &core->view);
	return err;
}

int py_core_open(const char *target, uint32_t verify, const char *backend,
		 int mmap, struct py_core **out)
{
	struct py_core *core = calloc(1, sizeof(*core));

	*out = core;
	if (!core)
		return -ENOMEM;
	atomic_init(&core->refs, 1);
	atomic_init(&core->handles, 0);
	core->verify = verify;
	core->target = strdup(target);
	core->backend = backend ? strdup(backend) : NULL;
	if (!core->target || (backend && !core->backend))
		return -ENOMEM;
	return load(core, mmap);
}

struct py_core *py_core_ref(struct py_core *core)
{
	atomic_fetch_add_explicit(&core->refs, 1, memory_order_relaxed);
	return core;
}

void py_core_unref(struct py_core *core)
{
	if (core && atomic_fetch_sub_explicit(&core->refs, 1,
					      memory_order_acq_rel) == 1)
		core_free(core);
}

void py_core_handle_close(struct py_core *core)
{
	if (atomic_fetch_sub(&core->handles, 1) == 1)
		py_service_stop(core);
	py_core_unref(core);
}

/* ---- time ------------------------------------------------------------------------ */

struct timespec py_wait_end(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += PY_WAIT_NS;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	return until;
}
