/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backing.c - stele_backing_open(), stele_backing_check()
 *
 * A loop device tells which file it is over. A mount has the path that was given to mount(2), in
 * its own mount namespace; it may be relative, or lead to another file by now, or nowhere. So the
 * file at the path counts only if its EROFS has the UUID that the kernel tells of the mount, or if
 * the kernel tells none. Otherwise the UUID of each file that is asked about is compared.
 */
#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/device/mounts.h"
#include "lib/device/stack.h"
#include "lib/node/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "format/superblock.h"

struct loop {
	char name[STELE_STACK_NAME_SIZE];
	struct stat file;
};

/* An EROFS that is mounted from a file. */
struct mounted {
	dev_t number;	  /* the filesystem's: of all its mounts */
	struct stat file; /* if it was found */
	bool found, has_uuid;
	uint8_t uuid[STELE_MOUNT_UUID_SIZE];
	uint64_t offset; /* where in the file it begins */
	char *where;	 /* "'/mnt', as process 4711 sees it" */
};

struct stele_backing {
	struct stele_log log;
	struct loop *loops;
	size_t loop_count;
	struct mounted *mounts;
	size_t mount_count;
	bool by_uuid; /* not every file was found */
};

/* ---- what there is --------------------------------------------------------------------- */

static int add_loop(const char *name, const struct stat *under, void *user)
{
	struct stele_backing *backing = user;
	struct loop *loops;

	if (!S_ISREG(under->st_mode))
		return 0;
	loops = reallocarray(backing->loops, backing->loop_count + 1, sizeof(*loops));
	if (!loops)
		return -ENOMEM;
	backing->loops = loops;
	loops += backing->loop_count++;
	snprintf(loops->name, sizeof(loops->name), "%.*s", STELE_STACK_NAME_SIZE - 1, name);
	loops->file = *under;
	return 0;
}

/* One that is all zeros is none. */
static bool find_uuid(const struct stele_mount *mount, uint8_t uuid[STELE_MOUNT_UUID_SIZE])
{
	static const uint8_t none[STELE_MOUNT_UUID_SIZE];

	return stele_mount_uuid(mount, uuid) && memcmp(uuid, none, sizeof(none)) != 0;
}

/* Is it this file that was mounted? One that is not to be read is taken for it. */
static bool is_source(const struct mounted *mounted, int source)
{
	uint8_t uuid[STELE_MOUNT_UUID_SIZE];
	char path[32];
	bool same;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", source);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return true;
	same = stele_mounts_file_uuid(fd, mounted->offset, uuid) &&
	       (!mounted->has_uuid || !memcmp(uuid, mounted->uuid, sizeof(uuid)));
	close(fd);
	return same;
}

static int describe(const struct stele_mount *mount, struct mounted *out)
{
	int fd, size;

	*out = (struct mounted){.number = mount->number, .offset = mount->offset};
	out->has_uuid = find_uuid(mount, out->uuid);
	fd = stele_mount_open_source(mount);
	if (fd >= 0) {
		out->found = !fstat(fd, &out->file) && S_ISREG(out->file.st_mode) &&
			     is_source(out, fd);
		close(fd);
	}
	size = mount->pid ? asprintf(&out->where, "'%s', as process %s sees it", mount->point,
				     mount->pid) :
			    asprintf(&out->where, "'%s'", mount->point);
	return size < 0 ? -ENOMEM : 0;
}

static struct mounted *find_mounted(const struct stele_backing *backing, dev_t number)
{
	for (size_t i = 0; i < backing->mount_count; i++)
		if (backing->mounts[i].number == number)
			return &backing->mounts[i];
	return NULL;
}

static int push_mounted(struct stele_backing *backing, const struct mounted *mounted)
{
	struct mounted *mounts = reallocarray(backing->mounts, backing->mount_count + 1,
					      sizeof(*mounts));

	if (!mounts)
		return -ENOMEM;
	mounts[backing->mount_count++] = *mounted;
	backing->mounts = mounts;
	return 0;
}

/* The path may lead to it in one mount namespace, and not in another. */
static int add_mount(const struct stele_mount *mount, void *user)
{
	struct stele_backing *backing = user;
	struct mounted *known, mounted;
	int err;

	if (strcmp(mount->type, "erofs") != 0 || major(mount->number))
		return 0;
	known = find_mounted(backing, mount->number);
	if (known && known->found)
		return 0;
	err = describe(mount, &mounted);
	if (err)
		return err;
	if (!known)
		err = push_mounted(backing, &mounted);
	if (err || (known && !mounted.found && (known->has_uuid || !mounted.has_uuid))) {
		free(mounted.where);
	} else if (known) {
		free(known->where);
		*known = mounted;
	}
	return err;
}

