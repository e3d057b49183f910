/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cached.h - a file or block device through the page cache: a shared read-only mapping
 *
 * The cache may be older than a device that another machine has written to, so the range
 * is dropped from it at open, and there is no readahead (MADV_RANDOM). Dropping is only
 * advice: the cache keeps whatever anybody has mapped. Ranges are rounded to whole pages.
 */
#ifndef STELE_DEVICE_CACHED_H
#define STELE_DEVICE_CACHED_H

#include "lib/device/device.h"

struct stele_cached {
	int fd; /* the device's */
	char *memory;
	size_t size, page_size;
};

/*
 * The first `size` bytes of the device, rounded up. Return: 0; -EOPNOTSUPP (no file
 * or block device); -ENOMEM; errno of mmap(2).
 */
int stele_cached_open(const struct stele_device *dev, uint64_t size,
		      struct stele_cached *out);
/* Idempotent on a zeroed struct. */
void stele_cached_close(struct stele_cached *cached);
/* Have the kernel read it again, unless somebody else has it mapped. */
void stele_cached_drop(const struct stele_cached *cached, size_t offset, size_t size);
/* Begin to read it. */
void stele_cached_start(const struct stele_cached *cached, size_t offset, size_t size);
/* Read it all. Return: 0; -EIO (a touch would raise SIGBUS); errno. */
int stele_cached_finish(const struct stele_cached *cached, size_t offset, size_t size);

#endif
