/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krbd.c - see krbd.h
 */
#include "krbd.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 32
#define OUTPUT_SIZE   4096

extern char **environ;

struct run {
	char *argv[ARGUMENTS_MAX]; /* each malloc'ed; the last one is NULL */
	size_t count;
	char output[OUTPUT_SIZE]; /* of standard error, cut */
};

/* NULL: left out. In one word with its option, as names may begin with '-'. */
static void add(struct run *run, const char *option, const char *value)
{
	char **word = &run->argv[run->count];

	if (value && run->count < ARGUMENTS_MAX - 1 &&
	    asprintf(word, "%s%s", option, value) >= 0)
		run->count++;
	else
		*word = NULL;
}

/* Until the end: a tool that cannot write would fail. */
static void read_output(struct run *run, int fd)
{
	size_t used = 0;
	char rest[256];
	ssize_t got;

	do {
		bool full = used == OUTPUT_SIZE - 1;

		got = read(fd, full ? rest : run->output + used,
			   full ? sizeof(rest) : OUTPUT_SIZE - 1 - used);
		if (got > 0 && !full)
			used += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	run->output[used] = '\0';
}

/* Return: the exit status; -errno (it did not start, or was killed). */
static int spawn(struct run *run)
{
	posix_spawn_file_actions_t actions;
	int fds[2], error, status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
	error = posix_spawnp(&pid, run->argv[0], &actions, NULL,
			     run->argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (!error)
		read_output(run, fds[0]);
	close(fds[0]);
	if (error)
		return -error;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* rbd with the words of `run`, which go. Return: as spawn(). */
static int run_tool(struct run *run)
{
	int status = spawn(run);

	while (run->count)
		free(run->argv[--run->count]);
	return status;
}

/* The last line that the tool says by its name. */
static const char *last_words(char *output)
{
	const char *last = NULL;
	char *save, *line = strtok_r(output, "\n", &save);

	for (; line; line = strtok_r(NULL, "\n", &save))
		if (!strncmp(line, "rbd: ", 5))
			last = line;
	return last;
}

/* What rbd exits with is an errno, mostly. Return: 0; -errno, explained. */
static int explain(struct run *run, int status, char why[STELE_MAP_REASON_SIZE])
{
	const char *words = last_words(run->output), *hint = "";

	if (!status)
		return 0;
	if (status == -ENOENT) {
		snprintf(why, STELE_MAP_REASON_SIZE,
			 "'rbd' is not installed (it is part of ceph-common)");
		return -EOPNOTSUPP;
	}
	if (status < 0) {
		snprintf(why, STELE_MAP_REASON_SIZE, "cannot run 'rbd': %s",
			 strerror(-status));
		return status;
	}
	if (access("/sys/bus/rbd", F_OK)) {
		snprintf(why, STELE_MAP_REASON_SIZE,
			 "this kernel has no krbd ('modprobe rbd', as root, where it is a module)");
		return -EOPNOTSUPP;
	}
	if (geteuid() != 0)
		hint = " (it takes root)";
	else if (status == ENXIO)
		hint = " (the kernel lacks a feature of the image: 'dmesg' has more)";
	if (words)
		snprintf(why, STELE_MAP_REASON_SIZE, "%s%s", words, hint);
	else
		snprintf(why, STELE_MAP_REASON_SIZE, "'rbd' failed (%d)%s", status, hint);
	return -status;
}

/* Where no udev runs, as in containers, rbd would wait for it. */
static bool has_udev(void)
{
	return !access("/run/udev/control", F_OK);
}

static void begin(struct run *run, const char *verb)
{
	*run = (struct run){.count = 0};
	add(run, "rbd", "");
	add(run, "device", "");
	add(run, verb, "");
}

static int map(struct run *run, const struct stele_map_rbd *rbd,
	       const char *options)
{
	begin(run, "map");
	add(run, "--read-only", "");
	add(run, "--conf=", rbd->conf);
	add(run, "--id=", rbd->user);
	add(run, "--pool=", rbd->pool);
	add(run, "--namespace=", rbd->pool_namespace);
	add(run, "--image=", rbd->image);
	add(run, "--snap=", rbd->snapshot);
	add(run, "--options=", options);
	return run_tool(run);
}

int krbd_attach(void *user, const struct stele_map_rbd *rbd,
		char why[STELE_MAP_REASON_SIZE])
{
	const bool udev = has_udev();
	struct run run;
	int status = map(&run, rbd, udev ? NULL : "noudev");

	(void)user;
	/* Monitors that have only messenger v2, which rbd doesn't try by itself. */
	if (status > 0 && strstr(run.output, "ms_mode"))
		status = map(&run, rbd,
			     udev ? "ms_mode=prefer-crc" :
				    "noudev,ms_mode=prefer-crc");
	return explain(&run, status, why);
}

int krbd_detach(void *user, const char *device,
		char why[STELE_MAP_REASON_SIZE])
{
	struct run run;

	(void)user;
	begin(&run, "unmap");
	add(&run, "--options=", has_udev() ? NULL : "noudev");
	add(&run, device, "");
	return explain(&run, run_tool(&run), why);
}
