/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.c - a directory as a source: its fields, opening and reading its files
 *
 * Files are opened without blocking, and read by offset: what was a file during the scan
 * may be a fifo now, of which that takes nothing. Reading asks for a byte more than there
 * were (reader.c), which tells of another size; large files are looked at before.
 *
 * What takes several reads could be of two versions, so its size and times are looked at
 * before the first and after the last one. That does not tell of a second change within the
 * tick of the kernel's clock in which the first one was made (1 to 10 ms; Linux 6.13 has finer
 * times for who looks at them), or within the unit of coarser times, which some filesystems
 * have; of stores to a mapped page that was dirty already; and of what comes during the only
 * read of a small file, which most filesystems hold apart from writes by the page.
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

#include "lib/device/span.h"

/* From here on it pays to tell the kernel that a file is read in order. */
#define SEQUENTIAL_SIZE (UINT64_C(128) << 10)
/*
 * And from here on, to have it read ahead of us: by itself it is some 256 KiB ahead, so
 * that a thread with one large file waits for each of its reads, and the device for it.
 */
#define AHEAD_SIZE (UINT64_C(8) << 20)

/* A seccomp filter that does not know openat2 says ENOSYS. */
static int open_beneath(const struct stele_directory *directory, int at,
			const char *path, int flags)
{
	const int all = flags | O_CLOEXEC | (directory->follow ? 0 : O_NOFOLLOW);
	struct open_how how = {
		.flags = (unsigned int)all,
		.resolve = directory->follow ? 0 : RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, at, path, &how, sizeof(how));

	if (fd < 0 && errno == ENOSYS)
		fd = openat(at, path, all);
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
		return open_beneath(directory, at, ".", flags);
	for (;;) {
		size_t taken = piece_size(path, size);
		bool last = taken == size;
		int fd;

		if (taken == 0 || taken >= sizeof(piece))
			fd = -ENAMETOOLONG;
		else {
			memcpy(piece, path, taken);
			piece[taken] = '\0';
			fd = open_beneath(directory, at, piece,
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

/* ---- fields ---------------------------------------------------------------- */

static int directory_schema(void *user, const struct stele_schema *base,
			    struct stele_schema *out)
{
	struct stele_directory *directory = user;

	return stele_labels_schema(&directory->labels, directory->fields, base,
				   &directory->log, out);
}

static int64_t directory_label(void *user, const struct stele_source_entry *entry)
{
	return stele_labels_label(&((struct stele_directory *)user)->labels, entry);
}

/* ---- files ----------------------------------------------------------------- */

struct reader {
	const struct stele_directory *directory;
	int fd;
	uint64_t asked; /* for bytes ahead, up to here */
	bool watched;
	struct stat before; /* if watched: as it was before its first byte was read */
};

static int reader_new(void *user, void **out)
{
	struct reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->directory = user;
	*out = reader;
	return 0;
}

/* Return: 0; -ETXTBSY: it is no file of that size. */
static int watch(struct reader *reader, uint64_t size)
{
	struct stat *st = &reader->before;

	reader->watched = true;
	return !fstat(reader->fd, st) && S_ISREG(st->st_mode) && (uint64_t)st->st_size == size ?
		       0 : -ETXTBSY;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool has_changed(const struct reader *reader)
{
	const struct stat *before = &reader->before;
	struct stat st;

	return fstat(reader->fd, &st) || st.st_size != before->st_size ||
	       !same_time(&st.st_mtim, &before->st_mtim) ||
	       !same_time(&st.st_ctim, &before->st_ctim);
}

static int open_file(void *user, const struct stele_source_entry *entry,
		     union stele_value *values)
{
	struct reader *reader = user;
	int fd = stele_directory_open_below(reader->directory, entry->key,
					    entry->key_size,
					    O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd == -ELOOP || fd == -ENXIO)
		return -ETXTBSY; /* a symlink or socket took its place */
	if (fd == -ENOTDIR)
		return -ENOENT;
	if (fd < 0)
		return fd;
	reader->fd = fd;
	reader->watched = false;
	if (entry->data_size >= SEQUENTIAL_SIZE) {
		if (watch(reader, entry->data_size)) {
			close(fd);
			return -ETXTBSY;
		}
		posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	}
	reader->asked = entry->data_size >= AHEAD_SIZE ? 0 : UINT64_MAX;
	stele_labels_values(&reader->directory->labels, entry, values);
	return 0;
}

/* Keep the kernel between one and two AHEAD_SIZE ahead. It is advice: no error counts. */
static void read_ahead(struct reader *reader, uint64_t at)
{
	while (reader->asked <= at + AHEAD_SIZE) {
		posix_fadvise(reader->fd, (off_t)reader->asked,
			      (off_t)AHEAD_SIZE, POSIX_FADV_WILLNEED);
		reader->asked += AHEAD_SIZE;
	}
}

static int64_t read_at(const struct reader *reader, uint64_t offset, void *data, size_t size)
{
	ssize_t ret;

	do
		ret = pread(reader->fd, data, size, (off_t)offset);
	while (ret < 0 && errno == EINTR);
	if (ret < 0 && (errno == ESPIPE || errno == EISDIR))
		return -ETXTBSY;
	return ret < 0 ? -errno : ret;
}

/* A first read that cannot be the only one, or was not, is of a file that is watched. */
static int64_t read_file(void *user, const struct stele_source_entry *entry,
			 uint64_t offset, void *data, size_t size)
{
	struct reader *reader = user;
	const uint64_t left = entry->data_size - offset;
	int64_t ret;

	read_ahead(reader, offset);
	ret = reader->watched || size >= left ? read_at(reader, offset, data, size) : 0;
	if (!reader->watched && ret >= 0 && (uint64_t)ret < left) {
		if (watch(reader, entry->data_size))
			return -ETXTBSY;
		ret = read_at(reader, offset, data, size);
	}
	/* Less than was asked for: that was the end, and the last read. */
	if (reader->watched && ret >= 0 && (uint64_t)ret >= left && (size_t)ret < size &&
	    has_changed(reader))
		return -ETXTBSY;
	return ret;
}

static void close_file(void *user)
{
	close(((struct reader *)user)->fd);
}

static void directory_release(void *user)
{
	struct stele_directory *directory = user;

	close(directory->fd);
	stele_labels_release(&directory->labels);
	free(directory);
}

static const struct stele_source_ops directory_ops = {
	.size = sizeof(directory_ops),
	.flags = STELE_SOURCE_REPEATS, /* one that changes while it is read */
	.scan = stele_directory_scan,
	.schema = directory_schema,
	.reader_new = reader_new,
	.reader_free = free,
	.open = open_file,
	.read = read_file,
	.close = close_file,
};

/* Slashes at its end would lead on. */
static int64_t turned(const char *path)
{
	char name[PATH_MAX];
	size_t size = strlen(path);
	struct stat st;

	while (size > 1 && path[size - 1] == '/')
		size--;
	if (size >= sizeof(name))
		return STELE_MOVED_NEVER;
	memcpy(name, path, size);
	name[size] = '\0';
	return !lstat(name, &st) && S_ISLNK(st.st_mode) ? st.st_ctim.tv_sec :
							   STELE_MOVED_NEVER;
}

int stele_source_open_directory(const char *path, uint64_t avoid_dev,
				uint64_t avoid_inode,
				const struct stele_build_opts *opts,
				const struct stele_log *log,
				struct stele_source *out)
{
	struct stele_directory *directory = calloc(1, sizeof(*directory));

	if (!directory)
		return -ENOMEM;
	directory->turned = turned(path);
	directory->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory->fd < 0) {
		int ret = -errno;

		stele_log_error(log, "cannot open source '%s': %s%s", path, strerror(-ret),
				ret == -ENOTDIR && access(path, F_OK) == 0 ?
					" (archives and other formats are read by the program "
					"'stele build')" :
					"");
		free(directory);
		return ret;
	}
	if (log)
		directory->log = *log;
	directory->avoid_dev = avoid_dev;
	directory->avoid_inode = avoid_inode;
	directory->labels.from = opts->label_from;
	directory->follow = opts->flags & STELE_BUILD_FOLLOW;
	directory->exclude = opts->exclude;
	*out = (struct stele_source){.ops = directory_ops,
				     .user = directory,
				     .release = directory_release,
				     .label = directory_label,
				     .label_told = opts->label_from != STELE_LABEL_FROM_AUTO,
				     .ends_short = true};
	return 0;
}

int stele_source_open_beside(const char *path, const char *target,
			     const struct stele_build_opts *opts,
			     const struct stele_log *log,
			     struct stele_source *out)
{
	struct stele_span span;
	struct stat st = {0};

	if (target && stat(target, &st) < 0)
		memset(&st, 0, sizeof(st));
	/* What a loop device writes to may be a file of the directory. */
	stele_span_find(&st, &span);
	st = span.levels[span.count - 1].st;
	return stele_source_open_directory(path, st.st_dev, st.st_ino, opts,
					   log, out);
}
