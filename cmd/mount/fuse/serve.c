/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - the process behind a mount, from its start to umount
 *
 * It is forked before anything is opened, as neither librbd nor a reader survives a fork, and
 * who started it waits until the mount is there. Its end is the kernel's word that nobody has
 * the mount any more; a signal unmounts it, and waits for that word, too, a second one does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"
#include "mount/fuse/files.h"
#include "mount/fuse/log.h"
#include "mount/mount.h"
#include "tool.h"

#define THREADS 16u /* requests at a time */
#define DEVICE	"/dev/fuse"
#define PATIENCE_S 1 /* from a signal until it is said why it does not end */

struct server {
	const struct mounting *mounting;
	struct files files;
	struct fuse_session *session;
	sigset_t signals;
	bool done;
};

/* ---- before it is mounted ------------------------------------------------------------------ */

static char fuse_line[MOUNT_WHY_SIZE]; /* the last that libfuse said */

static void keep_line(enum fuse_log_level level, const char *format, va_list args)
{
	(void)level;
	vsnprintf(fuse_line, sizeof(fuse_line), format, args);
	fuse_line[strcspn(fuse_line, "\n")] = '\0';
}

/* False: FUSE cannot be used here (said). */
static bool check_fuse(const struct mounting *mounting)
{
	char *words[] = {"fusermount3", "-V", NULL};
	char output[TOOL_OUTPUT_SIZE];
	const int error = access(DEVICE, R_OK | W_OK) ? -errno : 0;

	if (error) {
		cmd_error(error, "cannot mount '%s': cannot open '" DEVICE "'",
			  mounting->target);
		cmd_hint(error == -ENOENT ?
			 "run 'modprobe fuse' as root; a container must be given the device" :
			 "get permission to use the device, or run it as root");
		return false;
	}
	if (geteuid() != 0 && tool_run(words, output) == -ENOENT) {
		cmd_message("cannot mount '%s': 'fusermount3' is not installed",
			    mounting->target);
		cmd_hint("install the package fuse3, or run it as root");
		return false;
	}
	if (fuse_api_load())
		return true;
	cmd_hint("install the package fuse3");
	return false;
}

/*
 * What is named keeps its commas. Once it is mounted nobody answers for it yet, so libfuse,
 * too, must not look up a path that leads through it: it gets the resolved one. Return: 0; -1:
 * the reason is in fuse_line.
 */
static int start_session(struct server *server)
{
	const struct mounting *mounting = server->mounting;
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	char *name = NULL, *escaped = NULL, *options = NULL;
	const bool others = mounting->allow_other || !geteuid();

	if (asprintf(&name, "fsname=%s", mounting->target) >= 0 &&
	    !fuse.fuse_opt_add_opt_escaped(&escaped, name) &&
	    asprintf(&options, "ro,nosuid,nodev,subtype=stele,%s%s", escaped,
		     others ? ",allow_other" : "") >= 0 &&
	    !fuse.fuse_opt_add_arg(&args, "stele") && !fuse.fuse_opt_add_arg(&args, "-o") &&
	    !fuse.fuse_opt_add_arg(&args, options))
		server->session = fuse.fuse_session_new(&args, &files_ops, sizeof(files_ops),
							&server->files);
	fuse.fuse_opt_free_args(&args);
	free(options);
	free(escaped);
	free(name);
	return server->session ? fuse.fuse_session_mount(server->session, mounting->path) : -1;
}

/* Return: enum cmd_status (said). */
static int begin(struct server *server)
{
	const struct mounting *mounting = server->mounting;
	int error = volumes_open(&server->files.volumes, mounting->target,
				 mounting->snapshot);

	if (!error)
		error = nodes_init(&server->files.nodes,
				   mounting->snapshot ? 0 : NODE_VOLUME_ALL);
	if (error) {
		cmd_log_error(error, mounting->target);
		return cmd_status_of(error);
	}
	fuse.fuse_set_log_func(keep_line);
	if (start_session(server) == 0)
		return CMD_OK;
	cmd_message("cannot mount '%s' on '%s'%s%s", mounting->target, mounting->dir,
		    fuse_line[0] ? ": " : "", fuse_line);
	if (mounting->allow_other && geteuid())
		cmd_hint("--allow-other takes 'user_allow_other' in /etc/fuse.conf");
	else if (access(mounting->path, W_OK)) /* which fusermount3 insists on */
		cmd_hint(MOUNT_OWN_DIR);
	return CMD_FAILED;
}

/* ---- while it is mounted ------------------------------------------------ */

