/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.h - what is mounted, by this process's mount namespace and those of others
 *
 * Of other namespaces only EROFS is told: the kernel lets nobody write to what else is
 * mounted from a device, and opens it exclusively; an EROFS may be one from a file, which
 * it does not. A namespace without a process, or with none that may be looked into, is not
 * seen; but see stele_mounts_is_erofs(). Read only.
 */
#ifndef STELE_DEVICE_MOUNTS_H
#define STELE_DEVICE_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define STELE_MOUNT_UUID_SIZE 16

struct stele_mount {
	dev_t number;	    /* of the device, or, with the major number 0, of what has none */
	const char *point;  /* as the kernel escapes it: it goes into one line of text */
	const char *type;   /* of the filesystem */
	const char *source; /* as whoever mounted it spelled it; may lead elsewhere by now */
	uint64_t offset;    /* where in its source the filesystem begins */
	const char *pid;    /* of a process that sees it; NULL: we do */
};

/*
 * Call `fn` for each mount until it returns something. What `mount` points to is good until
 * then. Return: that, or 0; -ENOMEM; errno of our own /proc.
 */
int stele_mounts_each(int (*fn)(const struct stele_mount *mount, void *user), void *user);

/*
 * What the source is called, as seen by who has it mounted: a descriptor (O_PATH), which the
 * caller closes. Return: that; -ENOENT (nor is it known if its name is relative); errno.
 */
int stele_mount_open_source(const struct stele_mount *mount);

/* Its UUID, by the kernel. False: it has none, or that is not to be seen. */
bool stele_mount_uuid(const struct stele_mount *mount, uint8_t uuid[STELE_MOUNT_UUID_SIZE]);

/* That of the EROFS which begins there in a file. False: none does. */
bool stele_mounts_file_uuid(int fd, uint64_t offset, uint8_t uuid[STELE_MOUNT_UUID_SIZE]);

/* Undo the kernel's "\040" in place, as /proc/swaps has it, too. */
void stele_mounts_unescape(char *text);

/* Is this block device mounted as EROFS, in whatever namespace? False also if not to be seen. */
bool stele_mounts_is_erofs(dev_t number);

#endif
