/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ondemand.c - see ondemand.h
 */
#include "lib/base/ondemand.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool has_all(void *library, const struct stele_ondemand_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!dlsym(library, calls[i].name))
			return false;
	return true;
}

int stele_ondemand_load(const char *name, const struct stele_ondemand_call *calls, size_t count,
			void *table, const struct stele_log *log)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	const char *why;

	if (!library || !has_all(library, calls, count)) {
		why = dlerror(); /* begins with the name of the library in question */
		stele_log_error(log, "cannot load %s", why ? why : name);
		if (library)
			dlclose(library);
		return -EOPNOTSUPP;
	}
	for (size_t i = 0; i < count; i++) {
		void *call = dlsym(library, calls[i].name);

		memcpy((char *)table + calls[i].place, &call, sizeof(call));
	}
	return 0;
}
