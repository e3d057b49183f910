/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cached.c - see cached.h
 */
#include "lib/device/cached.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/checked.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* since Linux 5.14 */
#endif
#define SCRATCH_SIZE (64u << 10)

int stele_cached_open(const struct stele_device *dev, uint64_t size,
		      struct stele_cached *out)
{
	const int fd = stele_device_fd(dev);

	*out = (struct stele_cached){
		.fd = fd,
		.page_size = (size_t)sysconf(_SC_PAGESIZE),
	};
	if (fd < 0)
		return fd;
	if (!checked_round_up(size, out->page_size, &size) || size > PTRDIFF_MAX)
		return -ENOMEM;
	posix_fadvise(fd, 0, (off_t)size, POSIX_FADV_DONTNEED);
	out->memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (out->memory == MAP_FAILED)
		return -errno;
	out->size = size;
	madvise(out->memory, size, MADV_RANDOM);
	return 0;
}

void stele_cached_close(struct stele_cached *cached)
{
	if (cached->size)
		munmap(cached->memory, cached->size);
	cached->size = 0;
}

/* As madvise wants it. */
static void whole_pages(const struct stele_cached *cached, size_t *offset, size_t *size)
{
	const size_t end = round_up(*offset + *size, cached->page_size);

	*offset = round_down(*offset, cached->page_size);
	*size = end - *offset;
}

void stele_cached_drop(const struct stele_cached *cached, size_t offset, size_t size)
{
	whole_pages(cached, &offset, &size);
	madvise(cached->memory + offset, size, MADV_DONTNEED);
	posix_fadvise(cached->fd, (off_t)offset, (off_t)size, POSIX_FADV_DONTNEED);
}

void stele_cached_start(const struct stele_cached *cached, size_t offset, size_t size)
{
	whole_pages(cached, &offset, &size);
	madvise(cached->memory + offset, size, MADV_WILLNEED);
}

static int read_range(int fd, void *scratch, size_t offset, size_t size)
{
	while (size) {
		ssize_t n = pread(fd, scratch,
				  size < SCRATCH_SIZE ? size : SCRATCH_SIZE,
				  (off_t)offset);

		if (n <= 0)
			return n ? -errno : -EIO;
		offset += (size_t)n;
		size -= (size_t)n;
	}
	return 0;
}

/* For kernels without MADV_POPULATE_READ: buffered reads fill the same cache. */
static int read_pages(int direct, size_t offset, size_t size)
{
	char path[64], *scratch;
	int err = -ENOMEM, fd;

	/* The device's own descriptor bypasses the cache. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", direct);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	scratch = malloc(SCRATCH_SIZE);
	if (scratch)
		err = read_range(fd, scratch, offset, size);
	free(scratch);
	close(fd);
	return err;
}

int stele_cached_finish(const struct stele_cached *cached, size_t offset, size_t size)
{
	whole_pages(cached, &offset, &size);
	if (!madvise(cached->memory + offset, size, MADV_POPULATE_READ))
		return 0;
	if (errno == EINVAL)
		return read_pages(cached->fd, offset, size);
	return errno == EFAULT ? -EIO : -errno;
}
