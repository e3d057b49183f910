/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount.h - an image or a snapshot as a tree of files: by the kernel, or by a daemon of ours
 */
#ifndef STELE_CMD_MOUNT_H
#define STELE_CMD_MOUNT_H

#include <limits.h>
#include <stdbool.h>

#define MOUNT_FUSE_TYPE "fuse.stele" /* as /proc/mounts has it */
#define MOUNT_WHY_SIZE	256
#define MOUNT_OWN_DIR	"choose a directory of your own, or run it as root"

struct mounting {
	const char *target;   /* as the user names it */
	const char *snapshot; /* shown on `dir` itself; NULL: a directory for each */
	const char *dir;      /* as the user names it, for messages */
	const char *path;     /* the same, resolved: the name to use once it is mounted */
	bool foreground, allow_other;
};

/*
 * Have the kernel mount `path`, a device or a file that is an EROFS, too. Return: 0;
 * negative errno, explained, and nothing is mounted.
 */
int mount_kernel(const struct mounting *mounting, const char *path,
		 char why[MOUNT_WHY_SIZE]);

/*
 * Serve it until it is unmounted: from a process of its own, or from this one in the
 * foreground. `said`: printed once it is mounted; may be NULL. Return: enum cmd_status (said).
 */
int mount_fuse(const struct mounting *mounting, const char *said);

/*
 * `dir` as /proc/mounts has it, every link followed. No directory on the way is asked for
 * anything: one that a dead daemon served would not answer. Return: 0; negative errno.
 */
int mount_resolve(const char *dir, char path[PATH_MAX]);
/*
 * What is mounted on `path`, resolved: "erofs", MOUNT_FUSE_TYPE, ...; "": nothing. Return: 0;
 * negative errno: it cannot be told, type is "".
 */
int mount_type_of(const char *path, char type[32]);
/*
 * Unmount what is of that type. `lazily`: the name at once, the rest when nobody uses it any
 * more. Return: 0; negative errno: -EBUSY, -EPERM, ...
 */
int mount_leave(const char *path, const char *type, bool lazily);

#endif
