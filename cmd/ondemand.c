/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ondemand.c - see ondemand.h
 */
#include "ondemand.h"

#include <dlfcn.h>
#include <string.h>

#include "cmd.h"

bool ondemand_load(const char *name, const struct ondemand_call *calls, size_t count,
		   void *table)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; library && i < count; i++) {
		void *call = dlsym(library, calls[i].name);

		if (!call) {
			library = NULL;
			break;
		}
		memcpy((char *)table + calls[i].place, &call, sizeof(call));
	}
	if (!library) /* its text begins with the name of the library */
		cmd_message("cannot load %s", dlerror());
	return library;
}
