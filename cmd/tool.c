/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.c - see tool.h
 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Until the end: a tool that cannot write would fail. */
static void read_output(char *output, int fd)
{
	size_t used = 0;
	char rest[256];
	ssize_t got;

	do {
		bool full = used == TOOL_OUTPUT_SIZE - 1;

		got = read(fd, full ? rest : output + used,
			   full ? sizeof(rest) : TOOL_OUTPUT_SIZE - 1 - used);
		if (got > 0 && !full)
			used += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	output[used] = '\0';
}

int tool_run(char *const argv[], char output[TOOL_OUTPUT_SIZE])
{
	posix_spawn_file_actions_t actions;
	int fds[2], error, status;
	pid_t pid;

	output[0] = '\0';
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
	error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	if (!error)
		read_output(output, fds[0]);
	close(fds[0]);
	if (error)
		return -error;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}
