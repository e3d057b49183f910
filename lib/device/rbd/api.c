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
#include <string.h>

#include "lib/device/rbd/bound.h"

#define LIBRARY "librbd.so.1"

struct stele_ceph stele_ceph;

static const struct {
	const char *name;
	size_t place; /* in struct stele_ceph */
} calls[] = {
#define CALL(call) {#call, offsetof(struct stele_ceph, call)},
	STELE_RBD_CALLS(CALL)
#undef CALL
};

static int refuse(const struct stele_log *log)
{
	const char *why = dlerror();

	/* The linker's text begins with the name of the library in question. */
	stele_log_error(log, "cannot load %s", why ? why : LIBRARY);
	return -EOPNOTSUPP;
}

/* All of them or none. */
static int fill(void *library, const struct stele_log *log)
{
	struct stele_ceph found;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *call = dlsym(library, calls[i].name);

		if (!call)
			return refuse(log);
		memcpy((char *)&found + calls[i].place, &call, sizeof(call));
	}
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
	void *library;
	int rc = 0;

	if (stele_rbd_ended())
		return -ECANCELED;
	pthread_mutex_lock(&lock);
	if (!loaded) {
		stay();
		library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
		rc = library ? fill(library, log) : refuse(log);
		if (library && rc)
			dlclose(library);
		loaded = !rc;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}
