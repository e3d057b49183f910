/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libarchive.c - loads libarchive, once
 */
#include "libarchive.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "cmd.h"

#define LIBRARY "libarchive.so.13"

struct libarchive libarchive;

static const struct {
	const char *name;
	size_t place; /* in struct libarchive */
} calls[] = {
#define CALL(call) {#call, offsetof(struct libarchive, call)},
	LIBARCHIVE_CALLS(CALL)
#undef CALL
};

bool libarchive_load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; library && i < sizeof(calls) / sizeof(calls[0]);
	     i++) {
		void *call = dlsym(library, calls[i].name);

		if (!call) {
			library = NULL;
			break;
		}
		memcpy((char *)&libarchive + calls[i].place, &call,
		       sizeof(call));
	}
	if (!library) /* its text begins with the name of the library */
		cmd_message("cannot load %s", dlerror());
	return library;
}
