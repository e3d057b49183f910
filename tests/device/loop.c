/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - see loop.h
 */
#include "tests/device/loop.h"
#include "tests/tap.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOPS_MAX 32

static char attached[LOOPS_MAX][LOOP_NODE_SIZE];
static pid_t owner;

bool command(const char *format, ...)
{
	char line[4096] = "exec >/dev/null 2>&1 </dev/null; "
			  "PATH=$PATH:/usr/sbin:/sbin; ";
	size_t used = strlen(line);
	va_list args;

	va_start(args, format);
	vsnprintf(line + used, sizeof(line) - used, format, args);
	va_end(args);
	return system(line) == 0;
}

bool command_exists(const char *name)
{
	return command("command -v %s", name);
}

const char *file_new(const char *name, uint64_t size)
{
	static char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", test_tmpdir(), name);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		sysbail("cannot make '%s'", path);
	close(fd);
	return path;
}

bool loop_usable(void)
{
	return !geteuid() && !access("/dev/loop-control", R_OK | W_OK) &&
	       command_exists("losetup");
}

static void detach_all(void)
{
	if (owner != getpid())
		return;
	for (size_t i = 0; i < LOOPS_MAX; i++)
		if (attached[i][0])
			command("losetup -d %s", attached[i]);
}

bool loop_attach(const char *file, unsigned int logical_block,
		 char node[LOOP_NODE_SIZE])
{
	char line[PATH_MAX + 64];
	bool found;
	FILE *pipe;

	if (!owner) {
		test_tmpdir(); /* its own exit handler must run after ours */
		owner = getpid();
		atexit(detach_all);
	}
	snprintf(line, sizeof(line), "PATH=$PATH:/usr/sbin:/sbin "
		 "losetup -P -b %u -f --show '%s'", logical_block, file);
	pipe = popen(line, "re");
	found = pipe && fgets(node, LOOP_NODE_SIZE, pipe);
	if (pipe && pclose(pipe))
		found = false;
	if (!found)
		return false;
	node[strcspn(node, "\n")] = '\0';
	command("blockdev --setrw %s", node); /* of an earlier life */
	for (size_t i = 0; i < LOOPS_MAX; i++) {
		if (attached[i][0])
			continue;
		memcpy(attached[i], node, LOOP_NODE_SIZE);
		return true;
	}
	bail("more than %d loop devices", LOOPS_MAX);
}

void loop_detach(const char *node)
{
	for (size_t i = 0; i < LOOPS_MAX; i++) {
		if (strcmp(attached[i], node) || !node[0])
			continue;
		command("losetup -d %s", node);
		attached[i][0] = '\0';
	}
}
