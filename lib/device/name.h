/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name.h - what is done to a file or block device by its name
 *
 * Files are created in one step with the durability of their names, compared by what a
 * path leads to, and replaced by one that was written beside them. None of it is logged
 * but where it says so.
 */
#ifndef STELE_DEVICE_NAME_H
#define STELE_DEVICE_NAME_H

#include "lib/device/device.h"

/*
 * Where device nodes are, a path that is not there is a device that is not there. What
 * is mounted below /dev, such as /dev/shm, is another filesystem. Return: 0 (a file may be
 * created at `path`, if we may write there); -ENODEV; -ENOMEM.
 */
int stele_file_check_directory(const char *path);
/* A new file's name is to be as durable as what is written to it. 0; -ENOMEM; errno. */
int stele_file_sync_directory(const char *path);
/* What a file at `path` could not be created for: explains -ENOSPC. Return: `rc`. */
int stele_file_explain(const char *path, int rc);

/* Does `path` lead to the file or block device that is open as `dev`? */
bool stele_file_is(const struct stele_device *dev, const char *path);
/* Is any of what is written to `path` read from `dev`, by loop devices and partitions, too? */
bool stele_file_shares(const struct stele_device *dev, const char *path);
/*
 * Does `dev`, which `target` led to and which is to be written, share bytes with one of these
 * paths (up to NULL, or none at all), which are read? Return: 0; -EINVAL (it does; logged).
 */
int stele_file_check_sources(const struct stele_device *dev, const char *target,
			     const char *const *sources, const struct stele_log *log);
/*
 * Has the file lost its last name since it was opened? One that had none then, such as a
 * memfd, is its descriptor's owner's business.
 */
bool stele_file_is_removed(const struct stele_device *dev);
/*
 * Is a regular file at least as large as it was opened or made by us? What was cut off it
 * is gone, whatever is written behind. Return: 0 (also of what is none); -ESTALE (logged once).
 */
int stele_file_check_whole(struct stele_device *dev);
/*
 * Does the name that a file was opened by for writing still lead to it? It may have been moved,
 * or another one put there. Return: 0 (also of what has none); -ESTALE (logged).
 */
int stele_file_check_place(struct stele_device *dev);
/* Does this process itself have the file or block device open? */
bool stele_file_is_open_here(const char *path);
/* Is something mounted on the file itself? Then no other can take its name. */
bool stele_file_is_mounted_on(const struct stele_device *dev);

/*
 * "PATH.new-XXXXXXXX", by that number, of a long name its beginning (malloced). NULL: no memory.
 */
char *stele_file_name_beside(const char *path, uint32_t tag);
/*
 * Create one, open it for writing, alone, and have *name say what it is
 * called (malloced). `tag`: by that number, -EEXIST: there is one; 0: by any. Return: as
 * stele_device_open_file().
 */
int stele_file_create_beside(const char *path, uint32_t tag, const char *backend,
			     const struct stele_log *log, char **name,
			     struct stele_device **out);
/*
 * One that was created by that tag; nobody else may have put it there. `alone`: for writing.
 * Return: as above; -ENOENT; -EPERM (it is not ours, or no file with one name; *name is set).
 */
int stele_file_open_beside(const char *path, uint32_t tag, bool alone,
			   const char *backend, const struct stele_log *log,
			   char **name, struct stele_device **out);
/*
 * Warn of such files that nobody holds, other than `but` (may be NULL); `shown`: what a user
 * calls `path`.
 */
void stele_file_warn_beside(const char *path, const char *shown, const char *but,
			    const struct stele_log *log);
/* Take over owner (else logged) and mode of `old`, durably. Return: 0; errno. */
int stele_file_adopt(struct stele_device *dev, const struct stele_device *old);
/*
 * May another file take the place of this one? The kernel is asked, which knows of sticky
 * directories and attributes: rmdir() checks that first, and removes nothing that is no directory.
 * Return: 0; -EPERM; -EACCES; -EROFS.
 */
int stele_file_may_replace(const char *path);
/*
 * Give `path` to the file `name`. Return: 0; -ESTALE (`path` does not lead to `old` any
 * more); errno.
 */
int stele_file_replace(const char *name, const struct stele_device *old,
		       const char *path);

/* Is the block device set read-only (BLKROGET)? Return: 0; 1; errno. */
int stele_path_is_read_only(const char *path);
int stele_path_set_read_only(const char *path, bool read_only);

#endif
