/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_umount.c - stele umount: end what mount began, however it was mounted
 */
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "cmd.h"
#include "mount/mount.h"
#include "remedy.h"
#include "tool.h"

#define LINKS_MAX 40u /* as the kernel */
#define MOUNTS	  "/proc/self/mounts"

/* ---- the name of a directory ---- */

static void drop_last(char path[PATH_MAX])
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

/* Return: the length of `link`, if that is what `name` in `path` is, else 0; negative errno. */
static int step(char path[PATH_MAX], const char *name, size_t size, char link[PATH_MAX])
{
	const size_t parent = strlen(path);
	ssize_t length;

	if (size == 1 && name[0] == '.')
		return 0;
	if (size == 2 && !memcmp(name, "..", 2)) {
		drop_last(path);
		return 0;
	}
	if (parent + 1 + size >= PATH_MAX)
		return -ENAMETOOLONG;
	path[parent] = '/';
	memcpy(path + parent + 1, name, size);
	path[parent + 1 + size] = '\0';
	length = readlink(path, link, PATH_MAX - 1);
	if (length < 0)
		return errno == EINVAL ? 0 : -errno;
	link[length] = '\0';
	path[link[0] == '/' ? 0 : parent] = '\0';
	return (int)length;
}

int mount_resolve(const char *dir, char path[PATH_MAX])
{
	char rest[PATH_MAX], link[PATH_MAX], *at = rest;
	unsigned int links = 0;

	if (strlen(dir) >= PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(rest, dir);
	if (dir[0] != '/' && !getcwd(path, PATH_MAX))
		return -errno;
	if (dir[0] == '/' || !strcmp(path, "/"))
		path[0] = '\0';
	while (*(at += strspn(at, "/"))) {
		const size_t size = strcspn(at, "/");
		const int length = step(path, at, size, link);

		if (length < 0)
			return length;
		at += size;
		if (!length)
			continue;
		if (++links > LINKS_MAX)
			return -ELOOP;
		if ((size_t)length + strlen(at) >= PATH_MAX)
			return -ENAMETOOLONG;
		strcpy(link + length, at);
		strcpy(rest, link);
		at = rest;
	}
	if (!path[0])
		strcpy(path, "/");
	return dir[0] ? 0 : -ENOENT;
}

/* The last line of a directory is what is on top. */
int mount_type_of(const char *path, char type[32])
{
	char strings[8192];
	FILE *mounts = setmntent(MOUNTS, "re");
	struct mntent entry;

	type[0] = '\0';
	if (!mounts)
		return -errno;
	while (getmntent_r(mounts, &entry, strings, sizeof(strings)))
		if (!strcmp(entry.mnt_dir, path))
			snprintf(type, 32, "%s", entry.mnt_type);
	endmntent(mounts);
	return 0;
}

/* ---- the end of a mount ---- */

/* By who mounted it, without being root. Return: 0; negative errno. */
static int run_fusermount(const char *path, bool lazily)
{
	char *words[] = {"fusermount3", lazily ? "-uz" : "-u", "--", (char *)path, NULL};
	char output[TOOL_OUTPUT_SIZE];
	int status = tool_run(words, output);

	if (status <= 0)
		return status;
	return strstr(output, "busy") ? -EBUSY : -EPERM;
}

int mount_leave(const char *path, const char *type, bool lazily)
{
	const int flags = UMOUNT_NOFOLLOW | (lazily ? MNT_DETACH : 0);
	int error = umount2(path, flags) ? -errno : 0;

	return error == -EPERM && !strcmp(type, MOUNT_FUSE_TYPE) ? run_fusermount(path, lazily) :
								    error;
}

/* Is it one that 'stele mount' made? If not, that is said. */
static bool check_type(const char *dir, char path[PATH_MAX], char type[32])
{
	int error = 0;

	type[0] = '\0';
	if (!mount_resolve(dir, path))
		error = mount_type_of(path, type);
	if (!strcmp(type, "erofs") || !strcmp(type, MOUNT_FUSE_TYPE))
		return true;
	if (error) {
		cmd_message("cannot unmount '%s': what is mounted there cannot be told "
			    "without '%s'", dir, MOUNTS);
		if (error == -ENOENT)
			cmd_hint(MOUNT_PROC);
	} else if (type[0]) {
		cmd_message("cannot unmount '%s': it is of type %s", dir, type);
		cmd_hint("use umount(8)");
	} else {
		cmd_message("cannot unmount '%s': nothing is mounted there", dir);
		cmd_hint("'findmnt -t erofs," MOUNT_FUSE_TYPE "' lists what is mounted");
	}
	return false;
}

int cmd_umount(const struct cmd *cmd, int argc, char **argv)
{
	char path[PATH_MAX], type[32];
	const char *dir;
	int error;

	cmd_getopt(cmd, argc, argv, NULL);
	if (argc - optind != 1)
		return cmd_misuse(cmd, "umount needs one DIR");
	dir = argv[optind];
	if (!check_type(dir, path, type))
		return cmd_finish(CMD_FAILED);
	error = mount_leave(path, type, false);
	if (error)
		cmd_error(error, "cannot unmount '%s'", dir);
	if (error == -EBUSY)
		cmd_hint("'fuser -vm %s' shows who uses it", dir);
	else if (error == -EPERM)
		cmd_hint("run it as root, or as the user who mounted it");
	return cmd_finish(error ? CMD_FAILED : CMD_OK);
}
