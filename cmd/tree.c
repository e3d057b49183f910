/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c - files below a directory, named by keys that nobody vouches for
 */
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *component_refusal(const char *name, size_t size)
{
	if (size == 0)
		return "an empty name in its path";
	if (size == 1 && name[0] == '.')
		return "'.' in its path";
	if (size == 2 && name[0] == '.' && name[1] == '.')
		return "'..' in its path";
	return NULL;
}

const char *tree_refusal(const char *key, size_t size)
{
	const char *end = key + size, *slash, *reason = NULL;

	if (size == 0)
		return "an empty key";
	if (memchr(key, '\0', size))
		return "a NUL byte";
	if (key[0] == '/')
		return "an absolute path";
	if (end[-1] == '/')
		return "a slash at its end";
	for (; key <= end && !reason; key = slash + 1) {
		slash = memchr(key, '/', (size_t)(end - key));
		if (!slash)
			slash = end;
		reason = component_refusal(key, (size_t)(slash - key));
	}
	return reason;
}

/* openat2(2), which glibc does not wrap. Return: fd; negative errno. */
static int open_beneath(int dir, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do /* EAGAIN: a rename somewhere below raced with the lookup */
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

/* The directory `name` in `dir`, made if it is not there. */
static int open_directory(int dir, const char *name)
{
	int fd = open_beneath(dir, name, O_PATH | O_DIRECTORY, 0);

	if (fd != -ENOENT)
		return fd;
	if (mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
		return -errno;
	return open_beneath(dir, name, O_PATH | O_DIRECTORY, 0);
}

/* Each directory on the way, made if need be. `path` is cut. */
static int make_directories(int root, char *path)
{
	int dir = open_beneath(root, ".", O_PATH | O_DIRECTORY, 0), next;

	for (char *name = path; dir >= 0 && *name; dir = next) {
		const size_t size = strcspn(name, "/");
		const bool last = !name[size];

		name[size] = '\0';
		next = open_directory(dir, name);
		close(dir);
		name += size + !last;
	}
	return dir;
}

/* The directory that `path` lies in, made if need be; *base: its last name. */
static int open_parent(int root, const char *path, char **base)
{
	const char *slash = strrchr(path, '/');
	char *parent = slash ? strndup(path, (size_t)(slash - path)) : strdup("");
	int dir = -ENOMEM;

	*base = strdup(slash ? slash + 1 : path);
	if (parent && *base)
		dir = open_beneath(root, *parent ? parent : ".",
				   O_PATH | O_DIRECTORY, 0);
	if (dir == -ENOENT)
		dir = make_directories(root, parent);
	free(parent);
	if (dir < 0) {
		free(*base);
		*base = NULL;
	}
	return dir;
}

/* ---- files that get their name when they are whole ------------------------- */

/*
 * Without a name at all, where a filesystem has that and nothing is to be replaced at once;
 * else by one that a sample may have: that one stays.
 */
static int create_nameless(struct tree_part *part, bool replace)
{
	static unsigned int count;
	int tries = 100;

	part->name[0] = '\0';
	part->fd = replace ? -EOPNOTSUPP :
			     open_beneath(part->dir, ".", O_WRONLY | O_TMPFILE, 0666);
	if (part->fd != -EOPNOTSUPP && part->fd != -EISDIR && part->fd != -EINVAL)
		return part->fd < 0 ? part->fd : 0;
	do {
		snprintf(part->name, sizeof(part->name), ".stele-%ld-%u.part",
			 (long)getpid(), count++);
		part->fd = open_beneath(part->dir, part->name,
					O_WRONLY | O_CREAT | O_EXCL, 0666);
	} while (part->fd == -EEXIST && --tries);
	return part->fd < 0 ? part->fd : 0;
}

int tree_part_create(int root, const char *path, bool replace,
		     struct tree_part *part)
{
	struct stat st;
	int error = 0;

	part->dir = open_parent(root, path, &part->base);
	if (part->dir < 0)
		return part->dir;
	if (!replace && fstatat(part->dir, part->base, &st,
				AT_SYMLINK_NOFOLLOW) == 0)
		error = -EEXIST;
	if (!error)
		error = create_nameless(part, replace);
	if (error) {
		free(part->base);
		close(part->dir);
	}
	return error;
}

static int link_nameless(const struct tree_part *part)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", part->fd);
	return linkat(AT_FDCWD, path, part->dir, part->base, AT_SYMLINK_FOLLOW) < 0 ?
		       -errno : 0;
}

/* Not every filesystem can rename only if nothing is there. */
static int give_name(const struct tree_part *part, bool replace)
{
	const unsigned int flags = replace ? 0 : RENAME_NOREPLACE;

	if (!part->name[0])
		return link_nameless(part);
	if (renameat2(part->dir, part->name, part->dir, part->base, flags) == 0)
		return 0;
	if (replace || errno != EINVAL)
		return -errno;
	if (linkat(part->dir, part->name, part->dir, part->base, 0) < 0)
		return -errno;
	unlinkat(part->dir, part->name, 0);
	return 0;
}

int tree_part_keep(struct tree_part *part, bool replace)
{
	int error = give_name(part, replace);

	if (error) {
		tree_part_drop(part);
		return error;
	}
	if (close(part->fd) < 0) {
		error = -errno;
		unlinkat(part->dir, part->base, 0);
	}
	free(part->base);
	close(part->dir);
	return error;
}

void tree_part_drop(struct tree_part *part)
{
	close(part->fd);
	if (part->name[0])
		unlinkat(part->dir, part->name, 0);
	free(part->base);
	close(part->dir);
}
