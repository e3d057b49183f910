/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - append to a file without a name
 */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)1 << 20)

const char *store_directory(void)
{
	const char *directory = getenv("TMPDIR");

	return directory && *directory ? directory : "/var/tmp";
}

static int create(struct store *store)
{
	const char *directory = store_directory();
	char path[PATH_MAX];

	store->buffer = malloc(BUFFER_SIZE);
	if (!store->buffer)
		return -ENOMEM;
	store->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (store->fd >= 0)
		return 0;
	if (snprintf(path, sizeof(path), "%s/stele.XXXXXX", directory) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	store->fd = mkostemp(path, O_CLOEXEC);
	if (store->fd < 0)
		return -errno;
	unlink(path);
	return 0;
}

static int write_all(int fd, const uint8_t *data, size_t size, uint64_t at)
{
	while (size) {
		ssize_t done = pwrite(fd, data, size, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		data += done;
		size -= (size_t)done;
		at += (uint64_t)done;
	}
	return 0;
}

int store_flush(struct store *store)
{
	int ret = store->used ? write_all(store->fd, store->buffer, store->used,
					  store->size - store->used) :
				0;

	if (!ret)
		store->used = 0;
	return ret;
}

int store_append(struct store *store, const void *data, size_t size)
{
	int ret = store->fd < 0 ? create(store) : 0;

	if (!ret && size > BUFFER_SIZE - store->used)
		ret = store_flush(store);
	if (!ret && size > BUFFER_SIZE)
		ret = write_all(store->fd, data, size, store->size);
	if (ret)
		return ret;
	if (size && size <= BUFFER_SIZE) {
		memcpy(store->buffer + store->used, data, size);
		store->used += size;
	}
	store->size += size;
	return 0;
}

int64_t store_read(const struct store *store, uint64_t offset, void *data, size_t size)
{
	ssize_t got;

	do
		got = pread(store->fd, data, size, (off_t)offset);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

void store_truncate(struct store *store, uint64_t size)
{
	const uint64_t more = store->size - size;

	store->used = more < store->used ? store->used - (size_t)more : 0;
	store->size = size;
}

void store_release(struct store *store)
{
	if (store->fd >= 0)
		close(store->fd);
	free(store->buffer);
	*store = (struct store){.fd = -1};
}
