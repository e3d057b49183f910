/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - loads libfuse3, once
 */
#include "mount/fuse/api.h"

#include "ondemand.h"

#define LIBRARY "libfuse3.so.3"

struct fuse_api fuse;

static const struct ondemand_call calls[] = {
#define CALL(call) {#call, offsetof(struct fuse_api, call)},
	FUSE_CALLS(CALL)
#undef CALL
};

bool fuse_api_load(void)
{
	return ondemand_load(LIBRARY, calls, sizeof(calls) / sizeof(calls[0]), &fuse);
}
