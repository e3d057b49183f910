/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libarchive.c - loads libarchive, once
 */
#include "libarchive.h"

#include "ondemand.h"

#define LIBRARY "libarchive.so.13"

struct libarchive libarchive;

static const struct ondemand_call wanted[] = {
#define CALL(call) {#call, offsetof(struct libarchive, call)},
	LIBARCHIVE_CALLS(CALL)
#undef CALL
};

const char *libarchive_why(struct archive *archive)
{
	const char *why = libarchive.archive_error_string(archive);

	return why && *why ? why : "it is damaged, or cut short";
}

bool libarchive_load(void)
{
	return ondemand_load(LIBRARY, wanted, sizeof(wanted) / sizeof(wanted[0]), &libarchive);
}
