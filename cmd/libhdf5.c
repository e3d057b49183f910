/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libhdf5.c - loads HDF5, once
 */
#include "libhdf5.h"

#include <dlfcn.h>

#include "ondemand.h"

struct libhdf5 libhdf5;

static const struct ondemand_call wanted[] = {
#define CALL(call) {#call, offsetof(struct libhdf5, call)},
	LIBHDF5_CALLS(CALL)
#undef CALL
};

/* Distributions and versions differ in its name, which is in the message if there is none. */
bool libhdf5_load(void)
{
	static const char *const names[] = {"libhdf5_serial.so.310", "libhdf5.so.310",
					    "libhdf5.so.200", "libhdf5.so.103",
					    "libhdf5_serial.so.103"};
	const size_t last = sizeof(names) / sizeof(names[0]) - 1;
	size_t i = 0;

	while (i < last && !dlopen(names[i], RTLD_NOW | RTLD_LOCAL))
		i++;
	return ondemand_load(names[i], wanted, sizeof(wanted) / sizeof(wanted[0]), &libhdf5);
}
