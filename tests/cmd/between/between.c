/* SPDX-License-Identifier: Apache-2.0 */
/*
 * between.c - something happens between two looks of a command
 *
 * Loaded before all else (LD_PRELOAD), it runs $BETWEEN_DO before $BETWEEN_FILE is opened
 * for the $BETWEEN_AT-th time; what is run is not watched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
	const char *file = getenv("BETWEEN_FILE"), *at = getenv("BETWEEN_AT");
	static int count;
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (file && at && !strcmp(path, file) && ++count == atoi(at)) {
		unsetenv("LD_PRELOAD");
		if (system(getenv("BETWEEN_DO")))
			abort();
	}
	return next(path, flags, mode);
}
