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

#include "cmd.h"
#include "output.h"
#include "text.h"

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

void tree_tell_refused(uint64_t count, const char *hint)
{
	char text[TEXT_SIZE];

	if (!count)
		return;
	cmd_message("%s refused", text_counted(text, count, "key"));
	cmd_hint("%s", hint ? hint :
			      "'stele cat' reads them; 'stele build' takes other keys from a "
			      "table's column 'key', or from the one that --key names");
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

/* Each directory on the way, made if need be. `path` is cut meanwhile. */
static int make_directories(int root, char *path)
{
	int dir = open_beneath(root, ".", O_PATH | O_DIRECTORY, 0), next;

	for (char *name = path; dir >= 0 && *name; dir = next) {
		const size_t size = strcspn(name, "/");
		const bool last = !name[size];

		name[size] = '\0';
		next = open_directory(dir, name);
		close(dir);
		name += size;
		if (!last)
			*name++ = '/';
	}
	return dir;
}

void tree_init(struct tree *tree, int root)
{
	*tree = (struct tree){.root = root, .dir = -1};
}

void tree_release(struct tree *tree)
{
	if (tree->dir >= 0)
		close(tree->dir);
	free(tree->parent);
	tree_init(tree, tree->root);
}

/* Open the directory that `path` lies in, unless it is; *base: the last name. */
static int enter(struct tree *tree, const char *path, const char **base)
{
	const char *slash = strrchr(path, '/');
	const size_t size = slash ? (size_t)(slash - path) : 0;

	*base = slash ? slash + 1 : path;
	if (tree->dir >= 0 && strlen(tree->parent) == size &&
	    !memcmp(tree->parent, path, size))
		return 0;
	tree_release(tree);
	tree->parent = strndup(path, size);
	if (!tree->parent)
		return -ENOMEM;
	tree->dir = open_beneath(tree->root, size ? tree->parent : ".",
				 O_PATH | O_DIRECTORY, 0);
	if (tree->dir == -ENOENT)
		tree->dir = make_directories(tree->root, tree->parent);
	return tree->dir < 0 ? tree->dir : 0;
}

/* ---- files that get their name when they are whole ------------------------- */

#define NAME_TRIES 100 /* others may have such names, too */

static void next_name(struct tree_part *part)
{
	static unsigned int count;

	snprintf(part->name, sizeof(part->name), ".stele-%ld-%u.part", (long)getpid(),
		 __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
}

/*
 * Without a name at all, where a filesystem has that: who is killed leaves nothing. Else by
 * one that a sample may have: that one stays.
 */
static int create_nameless(struct tree_part *part)
{
	const int dir = part->tree->dir;
	int tries = NAME_TRIES;

	part->name[0] = '\0';
	part->fd = open_beneath(dir, ".", O_WRONLY | O_TMPFILE, 0666);
	if (part->fd != -EOPNOTSUPP && part->fd != -EISDIR && part->fd != -EINVAL)
		return part->fd < 0 ? part->fd : 0;
	do {
		next_name(part);
		part->fd = open_beneath(dir, part->name,
					O_WRONLY | O_CREAT | O_EXCL, 0666);
	} while (part->fd == -EEXIST && --tries);
	return part->fd < 0 ? part->fd : 0;
}

int tree_part_create(struct tree *tree, const char *path, unsigned int how,
		     struct tree_part *part)
{
	struct stat st;
	int error;

	*part = (struct tree_part){.tree = tree, .how = how};
	error = enter(tree, path, &part->base);
	if (!error && (how & TREE_LOOK) &&
	    fstatat(tree->dir, part->base, &st, AT_SYMLINK_NOFOLLOW) == 0)
		error = -EEXIST;
	if (!error && (how & TREE_SPARE) && output_spares(tree->dir, part->base))
		error = -ETXTBSY;
	return error ? error : create_nameless(part);
}

/* Before Linux 6.10, ENOENT: by its descriptor only CAP_DAC_READ_SEARCH may link a file. */
static int link_nameless(const struct tree_part *part, const char *name)
{
	const int dir = part->tree->dir;
	char path[32];

	if (linkat(part->fd, "", dir, name, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", part->fd);
	return linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0 ?
		       -errno : 0;
}

/* What is to be replaced is there: that takes a name, but only now. */
static int link_aside(struct tree_part *part)
{
	int tries = NAME_TRIES, error;

	do {
		next_name(part);
		error = link_nameless(part, part->name);
	} while (error == -EEXIST && --tries);
	if (error)
		part->name[0] = '\0'; /* somebody else's */
	return error;
}

/* Not every filesystem can rename only if nothing is there. */
static int give_name(struct tree_part *part)
{
	const bool replace = part->how & TREE_REPLACE;
	const int dir = part->tree->dir;
	int error;

	if (!part->name[0]) {
		error = link_nameless(part, part->base);
		if (error != -EEXIST || !replace)
			return error;
		error = link_aside(part);
		if (error)
			return error;
	}
	if (renameat2(dir, part->name, dir, part->base,
		      replace ? 0 : RENAME_NOREPLACE) == 0)
		return 0;
	if (replace || errno != EINVAL)
		return -errno;
	if (linkat(dir, part->name, dir, part->base, 0) < 0)
		return -errno;
	unlinkat(dir, part->name, 0);
	return 0;
}

int tree_part_keep(struct tree_part *part)
{
	int error = give_name(part);

	if (error) {
		tree_part_drop(part);
		if (error == -ENOENT) /* it was removed: the next file makes it again */
			tree_release(part->tree);
		return error;
	}
	if (close(part->fd) < 0) {
		error = -errno;
		unlinkat(part->tree->dir, part->base, 0);
	}
	return error;
}

void tree_part_drop(struct tree_part *part)
{
	close(part->fd);
	if (part->name[0])
		unlinkat(part->tree->dir, part->name, 0);
}
