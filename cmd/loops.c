/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.c - see loops.h
 *
 * A path may be of another mount namespace, or of a newer file: the device itself is asked
 * first, by who may open it.
 */
#include "loops.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NAME_SIZE 32

struct loop {
	char name[NAME_SIZE];
	dev_t device; /* of the file */
	ino_t inode;
};

static struct loop *loops;
static size_t loop_count;
static pthread_once_t loops_read = PTHREAD_ONCE_INIT;

static bool ask_device(struct loop *loop)
{
	struct loop_info64 info;
	char path[NAME_SIZE + 8];
	int fd, error;

	snprintf(path, sizeof(path), "/dev/%s", loop->name);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	error = ioctl(fd, LOOP_GET_STATUS64, &info);
	close(fd);
	if (error)
		return false;
	loop->device = info.lo_device;
	loop->inode = info.lo_inode;
	return true;
}

/* False: nothing is attached, or it cannot be told what. */
static bool ask_system(struct loop *loop)
{
	char path[NAME_SIZE + 32], backing[PATH_MAX];
	struct stat st;
	FILE *file;
	bool got;

	snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", loop->name);
	file = fopen(path, "re");
	if (!file)
		return false;
	got = fgets(backing, sizeof(backing), file);
	fclose(file);
	if (!got)
		return false;
	if (ask_device(loop))
		return true;
	backing[strcspn(backing, "\n")] = '\0';
	if (stat(backing, &st) < 0)
		return false;
	loop->device = st.st_dev;
	loop->inode = st.st_ino;
	return true;
}

static void read_loops(void)
{
	DIR *dir = opendir("/sys/block");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const size_t size = strlen(entry->d_name);
		struct loop loop = {0}, *more;

		if (strncmp(entry->d_name, "loop", 4) != 0 || size >= NAME_SIZE)
			continue;
		memcpy(loop.name, entry->d_name, size);
		more = ask_system(&loop) ? realloc(loops, (loop_count + 1) * sizeof(loop)) : NULL;
		if (!more)
			continue;
		loops = more;
		loops[loop_count++] = loop;
	}
	if (dir)
		closedir(dir);
}

const char *loops_over(const struct stat *st)
{
	pthread_once(&loops_read, read_loops);
	for (size_t i = 0; i < loop_count; i++)
		if (loops[i].device == st->st_dev && loops[i].inode == st->st_ino)
			return loops[i].name;
	return NULL;
}
