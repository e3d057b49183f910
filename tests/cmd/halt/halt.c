/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halt.c - a writer stops before one of its operations on a file, or fails there
 *
 * Loaded before all else (LD_PRELOAD). Calls that change $HALT_FILE are numbered. The one
 * of number $HALT_AT tells so on the FIFO $HALT_TOLD, and goes on when something was
 * written to $HALT_GO; $HALT_FAIL_AT fails. Locks are not seen, and the machine is the one
 * that the file $HALT_BOOT names, as where two machines share a file. What cuts a file off
 * is numbered, and never stopped: nothing can look between a look and the call.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static int is_number(const char *name, int n)
{
	const char *text = getenv(name);

	return text && atoi(text) == n;
}

/* Or one whose name begins with it: that shall take its place. */
static int is_target(int fd)
{
	const char *path = getenv("HALT_FILE");
	char link[32], name[4096] = "";
	struct stat a, b;

	if (!path)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, name, sizeof(name) - 1) > 0 &&
	    !strncmp(name, path, strlen(path)))
		return 1;
	return !stat(path, &a) && !fstat(fd, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Nonzero: fail. */
static int pass(int fd, int halts)
{
	char byte;
	int n, fifo;

	if (!is_target(fd))
		return 0;
	pthread_mutex_lock(&lock);
	n = ++count;
	pthread_mutex_unlock(&lock);
	if (halts && is_number("HALT_AT", n)) {
		fifo = open(getenv("HALT_TOLD"), O_WRONLY | O_CLOEXEC);
		if (fifo < 0 || dprintf(fifo, "stopped\n") < 0)
			abort();
		close(fifo);
		fifo = open(getenv("HALT_GO"), O_RDONLY | O_CLOEXEC);
		while (read(fifo, &byte, 1) > 0)
			;
		close(fifo);
	}
	errno = EIO;
	return is_number("HALT_FAIL_AT", n);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	ssize_t (*next)(int, const void *, size_t, off_t) =
		dlsym(RTLD_NEXT, "pwrite");

	return pass(fd, 1) ? -1 : next(fd, data, size, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t size)
{
	int (*next)(int, int, off_t, off_t) = dlsym(RTLD_NEXT, "fallocate");

	return pass(fd, 1) ? -1 : next(fd, mode, offset, size);
}

int ftruncate(int fd, off_t size)
{
	int (*next)(int, off_t) = dlsym(RTLD_NEXT, "ftruncate");
	struct stat st;
	int cuts = fstat(fd, &st) == 0 && st.st_size >= size;

	return pass(fd, !cuts) ? -1 : next(fd, size);
}

int flock(int fd, int operation)
{
	(void)fd, (void)operation;
	return 0;
}

int fcntl(int fd, int command, ...)
{
	int (*next)(int, int, ...) = dlsym(RTLD_NEXT, "fcntl");
	va_list args;
	void *arg;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	return command == F_OFD_SETLK ? 0 : next(fd, command, arg);
}

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
	const char *boot = getenv("HALT_BOOT");

	if (boot && (strstr(path, "boot_id") || strstr(path, "machine-id")))
		path = boot;
	return next(path, mode);
}