static int open_backing(const struct stele_backing_opts *opts, struct stele_backing **out)
{
	struct stele_backing *backing = calloc(1, sizeof(*backing));
	struct stele_backing_opts known;
	int err = backing ? 0 : -ENOMEM;

	if (!err)
		err = stele_options_get(opts, &known, sizeof(known), &backing->log);
	if (!err)
		err = stele_stack_each_loop(add_loop, backing);
	/* Without a /proc nobody can tell, and the caller can go on. */
	if (!err && stele_mounts_each(add_mount, backing) == -ENOMEM)
		err = -ENOMEM;
	if (err) {
		stele_backing_close(backing);
		return err;
	}
	for (size_t i = 0; i < backing->mount_count; i++)
		backing->by_uuid |= !backing->mounts[i].found;
	*out = backing;
	return 0;
}

int stele_backing_open(const struct stele_backing_opts *opts, struct stele_backing **out)
{
	return STELE_CALL(open_backing(opts, out), "cannot tell which files are in use");
}

void stele_backing_close(struct stele_backing *backing)
{
	if (!backing)
		return;
	for (size_t i = 0; i < backing->mount_count; i++)
		free(backing->mounts[i].where);
	free(backing->mounts);
	free(backing->loops);
	free(backing);
}

/* ---- one file -------------------------------------------------------------------------- */

/* By what stat tells of it. */
static int check_known(const struct stele_backing *backing, const struct stat *st)
{
	for (size_t i = 0; i < backing->loop_count; i++)
		if (stele_stack_same(&backing->loops[i].file, st)) {
			stele_log_error(&backing->log, "it is under loop device '%s'",
					backing->loops[i].name);
			return -ETXTBSY;
		}
	for (size_t i = 0; i < backing->mount_count; i++)
		if (backing->mounts[i].found && stele_stack_same(&backing->mounts[i].file, st)) {
			stele_log_error(&backing->log, "it is mounted on %s",
					backing->mounts[i].where);
			return -EBUSY;
		}
	return 0;
}

/* By the UUID of the EROFS that begins in it. */
static int check_uuid(const struct stele_backing *backing, int fd)
{
	uint8_t uuid[STELE_MOUNT_UUID_SIZE];

	for (size_t i = 0; i < backing->mount_count; i++) {
		const struct mounted *mounted = &backing->mounts[i];

		if (mounted->found || !stele_mounts_file_uuid(fd, mounted->offset, uuid))
			continue;
		if (mounted->has_uuid && memcmp(uuid, mounted->uuid, sizeof(uuid)) != 0)
			continue;
		stele_log_error(&backing->log, mounted->has_uuid ?
				"it has the UUID of the EROFS that is mounted on %s" :
				"it may be the EROFS that is mounted on %s", mounted->where);
		return -EBUSY;
	}
	return 0;
}

static int check_image(const struct stele_backing *backing, int fd)
{
	const int found = stele_image_detect_fd(fd);

	if (found <= 0)
		return found;
	stele_log_error(&backing->log, "it holds an image");
	return -EEXIST;
}

/* To be read. Return: a descriptor; -1: then nobody can tell. */
static int open_file(int dir, const char *path, int flags)
{
	const int how = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
	char own[32];

	if (*path)
		return openat(dir, path, how | (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
	snprintf(own, sizeof(own), "/proc/self/fd/%d", dir);
	return open(own, how);
}

static int check_file(const struct stele_backing *backing, int dir, const char *path, int flags)
{
	struct stat st;
	bool large;
	int fd, err;

	if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -EINVAL;
	if (fstatat(dir, path, &st, flags))
		return 0;
	if (S_ISBLK(st.st_mode)) {
		stele_log_error(&backing->log, "it is a block device");
		return -EPERM;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	err = check_known(backing, &st);
	large = st.st_size >= (off_t)STELE_DATA_OFFSET;
	if (err || (!large && !backing->by_uuid))
		return err;
	fd = open_file(dir, path, flags);
	if (fd < 0)
		return 0;
	err = check_uuid(backing, fd);
	if (!err && large)
		err = check_image(backing, fd);
	close(fd);
	return err;
}

int stele_backing_check(const struct stele_backing *backing, int dir, const char *path, int flags)
{
	if (!*path)
		return STELE_CALL(check_file(backing, dir, path, flags), "cannot replace the file");
	return STELE_CALL(check_file(backing, dir, path, flags), "cannot replace '%s'", path);
}
