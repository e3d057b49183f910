/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - mount an image as the EROFS that it is, too
 *
 * A device is mounted itself, and so is a file, since Linux 6.12; where the kernel or the
 * filesystem of the file cannot, by a read-only loop device that goes with the mount. A
 * snapshot alone is a bind mount of its directory, which takes the place of the whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mount/mount.h"
#include "stele.h"

#define LOOP_TRIES 16 /* somebody else may take the free one */

/* The last line that the filesystem left, "e erofs: ...", or else the reason of `error`. */
static int explain(int fs, int error, char *why)
{
	char line[MOUNT_WHY_SIZE];
	ssize_t size;

	snprintf(why, MOUNT_WHY_SIZE, "%s",
		 error == -ENODEV		? "this kernel has no EROFS" :
		 error == -EPERM && geteuid() ? "only root can mount via erofs" :
						  strerror(-error));
	while (fs >= 0 && (size = read(fs, line, sizeof(line) - 1)) > 0) {
		line[size] = '\0';
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == 'e' && size > 2)
			snprintf(why, MOUNT_WHY_SIZE, "%s", line + 2);
	}
	return error;
}

/* Return: a mount that is nowhere yet; negative errno, explained. */
static int create(const char *source, char *why)
{
	int fs = fsopen("erofs", FSOPEN_CLOEXEC), mount, error;

	if (fs < 0)
		return explain(-1, -errno, why);
	mount = -1;
	if (!fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) &&
	    !fsconfig(fs, FSCONFIG_SET_STRING, "source", source, 0) &&
	    !fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = fsmount(fs, FSMOUNT_CLOEXEC,
				MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	error = mount < 0 ? explain(fs, -errno, why) : mount;
	close(fs);
	return error;
}

/* Return: the open device, which is gone once nobody has it open or mounted; -errno. */
static int attach_loop(const char *path, char device[32])
{
	struct loop_config config = {
		.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR,
	};
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int file = open(path, O_RDONLY | O_CLOEXEC), loop = -1, error = EBUSY;

	if (control < 0 || file < 0)
		error = errno;
	config.fd = (uint32_t)file;
	/* For losetup(8) to show; it may be cut. */
	memcpy(config.info.lo_file_name, path, strnlen(path, LO_NAME_SIZE - 1));
	for (int i = 0; control >= 0 && file >= 0 && loop < 0 && i < LOOP_TRIES; i++) {
		int number = ioctl(control, LOOP_CTL_GET_FREE);

		snprintf(device, 32, "/dev/loop%d", number);
		loop = number < 0 ? -1 : open(device, O_RDONLY | O_CLOEXEC);
		if (loop >= 0 && !ioctl(loop, LOOP_CONFIGURE, &config))
			break;
		error = errno;
		if (loop >= 0)
			close(loop);
		loop = -1;
		if (error != EBUSY)
			break;
	}
	if (control >= 0)
		close(control);
	if (file >= 0)
		close(file);
	return loop < 0 ? -error : loop;
}

static int create_by_loop(const char *path, char *why)
{
	char device[32];
	int loop = attach_loop(path, device), mount;

	if (loop < 0) {
		snprintf(why, MOUNT_WHY_SIZE, "no loop device: %s", strerror(-loop));
		return loop;
	}
	mount = create(device, why);
	close(loop);
	return mount;
}

static int place(int mount, const char *path)
{
	return move_mount(mount, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) ? -errno : 0;
}

/* What is mounted on `dir` gives way to one directory of it. */
static int narrow(const struct mounting *mounting, char *why)
{
	int root = open(mounting->path, O_PATH | O_DIRECTORY | O_CLOEXEC), clone, error;

	clone = root < 0 ? -1 : open_tree(root, mounting->snapshot,
					  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	error = clone < 0 ? -errno : 0;
	if (root >= 0)
		close(root);
	umount2(mounting->path, MNT_DETACH | UMOUNT_NOFOLLOW);
	if (!error)
		error = place(clone, mounting->path);
	if (error == -ENOENT)
		snprintf(why, MOUNT_WHY_SIZE, "snapshot '%s' is not shown: a writer was "
			 "interrupted", mounting->snapshot);
	else if (error)
		snprintf(why, MOUNT_WHY_SIZE, "snapshot '%s' has no directory: %s",
			 mounting->snapshot, strerror(-error));
	if (clone >= 0)
		close(clone);
	return error;
}

int mount_kernel(const struct mounting *mounting, const char *path, char why[MOUNT_WHY_SIZE])
{
	char source[PATH_MAX]; /* which others can look up, too */
	struct stat st;
	int mount, error;

	if (!realpath(path, source) || stat(source, &st))
		return explain(-1, -errno, why);
	mount = create(source, why);
	if (S_ISREG(st.st_mode) && (mount == -ENOTBLK || mount == -EINVAL))
		mount = create_by_loop(source, why);
	if (mount < 0)
		return mount;
	error = place(mount, mounting->path);
	close(mount);
	if (error)
		return explain(-1, error, why);
	return mounting->snapshot ? narrow(mounting, why) : 0;
}
