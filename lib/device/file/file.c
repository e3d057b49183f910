/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - block devices and regular files
 *
 * Owns the descriptor and how it was opened: direct where the filesystem can,
 * exclusive where that was asked. Backends share all of it but the queue; which one
 * serves is chosen in backends.c. Writes to a regular file end at its size, as on a
 * block device; a file grows only by stele_device_resize() and grow().
 */
#include "lib/device/guard.h"
#include "lib/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "format/checked.h"
#include "lib/device/backends.h"
#include "lib/device/limits.h"
#include "lib/device/name.h"

#define FLAGS_KNOWN \
	(STELE_DEVICE_WRITE | STELE_DEVICE_EXCL | STELE_DEVICE_CREATE | \
	 STELE_DEVICE_SOLE)
/* The byte that writers lock: beyond all that a file or device can hold. */
#define WRITER_BYTE (INT64_MAX - 1)

/* ---- transfers ----------------------------------------------------------- */

ssize_t stele_file_room(struct stele_file *file, uint64_t offset, size_t size)
{
	uint64_t end = UINT64_MAX;

	if (stele_file_check_whole(&file->base))
		return -ESTALE;
	if (file->regular)
		end = round_down(atomic_load(&file->size),
				 file->base.limits.logical_block);
	if (offset >= end)
		return -ENOSPC;
	return (ssize_t)(size < end - offset ? size : end - offset);
}

static int discard(struct stele_file *file, uint64_t offset, uint64_t size)
{
	uint64_t range[2] = {offset, size};
	ssize_t room;

	if (!file->regular)
		return ioctl(file->base.fd, BLKDISCARD, range);
	room = stele_file_room(file, offset, size);
	if (room < 0)
		return 0;
	return fallocate(file->base.fd,
			 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 (off_t)offset, room);
}

static ssize_t file_transfer(struct stele_device *dev, enum stele_op op,
			     void *data, uint64_t offset, size_t size)
{
	struct stele_file *file = (struct stele_file *)dev;
	ssize_t res = -1;

	switch (op) {
	case STELE_OP_READ:
		res = pread(dev->fd, data, size, (off_t)offset);
		break;
	case STELE_OP_WRITE:
		res = stele_file_room(file, offset, size);
		if (res < 0)
			return res;
		res = pwrite(dev->fd, data, (size_t)res, (off_t)offset);
		break;
	case STELE_OP_FLUSH:
		res = fdatasync(dev->fd);
		break;
	case STELE_OP_DISCARD:
		res = discard(file, offset, size);
		break;
	}
	return res < 0 ? -errno : res;
}

static int file_size(struct stele_device *dev, uint64_t *size)
{
	struct stele_file *file = (struct stele_file *)dev;
	struct stat st;

	if (!file->regular)
		return ioctl(dev->fd, BLKGETSIZE64, size) ? -errno : 0;
	if (fstat(dev->fd, &st))
		return -errno;
	*size = (uint64_t)st.st_size;
	return 0;
}

static int file_resize(struct stele_device *dev, uint64_t size)
{
	struct stele_file *file = (struct stele_file *)dev;
	const uint64_t old = atomic_load(&file->size);

	if (size > old && stele_reserve_check_size(dev->fd, size, &dev->log))
		return -EFBIG;
	if (size < old) /* first: it is we who cut it off */
		atomic_store(&file->size, size);
	if (ftruncate(dev->fd, (off_t)size)) {
		const int rc = -errno;

		atomic_store(&file->size, old);
		return rc;
	}
	atomic_store(&file->size, size);
	return 0;
}

/*
 * ftruncate(2) would cut off what another writer has added since the size was read, so
 * the last block is allocated. Like any that is reserved it may be given back.
 */
static int file_grow(struct stele_device *dev, uint64_t size)
{
	const uint64_t last = round_down(size - 1, STELE_GROW_BLOCK);
	struct stele_file *file = (struct stele_file *)dev;
	uint64_t now;
	int rc = stele_file_check_whole(dev);

	if (!rc)
		rc = stele_reserve_check_size(dev->fd, size, &dev->log);
	if (!rc)
		rc = stele_reserve(&file->reserved, dev->fd, last, size - last);
	while (!rc && fallocate(dev->fd, 0, (off_t)size - 1, 1))
		if (errno != EINTR)
			rc = -errno;
	if (rc == -EOPNOTSUPP || rc == -ENOSYS)
		return file_resize(dev, size);
	if (!rc)
		rc = file_size(dev, &now);
	if (!rc) /* smaller: it was cut off since */
		atomic_store(&file->size, now > size ? now : size);
	return rc;
}

static void file_close(struct stele_device *dev)
{
	stele_nvme_close(((struct stele_file *)dev)->nvme);
	stele_reserved_release(&((struct stele_file *)dev)->reserved);
	free(((struct stele_file *)dev)->real);
	close(dev->fd);
	free(dev);
}

