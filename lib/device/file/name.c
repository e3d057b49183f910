/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name.c - see name.h
 */
#include "lib/device/name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/error.h"
#include "lib/device/guard.h"
#include "lib/device/span.h"
#include "lib/device/stack.h"

#define TRIES 16
#define BESIDE ".new-"
#define BESIDE_SIZE (sizeof(BESIDE) - 1 + 8) /* and what the tag takes */

/* For glob(3): the 8 digits of a name beside another. */
#define TAG_PATTERN DIGIT DIGIT DIGIT DIGIT DIGIT DIGIT DIGIT DIGIT
#define DIGIT	    "[0-9a-f]"

/* ---- directories ----------------------------------------------------------- */

/* Owned by the caller; NULL: no memory. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

int stele_file_check_directory(const char *path)
{
	char *name = directory_of(path), *real = NULL;
	struct stat dev, root, at;
	int rc = name ? 0 : -ENOMEM;

	if (!rc && !stat("/dev", &dev) && !stat("/", &root) &&
	    !stat(name, &at) && at.st_dev == dev.st_dev) {
		real = realpath(name, NULL);
		if (dev.st_dev != root.st_dev ||
		    (real && !strncmp(real, "/dev", 4) &&
		     (!real[4] || real[4] == '/')))
			rc = -ENODEV;
	}
	free(real);
	free(name);
	return rc;
}

int stele_file_sync_directory(const char *path)
{
	char *name = directory_of(path);
	int rc = 0, fd;

	if (!name)
		return -ENOMEM;
	fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(name);
	if (fd < 0)
		return 0; /* one that may be written to, but not read */
	if (fsync(fd) && errno != EINVAL && errno != EROFS)
		rc = -errno;
	close(fd);
	return rc;
}

int stele_file_explain(const char *path, int rc)
{
	char *name = rc == -ENOSPC ? directory_of(path) : NULL;
	struct statvfs fs;

	/* With blocks left it is not for want of them; some count no inodes, or no blocks. */
	if (name && !statvfs(name, &fs) && fs.f_files && !fs.f_ffree &&
	    (fs.f_bfree || !fs.f_blocks))
		stele_error_explain(rc, "its filesystem has no inodes left");
	else if (rc == -ENOSPC)
		stele_error_explain(rc, "its filesystem is full");
	free(name);
	return rc;
}

/* ---- one file in the place of another ---------------------------------------- */

bool stele_file_is(const struct stele_device *dev, const char *path)
{
	const int fd = stele_device_fd(dev);
	struct stat ours, named;

	return fd >= 0 && !fstat(fd, &ours) && !stat(path, &named) &&
	       stele_stack_same(&ours, &named);
}

bool stele_file_shares(const struct stele_device *dev, const char *path)
{
	const int fd = stele_device_fd(dev);
	struct stele_span over, under;
	struct stat ours, named;

	if (fd < 0 || fstat(fd, &ours) || stat(path, &named))
		return false;
	stele_span_find(&named, &over);
	stele_span_find(&ours, &under);
	return stele_span_overlaps(&over, &under);
}

int stele_file_check_sources(const struct stele_device *dev, const char *target,
			     const char *const *sources, const struct stele_log *log)
{
	const int fd = stele_device_fd(dev);
	struct stele_span over, under;
	struct stat ours, named;

	if (!sources || fd < 0 || fstat(fd, &ours))
		return 0;
	stele_span_find(&ours, &under);
	for (; *sources; sources++) {
		if (stat(*sources, &named))
			continue;
		stele_span_find(&named, &over);
		if (!stele_span_overlaps(&over, &under))
			continue;
		if (S_ISREG(ours.st_mode) && stele_stack_same(&ours, &named))
			stele_log_error(log, "'%s' is a file of the source, which the image would "
					"replace", *sources);
		else
			stele_log_error(log, "'%s' is of the source, and shares bytes with '%s', "
					"which would be written to", *sources, target);
		return -EINVAL;
	}
	return 0;
}

bool stele_file_is_removed(const struct stele_device *dev)
{
	const int fd = stele_device_fd(dev);
	struct stat st;

	return dev->named && fd >= 0 && !fstat(fd, &st) && !st.st_nlink;
}

bool stele_file_is_open_here(const char *path)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	struct stat wanted, st;
	bool open = false;

	if (dir && !stat(path, &wanted))
		while (!open && (entry = readdir(dir))) {
			if (fstatat(dirfd(dir), entry->d_name, &st, 0))
				continue;
			open = S_ISBLK(wanted.st_mode) ?
				       S_ISBLK(st.st_mode) && st.st_rdev == wanted.st_rdev :
				       st.st_dev == wanted.st_dev &&
					       st.st_ino == wanted.st_ino;
		}
	if (dir)
		closedir(dir);
	return open;
}