static void *answer(void *user)
{
	struct server *server = user;
	struct fuse_buf buffer = {.mem = NULL};

	while (!fuse.fuse_session_exited(server->session)) {
		int got = fuse.fuse_session_receive_buf(server->session, &buffer);

		if (got == -EINTR)
			continue;
		if (got <= 0)
			break; /* unmounted */
		fuse.fuse_session_process_buf(server->session, &buffer);
	}
	free(buffer.mem);
	return NULL;
}

static bool is_done(const struct server *server)
{
	return __atomic_load_n(&server->done, __ATOMIC_RELAXED);
}

/*
 * Whoever still has a file or directory of it goes on and is answered, so not by libfuse, which
 * closes the device. What others have put on top of it is not ours to unmount.
 */
static void unmount(const struct server *server)
{
	const char *path = server->mounting->path;
	char type[32];
	int error = mount_type_of(path, type);

	if (!error && !strcmp(type, MOUNT_FUSE_TYPE))
		error = mount_leave(path, type, true);
	if (error)
		cmd_error(error, "cannot unmount '%s'", server->mounting->dir);
}

/* Until the end, which comes as a signal, too. Another one does not wait for who still reads. */
static void *await_signals(void *user)
{
	const struct timespec patience = {.tv_sec = PATIENCE_S};
	struct server *server = user;
	int number;

	if (sigwait(&server->signals, &number) || is_done(server))
		return NULL;
	unmount(server);
	do
		number = sigtimedwait(&server->signals, NULL, &patience);
	while (number < 0 && errno == EINTR);
	if (number < 0 && errno == EAGAIN) {
		cmd_message("'%s' is unmounted, but in use: another signal ends it at once",
			    server->mounting->dir);
		if (sigwait(&server->signals, &number))
			return NULL;
	}
	if (number > 0 && !is_done(server)) {
		signal(number, SIG_DFL);
		pthread_sigmask(SIG_UNBLOCK, &server->signals, NULL);
		raise(number);
	}
	return NULL;
}

static void serve(struct server *server)
{
	pthread_t threads[THREADS], waiter;
	unsigned int count = 0;
	bool waits;

	waits = !pthread_create(&waiter, NULL, await_signals, server);
	while (count < THREADS && !pthread_create(&threads[count], NULL, answer, server))
		count++;
	if (!count)
		answer(server);
	while (count)
		pthread_join(threads[--count], NULL);
	__atomic_store_n(&server->done, true, __ATOMIC_RELAXED);
	if (waits) {
		pthread_kill(waiter, SIGTERM);
		pthread_join(waiter, NULL);
	}
}

/* Nothing of who started it is kept: its terminal, directory, descriptors. */
static void detach(int ready)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	log_to_system();
	if (chdir("/"))
		log_error("cannot change to '/': %s", strerror(errno));
	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	if (write(ready, "", 1) != 1)
		log_error("who started it is gone");
	close(ready);
}

/* `ready`: told once it is mounted; -1: in the foreground. Return: enum cmd_status (said). */
static int run(const struct mounting *mounting, const char *said, int ready)
{
	struct server server = {.mounting = mounting};
	int status;

	sigemptyset(&server.signals);
	sigaddset(&server.signals, SIGINT);
	sigaddset(&server.signals, SIGTERM);
	sigaddset(&server.signals, SIGHUP);
	status = begin(&server);
	if (status == CMD_OK) {
		pthread_sigmask(SIG_BLOCK, &server.signals, NULL);
		if (said)
			cmd_message("'%s' is mounted %s", mounting->dir, said);
		if (ready >= 0)
			detach(ready);
		serve(&server);
	}
	if (server.session) {
		if (status == CMD_OK)
			fuse.fuse_session_unmount(server.session);
		fuse.fuse_session_destroy(server.session);
	}
	volumes_close(&server.files.volumes);
	nodes_release(&server.files.nodes);
	return status;
}

/* Return: what the child ended with, or CMD_OK once it is ready. */
static int await(pid_t child, int ready)
{
	int status;
	char byte;

	if (read(ready, &byte, 1) == 1)
		return CMD_OK;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return CMD_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : CMD_FAILED;
}

int mount_fuse(const struct mounting *mounting, const char *said)
{
	int fds[2], status;
	pid_t child;

	if (!check_fuse(mounting))
		return cmd_finish(CMD_FAILED);
	if (mounting->foreground)
		return cmd_finish(run(mounting, said, -1));
	if (pipe2(fds, O_CLOEXEC)) {
		cmd_error(-errno, "cannot make a pipe");
		return cmd_finish(CMD_FAILED);
	}
	child = fork();
	if (!child) {
		close(fds[0]);
		setsid();
		_exit(run(mounting, said, fds[1]));
	}
	close(fds[1]);
	if (child < 0)
		cmd_error(-errno, "cannot start a process");
	status = child < 0 ? CMD_FAILED : await(child, fds[0]);
	close(fds[0]);
	return cmd_finish(status);
}