/* A backend brings its name and its queues. */
static const struct stele_device_ops file_ops = {
	.transfer = file_transfer,
	.size = file_size,
	.close = file_close,
	.resize = file_resize,
	.grow = file_grow,
};

static int check_regular(const struct stele_device *dev)
{
	const struct stele_file *file = (const struct stele_file *)dev;

	if (dev->ops->transfer != file_transfer || !file->regular)
		return -EOPNOTSUPP;
	return dev->writable ? 0 : -EROFS;
}

/* Looked at before each write: what is written behind the cut would hide it. */
int stele_file_check_whole(struct stele_device *dev)
{
	struct stele_file *file = (struct stele_file *)dev;
	uint64_t size = 0;

	if (check_regular(dev) || file_size(dev, &size) ||
	    (size >= atomic_load(&file->size) && !atomic_load(&file->cut)))
		return 0;
	if (!atomic_exchange(&file->cut, true))
		stele_log_error(&dev->log,
				"the file was cut off while it was being written");
	return -ESTALE;
}

/* Where it cannot be told, it is where it was. */
int stele_file_check_place(struct stele_device *dev)
{
	const struct stele_file *file = (struct stele_file *)dev;
	struct stat st;

	if (check_regular(dev) || !file->real || stele_file_is(dev, file->real) ||
	    (stat(file->real, &st) && errno != ENOENT && errno != ENOTDIR))
		return 0;
	stele_log_error(&dev->log,
			"'%s' no longer leads to what was written: the file was moved, and "
			"keeps it where it is now", file->real);
	return -ESTALE;
}

int stele_device_reserve_file(struct stele_device *dev, uint64_t offset,
			      uint64_t size)
{
	int rc = dev->ops->reserve ? 0 : check_regular(dev);

	if (rc)
		return rc;
	if (!range_ok(offset, size, INT64_MAX))
		return -EFBIG;
	if (dev->ops->reserve)
		return dev->ops->reserve(dev, offset, size);
	rc = stele_reserve(&((struct stele_file *)dev)->reserved, dev->fd,
			   offset, size);
	return rc == -EOPNOTSUPP || rc == -ENOSYS ? 0 : stele_device_explain(dev, rc);
}

int stele_device_unreserve_file(struct stele_device *dev, uint64_t from,
				uint64_t size, struct stele_permit *permit)
{
	struct stele_file *file = (struct stele_file *)dev;
	int rc = check_regular(dev);
	uint64_t now;

	if (rc)
		return rc;
	rc = stele_unreserve(&file->reserved, dev->fd, from, size, permit);
	if (!file_size(dev, &now))
		atomic_store(&file->size, now);
	return rc;
}

void stele_device_keep_file(struct stele_device *dev)
{
	if (!check_regular(dev))
		stele_reserved_release(&((struct stele_file *)dev)->reserved);
}

/* ---- open ---------------------------------------------------------------- */

/* Nothing is opened that may act on being opened: tapes, watchdogs, FIFOs. */
static int check_type(const char *path, unsigned int flags, bool *is_block)
{
	struct stat st;

	*is_block = false;
	if (stat(path, &st))
		return errno == ENOENT && (flags & STELE_DEVICE_CREATE)
			       ? 0
			       : -errno;
	if (flags & STELE_DEVICE_CREATE)
		return -EEXIST;
	*is_block = S_ISBLK(st.st_mode);
	return *is_block || S_ISREG(st.st_mode) ? 0 : -ENOTBLK;
}

static int open_descriptor(const char *path, unsigned int flags)
{
	int mode = O_CLOEXEC | O_NOCTTY;
	bool is_block;
	int rc, fd;

	rc = check_type(path, flags, &is_block);
	if (!rc && flags & STELE_DEVICE_CREATE)
		rc = stele_file_check_directory(path);
	if (rc)
		return rc;
	mode |= flags & STELE_DEVICE_WRITE ? O_RDWR : O_RDONLY;
	if (flags & STELE_DEVICE_CREATE)
		mode |= O_CREAT | O_EXCL;
	else if (is_block && (flags & (STELE_DEVICE_EXCL | STELE_DEVICE_SOLE)))
		mode |= O_EXCL;
	fd = open(path, mode, 0666);
	/* The kernel has it alone as an EROFS: a reader that keeps everybody else out. */
	if (fd < 0 && errno == EBUSY && is_block && flags & STELE_DEVICE_SOLE) {
		if (!stele_guard_is_erofs(path))
			return -EBUSY;
		fd = open(path, mode & ~O_EXCL, 0666);
	}
	if (fd < 0)
		return flags & STELE_DEVICE_CREATE ? stele_file_explain(path, -errno) :
						     -errno;
	rc = flags & STELE_DEVICE_CREATE ? stele_file_sync_directory(path) : 0;
	if (rc) {
		close(fd);
		unlink(path);
	}
	return rc ? rc : fd;
}

