/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stele_backing.h - files that no other may take the place of; part of stele.h
 *
 * A program that renames a new file over an old one, as rename(2) does, leaves the old one without
 * a name. Where that is the *backing file* of a loop device, or of an EROFS that is mounted from
 * it, its bytes are lost with the device or mount; where it holds an image, at once. This tells
 * which files are such.
 */
#include "stele.h" /* outside the guard: it includes this one where it belongs */

#ifndef STELE_BACKING_H
#define STELE_BACKING_H

#ifdef __cplusplus
extern "C" {
#endif

struct stele_backing;

struct stele_backing_opts {
	size_t size;
	stele_log_fn log; /* why a file may not be replaced: "it holds an image" */
	void *log_user;
};

/**
 * stele_backing_open() - the backing files of this machine, as they are now
 *
 * Those of all loop devices, and of EROFS in all mount namespaces that the caller may look into.
 * What cannot be seen is not known. Any number of threads can use the handle.
 * Return: 0; -ENOMEM; -EINVAL, -E2BIG (options).
 */
STELE_API int stele_backing_open(const struct stele_backing_opts *opts,
				 struct stele_backing **out);

/**
 * stele_backing_check() - may another file take the place of this one?
 * @dir: what @path is relative to: a directory, or AT_FDCWD
 * @path: may be "", with AT_EMPTY_PATH: then @dir is the file itself
 * @flags: AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW: as for fstatat(2)
 *
 * Meant for many files: it costs a stat(2), and of a file of 2 MiB or more also a look for an
 * image; a smaller one has no samples. Only while some EROFS is mounted from a file that its
 * path does not lead to, because that is relative or the file was renamed, the superblock of the
 * EROFS in each file is read as well: the UUID tells whether it is that one. A copy has the same.
 *
 * The reason is logged, and follows "cannot replace" in stele_errmsg().
 *
 * Return: 0 (also if nothing is there, or no regular file); -EPERM (it is a block device);
 * -EEXIST (it holds an image, even a damaged one, or one in a partition); -ETXTBSY (it is under
 * a loop device); -EBUSY (an EROFS is, or may be, mounted from it); -EINVAL (flags); -ENOMEM.
 */
STELE_API int stele_backing_check(const struct stele_backing *backing, int dir,
				  const char *path, int flags);

/** NULL is fine. */
STELE_API void stele_backing_close(struct stele_backing *backing);

#ifdef __cplusplus
}
#endif

#endif
