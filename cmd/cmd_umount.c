/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_umount.c - stele umount: end what mount began, however it was mounted
 */
#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "cmd.h"
#include "mount/mount.h"
#include "tool.h"

/*
 * Its path as the kernel has it. The last component is not looked at: where a daemon has
 * died, nobody answers for it.
 */
static char *resolve(const char *dir)
{
	char *parent = strdup(dir), *known = NULL, *whole = NULL, *name;
	size_t size = strlen(dir);

	while (parent && size > 1 && parent[size - 1] == '/')
		parent[--size] = '\0';
	name = parent ? strrchr(parent, '/') : NULL;
	if (!parent || !strcmp(parent, "/") || !strcmp(name ? name + 1 : parent, ".") ||
	    !strcmp(name ? name + 1 : parent, "..")) {
		whole = realpath(dir, NULL);
	} else {
		if (name)
			*name++ = '\0';
		known = realpath(!name ? "." : *parent ? parent : "/", NULL);
		if (known && asprintf(&whole, "%s/%s", strcmp(known, "/") ? known : "",
				      name ? name : parent) < 0)
			whole = NULL;
	}
	free(known);
	free(parent);
	return whole;
}

/* The last line of a directory is what is on top. */
void mount_type_of(const char *dir, char type[32])
{
	char *path = resolve(dir), strings[8192];
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent entry;

	type[0] = '\0';
	while (path && mounts && getmntent_r(mounts, &entry, strings, sizeof(strings)))
		if (!strcmp(entry.mnt_dir, path))
			snprintf(type, 32, "%s", entry.mnt_type);
	if (mounts)
		endmntent(mounts);
	free(path);
}

/* By who mounted it, without being root. Return: 0; negative errno. */
static int run_fusermount(const char *dir)
{
	char *words[] = {"fusermount3", "-u", "--", (char *)dir, NULL};
	char output[TOOL_OUTPUT_SIZE];
	int status = tool_run(words, output);

	if (status <= 0)
		return status;
	return strstr(output, "busy") ? -EBUSY : -EPERM;
}

static int leave(const char *dir, const char *type)
{
	int error = umount2(dir, UMOUNT_NOFOLLOW) ? -errno : 0;

	return error == -EPERM && !strcmp(type, MOUNT_FUSE_TYPE) ? run_fusermount(dir) : error;
}

int cmd_umount(const struct cmd *cmd, int argc, char **argv)
{
	char type[32];
	const char *dir;
	int error;

	cmd_getopt(cmd, argc, argv, NULL);
	if (argc - optind != 1)
		return cmd_misuse(cmd, "umount needs a DIR");
	dir = argv[optind];
	mount_type_of(dir, type);
	if (!type[0] || (strcmp(type, "erofs") && strcmp(type, MOUNT_FUSE_TYPE))) {
		cmd_message(type[0] ? "cannot unmount '%s': it is of type %s" :
				      "cannot unmount '%s': nothing is mounted there",
			    dir, type);
		cmd_hint(type[0] ? "use umount(8)" :
				   "'findmnt -t erofs," MOUNT_FUSE_TYPE "' lists what is mounted");
		return cmd_finish(CMD_FAILED);
	}
	error = leave(dir, type);
	if (error)
		cmd_error(error, "cannot unmount '%s'", dir);
	if (error == -EBUSY)
		cmd_hint("'fuser -vm %s' shows who uses it", dir);
	else if (error == -EPERM)
		cmd_hint("run it as root, or as the user who mounted it");
	return cmd_finish(error ? CMD_FAILED : CMD_OK);
}
