/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.c - a directory as a source: opening and reading its files
 *
 * Files are opened without blocking, and looked at before they are read: what
 * was a file during the scan may be a fifo now.
 */
#include "lib/source/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From here on it pays to tell the kernel that a file is read in order. */
#define SEQUENTIAL_SIZE (UINT64_C(128) << 10)
/*
 * And from here on, to have it read ahead of us: by itself it is some 256 KiB ahead, so
 * that a thread with one large file waits for each of its reads, and the device for it.
 */
#define AHEAD_SIZE (UINT64_C(8) << 20)

/* A seccomp filter that does not know openat2 says ENOSYS. */
static int open_beneath(int at, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, at, path, &how, sizeof(how));

	if (fd < 0 && errno == ENOSYS)
		fd = openat(at, path, flags | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : (int)fd;
}

/* Length of the longest beginning that the kernel takes, without its '/'. */
static size_t piece_size(const char *path, size_t size)
{
	size_t at = PATH_MAX - 1;

	if (size < PATH_MAX)
		return size;
	while (at && path[at] != '/')
		at--;
	return at;
}

int stele_directory_open_below(const struct stele_directory *directory,
			       const char *path, size_t size, int flags)
{
	char piece[PATH_MAX];
	int at = directory->fd;

	if (size == 0)
		return open_beneath(at, ".", flags);
	for (;;) {
		size_t taken = piece_size(path, size);
		bool last = taken == size;
		int fd;

		if (taken == 0 || taken >= sizeof(piece))
			fd = -ENAMETOOLONG;
		else {
			memcpy(piece, path, taken);
			piece[taken] = '\0';
			fd = open_beneath(at, piece,
					  last ? flags : O_PATH | O_DIRECTORY);
		}
		if (at != directory->fd)
			close(at);
		if (last || fd < 0)
			return fd;
		at = fd;
		path += taken + 1;
		size -= taken + 1;
	}
}

static int directory_open(struct stele_source *source,
			  const struct stele_source_entry *entry,
			  struct stele_source_file *file)
{
	const struct stele_directory *directory =
		(const struct stele_directory *)source;
	struct stat st;
	int fd = stele_directory_open_below(directory, entry->key,
					    entry->key_size,
					    O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd == -ELOOP || fd == -ENXIO)
		return -ETXTBSY; /* a symlink or socket took its place */
	if (fd == -ENOTDIR)
		return -ENOENT;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != entry->size) {
		close(fd);
		return -ETXTBSY;
	}
	if (entry->size >= SEQUENTIAL_SIZE)
		posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	file->source = source;
	file->handle = fd;
	file->at = 0;
	file->asked = entry->size >= AHEAD_SIZE ? 0 : UINT64_MAX;
	return 0;
}

/* Keep the kernel between one and two AHEAD_SIZE ahead. It is advice: no error counts. */
static void read_ahead(struct stele_source_file *file)
{
	while (file->asked <= file->at + AHEAD_SIZE) {
		posix_fadvise(file->handle, (off_t)file->asked,
			      (off_t)AHEAD_SIZE, POSIX_FADV_WILLNEED);
		file->asked += AHEAD_SIZE;
	}
}

static ssize_t directory_read(struct stele_source_file *file, void *data,
			      size_t size)
{
	ssize_t ret;

	read_ahead(file);
	do
		ret = read(file->handle, data, size);
	while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	file->at += (uint64_t)ret;
	return ret;
}

static void directory_close(struct stele_source_file *file)
{
	if (file->source)
		close(file->handle);
	file->source = NULL;
}

static void directory_release(struct stele_source *source)
{
	struct stele_directory *directory = (struct stele_directory *)source;

	close(directory->fd);
	free(directory);
}

static const struct stele_source_ops directory_ops = {
	.scan = stele_directory_scan,
	.open = directory_open,
	.read = directory_read,
	.close = directory_close,
	.release = directory_release,
};

int stele_source_open_directory(const char *path, uint64_t avoid_dev,
				uint64_t avoid_inode,
				const struct stele_log *log,
				struct stele_source **out)
{
	struct stele_directory *directory = calloc(1, sizeof(*directory));

	if (!directory)
		return -ENOMEM;
	directory->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory->fd < 0) {
		int ret = -errno;

		stele_log_error(log, "cannot open source '%s': %s", path,
				strerror(-ret));
		free(directory);
		return ret;
	}
	directory->source.ops = &directory_ops;
	if (log)
		directory->source.log = *log;
	directory->avoid_dev = avoid_dev;
	directory->avoid_inode = avoid_inode;
	*out = &directory->source;
	return 0;
}

int stele_source_open_beside(const char *path, const char *target,
			     const struct stele_log *log,
			     struct stele_source **out)
{
	struct stat st = {0};

	if (target && stat(target, &st) < 0)
		memset(&st, 0, sizeof(st));
	return stele_source_open_directory(path, st.st_dev, st.st_ino, log,
					   out);
}
