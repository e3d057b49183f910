/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spill.c - memory first, then an unlinked file
 */
#include "lib/segment/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/checked.h"
#include "lib/base/temp.h"

#define PAGE_SIZE  UINT64_C(4096)
#define GROWTH_MIN (UINT64_C(64) << 10)

void stele_spill_init(struct stele_spill *spill, struct stele_spill_pool *pool)
{
	*spill = (struct stele_spill){.pool = pool, .fd = -1};
}

/* posix_fallocate() returns its error, and writes where it must. */
static int reserve(int fd, uint64_t offset, uint64_t size)
{
	int ret;

	do
		ret = posix_fallocate(fd, (off_t)offset, (off_t)size);
	while (ret == EINTR);
	return -ret;
}

static int map_file(struct stele_spill *spill, uint64_t mapped)
{
	int ret = reserve(spill->fd, spill->mapped, mapped - spill->mapped);
	void *data;

	if (ret < 0)
		return ret;
	if (spill->data)
		data = mremap(spill->data, spill->mapped, mapped,
			      MREMAP_MAYMOVE);
	else
		data = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED,
			    spill->fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	spill->pool->spilled_size += mapped - spill->mapped;
	spill->data = data;
	spill->mapped = mapped;
	return 0;
}

static int map_memory(struct stele_spill *spill, uint64_t mapped)
{
	void *data;

	if (spill->data)
		data = mremap(spill->data, spill->mapped, mapped,
			      MREMAP_MAYMOVE);
	else
		data = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED)
		return -errno;
	spill->pool->memory_used += mapped - spill->mapped;
	spill->data = data;
	spill->mapped = mapped;
	return 0;
}

/* From memory to a file, which is mapped afresh. */
static int move_to_file(struct stele_spill *spill, uint64_t mapped)
{
	struct stele_spill file = {.pool = spill->pool};
	int ret;

	file.fd = stele_temp_open(stele_temp_directory(spill->pool->directory));
	if (file.fd < 0)
		return file.fd;
	ret = map_file(&file, mapped);
	if (ret < 0) {
		close(file.fd);
		return ret;
	}
	if (spill->size)
		memcpy(file.data, spill->data, spill->size);
	file.size = spill->size;
	stele_spill_release(spill);
	*spill = file;
	spill->pool->spilled_count++;
	return 0;
}

/* Grow by a quarter at least: appending stays linear, and little is unused. */
static bool mapping_size(const struct stele_spill *spill, uint64_t size,
			 uint64_t *mapped)
{
	uint64_t least = spill->mapped + spill->mapped / 4;

	if (spill->mapped && least < spill->mapped + GROWTH_MIN)
		least = spill->mapped + GROWTH_MIN;
	if (size < least)
		size = least;
	return checked_round_up(size, PAGE_SIZE, mapped) &&
	       *mapped <= INT64_MAX;
}

static int log_full(const struct stele_spill_pool *pool, int error)
{
	stele_log_error(pool->log, "cannot write a temporary file in '%s': %s",
			stele_temp_directory(pool->directory),
			strerror(-error));
	return error;
}

int stele_spill_grow(struct stele_spill *spill, uint64_t size)
{
	struct stele_spill_pool *pool = spill->pool;
	uint64_t mapped;
	int ret = 0;

	if (size <= spill->size)
		return 0;
	if (size > spill->mapped) {
		if (!mapping_size(spill, size, &mapped))
			return -ENOMEM;
		if (spill->fd >= 0)
			ret = map_file(spill, mapped);
		else if (pool->memory_used + (mapped - spill->mapped) <=
			 pool->budget)
			ret = map_memory(spill, mapped);
		else
			ret = move_to_file(spill, mapped);
	}
	if (ret < 0)
		return ret == -ENOMEM ? ret : log_full(pool, ret);
	spill->size = size;
	return 0;
}

void stele_spill_release(struct stele_spill *spill)
{
	struct stele_spill_pool *pool = spill->pool;

	if (!pool)
		return;
	if (spill->data)
		munmap(spill->data, spill->mapped);
	if (spill->fd >= 0) {
		pool->spilled_size -= spill->mapped;
		close(spill->fd);
	} else {
		pool->memory_used -= spill->mapped;
	}
	stele_spill_init(spill, pool);
}