/* The same type as before it was opened, and writable if it has to be. */
static int check_opened(struct stele_file *file, unsigned int flags)
{
	struct statfs fs;
	struct stat st;
	int read_only = 0;

	if (fstat(file->base.fd, &st))
		return -errno;
	file->regular = S_ISREG(st.st_mode);
	if (file->regular && !fstatfs(file->base.fd, &fs)) {
		if (flags & STELE_DEVICE_WRITE &&
		    (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC))
			return -ENOTBLK; /* what is there keeps nothing */
		file->in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
	}
	file->base.resizable = file->regular;
	file->base.named = file->regular && (st.st_nlink || flags & STELE_DEVICE_CREATE);
	if (file->regular) {
		atomic_store(&file->size, (uint64_t)st.st_size);
		return 0;
	}
	if (!S_ISBLK(st.st_mode))
		return -ENOTBLK;
	if (file->base.writable && ioctl(file->base.fd, BLKROGET, &read_only))
		return -errno;
	return read_only ? -EROFS : 0;
}

/*
 * One writer: a lock of the open file, which no reader takes and which goes
 * with the last descriptor. Where a filesystem has none, an exclusive opener is
 * content with its flock.
 */
static int lock_writer(int fd, bool exclusive)
{
	struct flock writer = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = WRITER_BYTE,
		.l_len = 1,
	};

	if (!fcntl(fd, F_OFD_SETLK, &writer))
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return -EBUSY;
	return exclusive ? 0 : -errno;
}

/*
 * Who wants it alone takes the lock that readers share; a sole writer shares it
 * with them, so that nobody has it alone. Mere readers take it if they get it.
 */
static int lock(int fd, unsigned int flags)
{
	bool exclusive = flags & STELE_DEVICE_EXCL;

	if (flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) &&
	    flags & (STELE_DEVICE_EXCL | STELE_DEVICE_SOLE))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (!(flags & STELE_DEVICE_WRITE) ||
	    !(flags & (STELE_DEVICE_EXCL | STELE_DEVICE_SOLE)))
		return 0;
	return lock_writer(fd, exclusive);
}

/*
 * O_DIRECT is set after the open, because open(2) creates the file before it
 * finds that the filesystem cannot do it.
 */
static bool make_direct(struct stele_file *file, const char *path)
{
	int flags = fcntl(file->base.fd, F_GETFL);

	if (flags >= 0 && !fcntl(file->base.fd, F_SETFL, flags | O_DIRECT))
		return true;
	stele_log_warning(&file->base.log,
			  "cannot use direct I/O on '%s': %s; "
			  "falling back to buffered I/O",
			  path, strerror(errno));
	return false;
}

static int set_up(struct stele_file *file, const char *path,
		  unsigned int flags, const char *backend)
{
	struct stele_device *dev = &file->base;
	bool direct;
	int rc;

	rc = check_opened(file, flags);
	if (rc)
		return rc;
	rc = lock(dev->fd, flags);
	if (rc)
		return rc;
	if (dev->named && dev->writable)
		file->real = realpath(path, NULL);
	direct = make_direct(file, path);
	rc = stele_limits_read(dev->fd, direct, &dev->limits);
	if (rc == -EOPNOTSUPP)
		stele_log_error(&dev->log,
				"cannot serve '%s': blocks of %u bytes", path,
				dev->limits.logical_block);
	if (rc)
		return rc;
	return stele_backend_choose(file, path, backend);
}

int stele_device_open_file(const char *path, unsigned int flags,
			   const char *backend, const struct stele_log *log,
			   struct stele_device **out)
{
	struct stele_file *file;
	int rc;

	if ((flags & ~(unsigned int)FLAGS_KNOWN) ||
	    ((flags & (STELE_DEVICE_CREATE | STELE_DEVICE_SOLE)) &&
	     !(flags & STELE_DEVICE_WRITE)))
		return -EINVAL;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	if (log)
		file->base.log = *log;
	file->ops = file_ops;
	file->base.ops = &file->ops;
	file->base.writable = flags & STELE_DEVICE_WRITE;
	rc = open_descriptor(path, flags);
	file->base.fd = rc;
	if (rc < 0)
		goto out;
	rc = set_up(file, path, flags, backend);
	if (!rc) {
		*out = &file->base;
		return 0;
	}
	stele_nvme_close(file->nvme);
	free(file->real);
	close(file->base.fd);
	if (flags & STELE_DEVICE_CREATE && rc != -EBUSY) /* busy: another has it open by now */
		unlink(path);
out:
	free(file);
	return rc;
}
