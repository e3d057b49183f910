/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krbd.c - see krbd.h
 */
#include "krbd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

#define ARGUMENTS_MAX 32

struct run {
	char *argv[ARGUMENTS_MAX]; /* each malloc'ed; the last one is NULL */
	size_t count;
	char output[TOOL_OUTPUT_SIZE];
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

/* rbd with the words of `run`, which go. Return: as tool_run(). */
static int run_tool(struct run *run)
{
	int status = tool_run(run->argv, run->output);

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
