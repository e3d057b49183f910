/* SPDX-License-Identifier: Apache-2.0 */
/*
 * between.c - something happens between two looks of a command
 *
 * Loaded before all else (LD_PRELOAD), it runs $BETWEEN_DO before $BETWEEN_FILE is opened
 * for the $BETWEEN_AT-th time, or asked for by stat(2) for the $BETWEEN_STAT-th; what is run
 * is not watched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void look(const char *path, const char *number, int *count)
{
	const char *file = getenv("BETWEEN_FILE"), *at = getenv(number);

	if (!file || !at || strcmp(path, file) != 0 || ++*count != atoi(at))
		return;
	unsetenv("LD_PRELOAD");
	if (system(getenv("BETWEEN_DO")))
		abort();
}

int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
	static int count;
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	look(path, "BETWEEN_AT", &count);
	return next(path, flags, mode);
}

int stat(const char *path, struct stat *st)
{
	int (*next)(const char *, struct stat *) = dlsym(RTLD_NEXT, "stat");
	static int count;

	look(path, "BETWEEN_STAT", &count);
	return next(path, st);
}