bool stele_file_is_mounted_on(const struct stele_device *dev)
{
	struct statx st;

	return !statx(stele_device_fd(dev), "", AT_EMPTY_PATH, STATX_TYPE, &st) &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Bytes of `path` in names beside it: characters stay whole, and names within NAME_MAX. */
static int stem_size(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t size = strlen(name);

	if (size > NAME_MAX - BESIDE_SIZE) {
		size = NAME_MAX - BESIDE_SIZE;
		while (size && ((unsigned char)name[size] & 0xc0) == 0x80)
			size--;
	}
	return (int)((size_t)(name - path) + size);
}

char *stele_file_name_beside(const char *path, uint32_t tag)
{
	char *name;

	return asprintf(&name, "%.*s" BESIDE "%08" PRIx32, stem_size(path), path, tag) < 0 ?
		       NULL : name;
}

int stele_file_create_beside(const char *path, uint32_t tag, const char *backend,
			     const struct stele_log *log, char **name,
			     struct stele_device **out)
{
	const unsigned int flags = STELE_DEVICE_WRITE | STELE_DEVICE_EXCL |
				   STELE_DEVICE_CREATE;
	int rc = -EEXIST;
	uint32_t number = tag;

	for (int i = 0; i < (tag ? 1 : TRIES) && rc == -EEXIST; i++) {
		if (!tag && getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -EIO;
		*name = stele_file_name_beside(path, number);
		if (!*name)
			return -ENOMEM;
		rc = stele_device_open_file(*name, flags, backend, log, out);
		if (rc) {
			free(*name);
			*name = NULL;
		}
	}
	return rc;
}

/*
 * What one may replace by name before it is opened has to be the same afterwards. Return: 0;
 * -EPERM: it is not ours; -ENOENT; errno.
 */
static int check_own(const char *path, const struct stele_device *dev)
{
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	return S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
			       (!dev || stele_file_is(dev, path)) ?
		       0 : -EPERM;
}

int stele_file_open_beside(const char *path, uint32_t tag, bool alone,
			   const char *backend, const struct stele_log *log,
			   char **name, struct stele_device **out)
{
	const unsigned int flags = alone ? STELE_DEVICE_WRITE | STELE_DEVICE_EXCL : 0;
	char *beside = stele_file_name_beside(path, tag);
	int rc = beside ? check_own(beside, NULL) : -ENOMEM;

	if (!rc) {
		rc = stele_device_open_patiently(beside, flags, backend, log, out);
		if (!rc) {
			rc = check_own(beside, *out);
			if (rc)
				stele_device_close(*out);
		}
	}
	if (rc && rc != -EPERM)
		free(beside);
	else
		*name = beside;
	return rc;
}

/* By who is alive: locks of the killed last a moment longer. */
static bool is_held(const char *path)
{
	struct stele_device *dev;

	if (stele_device_open_patiently(path, STELE_DEVICE_EXCL, NULL, NULL, &dev))
		return true;
	stele_device_close(dev);
	return false;
}

/* They leave files that have one name, and that nobody uses. */
static bool is_left(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	       !stele_guard_in_use(path, NULL);
}

/* What a build or copy that was killed has left there may be of use yet. */
void stele_file_warn_beside(const char *path, const char *shown, const char *but,
			    const struct stele_log *log)
{
	glob_t found = {0};
	char *pattern;

	if (strpbrk(path, "*?[\\") ||
	    asprintf(&pattern, "%.*s" BESIDE TAG_PATTERN, stem_size(path), path) < 0)
		return;
	if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			if ((!but || strcmp(found.gl_pathv[i], but)) &&
			    is_left(found.gl_pathv[i]) && !is_held(found.gl_pathv[i]))
				stele_log_warning(log,
						  "'%s' was left by an interrupted build or "
						  "copy over '%s': remove it, unless that "
						  "copy is to be resumed",
						  found.gl_pathv[i], shown);
	globfree(&found);
	free(pattern);
}

/* The owner comes first, because a change of it takes away bits of the mode. */
int stele_file_adopt(struct stele_device *dev, const struct stele_device *old)
{
	const int fd = stele_device_fd(dev);
	struct stat was, now;

	if (fstat(stele_device_fd(old), &was) || fstat(fd, &now))
		return -errno;
	if ((was.st_uid != now.st_uid || was.st_gid != now.st_gid) &&
	    fchown(fd, was.st_uid, was.st_gid))
		stele_log_warning(&old->log,
				  "cannot keep the owner and group of the file that is "
				  "replaced: %s", strerror(errno));
	return fchmod(fd, was.st_mode & 07777) || fsync(fd) ? -errno : 0;
}

int stele_file_may_replace(const char *path)
{
	if (rmdir(path) && (errno == EPERM || errno == EACCES || errno == EROFS))
		return -errno;
	return 0;
}

int stele_file_replace(const char *name, const struct stele_device *old,
		       const char *path)
{
	if (!stele_file_is(old, path))
		return -ESTALE;
	return rename(name, path) ? -errno : 0;
}

/* ---- block devices ----------------------------------------------------------- */

static int block_ioctl(const char *path, unsigned long request, int *value)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc = fd < 0 || ioctl(fd, request, value) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

int stele_path_is_read_only(const char *path)
{
	int value = 0, rc = block_ioctl(path, BLKROGET, &value);

	return rc ? rc : !!value;
}

int stele_path_set_read_only(const char *path, bool read_only)
{
	int value = read_only;

	return block_ioctl(path, BLKROSET, &value);
}
