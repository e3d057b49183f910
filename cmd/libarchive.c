/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libarchive.c - loads libarchive, once
 */
#include "libarchive.h"

#include <stdio.h>
#include <string.h>

#include "ondemand.h"

#define LIBRARY "libarchive.so.13"

struct libarchive libarchive;

static const struct ondemand_call wanted[] = {
#define CALL(call) {#call, offsetof(struct libarchive, call)},
	LIBARCHIVE_CALLS(CALL)
#undef CALL
};

/* Until the next one of this thread. Some of its texts end in a newline. */
const char *libarchive_why(struct archive *archive)
{
	static _Thread_local char text[512];
	const char *why = libarchive.archive_error_string(archive);

	snprintf(text, sizeof(text), "%s", why ? why : "");
	text[strcspn(text, "\n")] = '\0';
	return *text ? text : "it is damaged, or cut short";
}

bool libarchive_load(void)
{
	return ondemand_load(LIBRARY, wanted, sizeof(wanted) / sizeof(wanted[0]), &libarchive);
}
