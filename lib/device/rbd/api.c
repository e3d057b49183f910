/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - loads librbd and librados
 *
 * librbd is linked to librados, so one handle finds the functions of both. They stay
 * loaded: their threads outlive our last use of them. What could not be loaded is tried
 * again at the next target, as a long-lived process may see it installed.
 */
#include "lib/device/rbd/api.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/ondemand.h"
#include "lib/device/rbd/bound.h"

#define LIBRARY "librbd.so.1"

struct stele_ceph stele_ceph;

static const struct stele_ondemand_call calls[] = {
#define CALL(call) {#call, offsetof(struct stele_ceph, call)},
	STELE_RBD_CALLS(CALL)
#undef CALL
};

/* All of them or none. */
static int fill(const struct stele_log *log)
{
	struct stele_ceph found;
	int rc = stele_ondemand_load(LIBRARY, calls, sizeof(calls) / sizeof(calls[0]), &found, log);

	if (rc)
		return rc;
	stele_rbd_bound_calls(&found);
	stele_ceph = found;
	return stele_rbd_watch_exit();
}

/* What we belong to, if it is one that could be unloaded: jobs and exit() run our code. */
static void stay(void)
{
	Dl_info us;

	if (dladdr(&stele_ceph, &us) && us.dli_fname)
		dlopen(us.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

int stele_rbd_api_load(const struct stele_log *log)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool loaded;
	int rc = 0;

	if (stele_rbd_ended())
		return -ECANCELED;
	pthread_mutex_lock(&lock);
	if (!loaded) {
		stay();
		rc = fill(log);
		loaded = !rc;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}
