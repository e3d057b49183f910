/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.c - see environment.h
 *
 * A lock file is cut to nothing rather than removed: who waits for it has it open, and would go
 * on with one that nobody else sees. LMDB refuses an empty one that it did not get alone, and
 * fills one that it did.
 */
#include "to/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA_NAME "data.mdb"
#define LOCK_NAME "lock.mdb"

/* *name: owned; NULL: it has none of that kind. Return: 0; -ENOMEM. */
static int name_lock(const char *data, unsigned int kind, char **name)
{
	const char *slash = strrchr(data, '/');
	const char *base = slash ? slash + 1 : data;
	int done = 0;

	*name = NULL;
	if (!kind)
		done = asprintf(name, "%s-lock", data);
	else if (!strcmp(base, DATA_NAME))
		done = asprintf(name, "%.*s" LOCK_NAME, (int)(base - data), data);
	return done < 0 ? -ENOMEM : 0;
}

/* By the open file: LMDB's own locks, which are a process's, count against it all the same. */
static int take(const char *name, int *fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	struct stat st;

	*fd = open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (*fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(*fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	if (fcntl(*fd, F_OFD_SETLK, &lock) < 0)
		return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
	return 0;
}

int environment_enter(struct environment *env, const char *data)
{
	int error = 0;
	char *name;

	for (unsigned int i = 0; i < ENVIRONMENT_LOCKS; i++)
		env->locks[i] = -1;
	for (unsigned int i = 0; i < ENVIRONMENT_LOCKS && !error; i++) {
		error = name_lock(data, i, &name);
		if (!error && name)
			error = take(name, &env->locks[i]);
		free(name);
	}
	if (error)
		environment_leave(env);
	return error;
}

int environment_renew(const struct environment *env)
{
	for (unsigned int i = 0; i < ENVIRONMENT_LOCKS; i++)
		if (env->locks[i] >= 0 && ftruncate(env->locks[i], 0) < 0)
			return -errno;
	return 0;
}

void environment_leave(struct environment *env)
{
	for (unsigned int i = 0; i < ENVIRONMENT_LOCKS; i++) {
		if (env->locks[i] >= 0)
			close(env->locks[i]);
		env->locks[i] = -1;
	}
}
