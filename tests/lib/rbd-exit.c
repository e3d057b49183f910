/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rbd-exit.c - a process ends with its own exit status, whatever it left open
 *
 * Threads of librados that run when the destructors of its library have run crash, as
 * soon as they look at a setting. So each child here registers a handler before it loads
 * librbd, which runs behind those destructors: there no such thread may be left. Where a
 * call never ends, the process ends without these handlers, but with all that it printed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/device/device.h"
#include "lib/device/rbd/bound.h"
#include "lib/device/rbd/rbd.h"
#include "tests/device/ceph.h"
#include "tests/tap.h"

#define SIZE   (UINT64_C(8) << 20)
#define EXCL   (STELE_DEVICE_WRITE | STELE_DEVICE_EXCL)
#define STATUS 5
#define LEFT   77 /* a thread was left behind the destructors */
#define PRINTED "not flushed by hand"

/* ---- what the children do --------------------------------------------------- */

static struct stele_device *left; /* open at exit */
static int threads_wanted; /* those of before: a sanitizer has its own */

static int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count - 2;
}

/* Its last threads may have yet to leave the list. */
static void look_for_threads(void)
{
	const struct timespec wait = {.tv_nsec = 10000000};
	static char block[4096] __attribute__((aligned(4096)));

	for (int i = 0; i < 20 && count_threads() > threads_wanted; i++)
		nanosleep(&wait, NULL);
	if (count_threads() > threads_wanted)
		_exit(LEFT);
	if (left && stele_device_read(left, block, 0, sizeof(block)) != -ECANCELED)
		_exit(LEFT + 1);
	if (left)
		stele_device_close(left);
}

static ssize_t run_for(struct stele_rbd_call *call)
{
	const struct timespec time = {
		.tv_sec = (time_t)call->number[0],
		.tv_nsec = 500000000,
	};

	nanosleep(&time, NULL);
	return 0;
}

/* Gives up a call that takes so many seconds and a half. */
static void give_up(struct stele_device *dev, uint64_t seconds, unsigned int flags)
{
	struct stele_rbd_call call = {.number = {seconds}};

	if (stele_rbd_image((struct stele_rbd *)dev, &call.image) ||
	    stele_rbd_do(run_for, flags, &call) != -ETIMEDOUT)
		_exit(80);
}

static void *read_on(void *arg)
{
	static char block[4096] __attribute__((aligned(4096)));
	const struct timespec wait = {.tv_nsec = 1000000};

	for (;;)
		if (stele_device_read(arg, block, 0, sizeof(block)) == -ECANCELED)
			nanosleep(&wait, NULL);
	return NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

static int child_main(const char *path, const char *what)
{
	const bool writes = !strncmp(what, "writer", 6);
	struct stele_device *dev;
	rbd_image_t image;
	pthread_t thread;

	printf(PRINTED);
	/* A sanitizer's own thread comes with the first one. */
	if (!pthread_create(&thread, NULL, nothing, NULL))
		pthread_join(thread, NULL);
	threads_wanted = count_threads();
	atexit(look_for_threads);
	if (stele_device_open(path, NULL, writes ? EXCL : 0, NULL, NULL, &dev))
		return 81;
	left = strstr(what, "closes") ? NULL : dev;
	if (strstr(what, "doubts") &&
	    !stele_rbd_image((struct stele_rbd *)dev, &image))
		stele_rbd_doubt(image);
	if (strstr(what, "hangs for a while"))
		give_up(dev, 3, 0);
	if (strstr(what, "hangs for ever"))
		give_up(dev, 600, 0);
	if (strstr(what, "reads on")) {
		threads_wanted++;
		left = NULL;
		pthread_create(&thread, NULL, read_on, dev);
		usleep(100000);
	}
	if (strstr(what, "closes"))
		stele_device_close(dev);
	return STATUS;
}

/* ---- what comes of it ------------------------------------------------------- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A program of its own: librados must not have run before a fork. */
static void check(const char *path, const char *what, double seconds_max)
{
	char target[1024], text[64] = "";
	const double begin = now();
	int out[2], status = 0;
	pid_t pid;

	snprintf(target, sizeof(target), "%s&timeout=1", path);
	if (pipe2(out, O_CLOEXEC) || (pid = fork()) < 0)
		sysbail("no child");
	if (!pid) {
		dup2(out[1], 1);
		execl("/proc/self/exe", "child", target, what, NULL);
		_exit(98);
	}
	close(out[1]);
	waitpid(pid, &status, 0);
	is_int(STATUS, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
	       "%s: its exit status", what);
	if (read(out[0], text, sizeof(text) - 1) < 0)
		sysbail("read");
	close(out[0]);
	is_string(PRINTED, text, "... what it printed");
	ok(now() - begin < seconds_max, "... in time") ||
		(diag("%.1f s", now() - begin), 0);
}

int main(int argc, char **argv)
{
	const char *path;

	if (argc == 3)
		return child_main(argv[1], argv[2]);
	plan_lazy();
	requires_ceph();
	path = rbd_new(SIZE);
	check(path, "reader closes", 10);
	check(path, "reader", 10);
	check(path, "reader reads on", 10);
	check(path, "writer", 10);
	check(path, "writer doubts and closes", 15);
	check(path, "writer doubts", 10);
	check(path, "reader hangs for a while", 15);
	check(path, "reader hangs for a while and closes", 15);
	check(path, "reader hangs for ever", 20);
	check(path, "reader hangs for ever and closes", 20);
	return done();
}
