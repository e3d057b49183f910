/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack.c - see stack.h
 *
 * The kernel gives each block device /sys/dev/block/MAJOR:MINOR, a link into
 * /sys/devices: a partition's directory lies within its disk's, and holds a
 * file `partition`.
 */
#include "lib/device/stack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PATH_SIZE 320 /* "/sys/dev/block/M:m/", a name of a directory entry */

static void node_path(dev_t number, const char *rest, char *path)
{
	snprintf(path, PATH_SIZE, "/sys/dev/block/%u:%u%s", major(number),
		 minor(number), rest);
}

/* First line of a small file, without its newline. */
static int read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	int err = 0;

	if (!file)
		return -errno;
	if (!fgets(line, (int)size, file))
		err = ferror(file) ? -EIO : -ENODATA;
	else
		line[strcspn(line, "\n")] = '\0';
	fclose(file);
	return err;
}

static int add_node(struct stele_stack *stack, const char *dev_path,
		    const char *name, bool whole)
{
	struct stele_stack_node *node = &stack->nodes[stack->count];
	unsigned int high, low;
	char line[32];
	int err = read_line(dev_path, line, sizeof(line));

	if (err)
		return err;
	if (sscanf(line, "%u:%u", &high, &low) != 2)
		return -EIO;
	if (stack->count == STELE_STACK_NODES_MAX)
		return -E2BIG;
	node->number = makedev(high, low);
	node->whole = whole;
	snprintf(node->name, sizeof(node->name), "%.*s",
		 STELE_STACK_NAME_SIZE - 1, name);
	stack->count++;
	return 0;
}

static int add_partitions(struct stele_stack *stack)
{
	char path[PATH_SIZE];
	struct dirent *entry;
	DIR *dir;
	int err = 0;

	node_path(stack->target.st_rdev, "", path);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir))) {
		char rest[PATH_SIZE - 32];

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(rest, sizeof(rest), "/%.200s/partition",
			 entry->d_name);
		node_path(stack->target.st_rdev, rest, path);
		if (access(path, F_OK))
			continue;
		snprintf(rest, sizeof(rest), "/%.200s/dev", entry->d_name);
		node_path(stack->target.st_rdev, rest, path);
		err = add_node(stack, path, entry->d_name, false);
	}
	closedir(dir);
	return err;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int stele_stack_place(dev_t number, char place[PATH_MAX])
{
	char path[PATH_SIZE];

	node_path(number, "", path);
	return realpath(path, place) ? 0 : -errno;
}

int stele_stack_load(const struct stat *target, struct stele_stack *out)
{
	char path[PATH_SIZE], place[PATH_MAX], *slash;
	int err;

	memset(out, 0, sizeof(*out));
	out->target = *target;
	if (!S_ISBLK(target->st_mode))
		return 0;
	err = stele_stack_place(target->st_rdev, place);
	if (err)
		return err;
	node_path(target->st_rdev, "/dev", path);
	err = add_node(out, path, last_part(place), false);
	if (err)
		return err;
	node_path(target->st_rdev, "/partition", path);
	if (access(path, F_OK))
		return add_partitions(out);
	slash = strrchr(place, '/');
	if (slash)
		*slash = '\0';
	node_path(target->st_rdev, "/../dev", path);
	return add_node(out, path, last_part(place), true);
}

const struct stele_stack_node *stele_stack_find(const struct stele_stack *stack,
					      dev_t number)
{
	for (size_t i = 0; i < stack->count; i++)
		if (stack->nodes[i].number == number)
			return &stack->nodes[i];
	return NULL;
}

bool stele_stack_is(const struct stele_stack *stack, const struct stat *st,
		   const struct stele_stack_node **node)
{
	*node = NULL;
	if (S_ISBLK(st->st_mode)) {
		*node = stele_stack_find(stack, st->st_rdev);
		return *node;
	}
	return S_ISREG(st->st_mode) && S_ISREG(stack->target.st_mode) &&
	       st->st_dev == stack->target.st_dev &&
	       st->st_ino == stack->target.st_ino;
}

int stele_stack_holder(const struct stele_stack_node *node, char *name)
{
	char path[PATH_SIZE];
	struct dirent *entry;
	int found = 0;
	DIR *dir;

	node_path(node->number, "/holders", path);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!found && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, STELE_STACK_NAME_SIZE, "%.*s",
			 STELE_STACK_NAME_SIZE - 1, entry->d_name);
		found = 1;
	}
	closedir(dir);
	return found;
}

/*
 * What lies under a loop device, as stat would tell. The kernel is asked
 * first: a path may be of another mount namespace, or of a newer file.
 */
static bool loop_backing(const char *name, struct stat *st)
{
	char path[PATH_SIZE], backing[4096];
	struct loop_info64 info;
	int fd, err;

	snprintf(path, sizeof(path), "/dev/%.32s", name);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		err = ioctl(fd, LOOP_GET_STATUS64, &info);
		close(fd);
		memset(st, 0, sizeof(*st));
		st->st_mode = info.lo_rdevice ? S_IFBLK : S_IFREG;
		st->st_rdev = info.lo_rdevice;
		st->st_dev = info.lo_device;
		st->st_ino = info.lo_inode;
		return !err;
	}
	snprintf(path, sizeof(path), "/sys/block/%.32s/loop/backing_file",
		 name);
	return !read_line(path, backing, sizeof(backing)) &&
	       !stat(backing, st);
}

bool stele_stack_backing(dev_t number, struct stat *st)
{
	char path[PATH_SIZE], place[PATH_MAX];

	node_path(number, "/loop", path);
	return !access(path, F_OK) && !stele_stack_place(number, place) &&
	       loop_backing(last_part(place), st);
}

int stele_stack_each_loop(int (*fn)(const char *name, const struct stat *under, void *user),
			  void *user)
{
	DIR *dir = opendir("/sys/block");
	char path[PATH_SIZE];
	struct dirent *entry;
	struct stat under;
	int ret = 0;

	while (!ret && dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "loop", strlen("loop")) != 0)
			continue;
		snprintf(path, sizeof(path), "/sys/block/%.32s/loop", entry->d_name);
		if (!access(path, F_OK) && loop_backing(entry->d_name, &under))
			ret = fn(entry->d_name, &under, user);
	}
	if (dir)
		closedir(dir);
	return ret;
}

bool stele_stack_same(const struct stat *a, const struct stat *b)
{
	if (S_ISBLK(a->st_mode) || S_ISBLK(b->st_mode))
		return S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode) && a->st_rdev == b->st_rdev;
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int stele_stack_text(dev_t number, const char *attribute, char *text,
		     size_t size)
{
	char path[PATH_SIZE], rest[96];

	snprintf(rest, sizeof(rest), "/%s", attribute);
	node_path(number, rest, path);
	return read_line(path, text, size);
}

int stele_stack_attribute(dev_t number, const char *attribute, uint64_t *value)
{
	char line[32], *end;
	int err = stele_stack_text(number, attribute, line, sizeof(line));

	if (err)
		return err;
	errno = 0;
	*value = strtoull(line, &end, 10);
	return errno || end == line || *end ? -EIO : 0;
}

bool stele_stack_disk_text(dev_t number, const char *attribute, char *text,
			   size_t size)
{
	char above[64];

	if (!stele_stack_text(number, attribute, text, size))
		return true;
	snprintf(above, sizeof(above), "../%s", attribute);
	return !stele_stack_text(number, "partition", text, size) &&
	       !stele_stack_text(number, above, text, size);
}
