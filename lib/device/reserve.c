/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.c - blocks of a filesystem, allocated ahead and given back
 *
 * What is a hole before space is reserved is noted, and only that is ever punched
 * again: what was written or allocated by others stays. Also where allocation fails
 * half way, since a filesystem keeps what it got by then.
 */
#include "lib/device/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/device/stack.h"

#define EXTENTS 64u /* that the kernel is asked for at a time */

struct map {
	struct fiemap head;
	struct fiemap_extent extents[EXTENTS];
};

/* ---- what there is --------------------------------------------------------- */

static int note(struct stele_reserved *reserved, uint64_t from, uint64_t to)
{
	struct stele_hole *list;

	if (to <= from)
		return 0;
	list = reserved->list;
	if (!(reserved->count & (reserved->count - 1))) /* full: 0, 1, 2, 4... */
		list = reallocarray(list, 2 * reserved->count + 1,
				    sizeof(*list));
	if (!list)
		return -ENOMEM;
	reserved->list = list;
	list[reserved->count++] = (struct stele_hole){from, to - from};
	return 0;
}

static int get_map(int fd, uint64_t from, uint64_t to, struct map *map)
{
	memset(map, 0, sizeof(*map));
	map->head.fm_start = from;
	map->head.fm_length = to - from;
	map->head.fm_flags = FIEMAP_FLAG_SYNC;
	map->head.fm_extent_count = EXTENTS;
	return ioctl(fd, FS_IOC_FIEMAP, &map->head) ? -errno : 0;
}

static int note_holes(int fd, uint64_t at, uint64_t end,
		      struct stele_reserved *reserved)
{
	struct map map;
	int rc = 0;

	while (!rc && at < end) {
		const uint64_t before = at;

		rc = get_map(fd, at, end, &map);
		for (uint32_t i = 0; !rc && i < map.head.fm_mapped_extents; i++) {
			const struct fiemap_extent *e = &map.extents[i];

			rc = note(reserved, at,
				  e->fe_logical < end ? e->fe_logical : end);
			if (e->fe_logical + e->fe_length > at)
				at = e->fe_logical + e->fe_length;
		}
		if (!rc && map.head.fm_mapped_extents < EXTENTS)
			return note(reserved, at, end);
		if (!rc && at == before)
			rc = -EIO;
	}
	return rc;
}

/* The same where a filesystem tells data only; what it allocated ahead it forgets. */
static int note_zeros(int fd, uint64_t at, uint64_t end,
		      struct stele_reserved *reserved)
{
	int rc = 0;

	while (!rc && at < end) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA);

		if (data < 0 && errno != ENXIO)
			return -errno;
		if (data < 0 || (uint64_t)data > end)
			data = (off_t)end;
		rc = note(reserved, at, (uint64_t)data);
		data = (uint64_t)data < end ? lseek(fd, data, SEEK_HOLE) : data;
		if (data < 0)
			return -errno;
		at = (uint64_t)data;
	}
	return rc;
}

/* ---- reserve, give back ---------------------------------------------------- */

static int allocate(int fd, uint64_t offset, uint64_t size)
{
	int rc;

	do
		rc = fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)offset,
			       (off_t)size) ?
			     -errno :
			     0;
	while (rc == -EINTR);
	return rc;
}

int stele_reserve_look(struct stele_reserved *reserved, int fd, uint64_t offset,
		       uint64_t size)
{
	const size_t before = reserved->count;
	int rc = note_holes(fd, offset, offset + size, reserved);

	if (rc && rc != -ENOMEM) {
		reserved->count = before;
		rc = note_zeros(fd, offset, offset + size, reserved);
	}
	if (rc) /* then nothing is given back */
		reserved->count = before;
	return rc;
}

int stele_reserve(struct stele_reserved *reserved, int fd, uint64_t offset,
		  uint64_t size)
{
	int rc = stele_reserve_look(reserved, fd, offset, size);

	return rc == -ENOMEM ? rc : allocate(fd, offset, size);
}

/* Allocate what was not among the holes. */
static void allocate_again(int fd, const struct stele_reserved *reserved,
			   uint64_t at, uint64_t end)
{
	for (size_t i = 0; i < reserved->count && at < end; i++) {
		const struct stele_hole *hole = &reserved->list[i];

		if (hole->offset + hole->size <= at || hole->offset >= end)
			continue;
		if (hole->offset > at)
			allocate(fd, at, hole->offset - at);
		at = hole->offset + hole->size;
	}
	if (at < end)
		allocate(fd, at, end - at);
}

/*
 * Cut off what is behind `size`, but for what was allocated there. Not every
 * filesystem punches behind the end of a file, so the holes may be among it.
 */
static int cut(int fd, uint64_t size, const struct stele_reserved *reserved)
{
	struct map map;
	int rc = get_map(fd, size, INT64_MAX, &map);

	if (rc)
		map.head.fm_mapped_extents = 0;
	if (ftruncate(fd, (off_t)size))
		return -errno;
	for (uint32_t i = 0; i < map.head.fm_mapped_extents; i++) {
		const struct fiemap_extent *e = &map.extents[i];

		if (e->fe_logical >= size)
			allocate_again(fd, reserved, e->fe_logical,
				       e->fe_logical + e->fe_length);
	}
	return 0;
}

static int ask(struct stele_permit *permit)
{
	return permit ? permit->check(permit) : 0;
}

/* The end of the file is looked up last: it may be somebody else's work. */
static int cut_end(const struct stele_reserved *reserved, int fd, uint64_t size,
		   struct stele_permit *permit)
{
	uint64_t end = 0;
	struct stat st;
	int rc;

	for (size_t i = 0; i < reserved->count; i++)
		if (reserved->list[i].offset + reserved->list[i].size > end)
			end = reserved->list[i].offset + reserved->list[i].size;
	if (fstat(fd, &st))
		return -errno;
	if (end <= (uint64_t)st.st_size && size >= (uint64_t)st.st_size)
		return 0;
	rc = ask(permit);
	if (rc)
		return rc;
	return cut(fd, size < (uint64_t)st.st_size ? size :
						     (uint64_t)st.st_size,
		   reserved);
}

/* Of what is cut off afterwards nothing need be punched. */
static int punch(const struct stele_reserved *reserved, int fd, uint64_t from,
		 uint64_t size, struct stele_permit *permit)
{
	int failed = 0;

	for (size_t i = 0; i < reserved->count; i++) {
		const struct stele_hole *hole = &reserved->list[i];
		int rc;

		if (hole->offset < from || hole->offset >= size)
			continue;
		rc = ask(permit);
		if (rc)
			return rc;
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)hole->offset, (off_t)hole->size))
			failed = -errno;
	}
	return failed;
}

int stele_unreserve(struct stele_reserved *reserved, int fd, uint64_t from,
		    uint64_t size, struct stele_permit *permit)
{
	int rc = punch(reserved, fd, from, size, permit), cut_rc;
	size_t kept = 0;

	cut_rc = cut_end(reserved, fd, size, permit);
	for (size_t i = 0; i < reserved->count; i++)
		if (reserved->list[i].offset < from)
			reserved->list[kept++] = reserved->list[i];
	reserved->count = kept;
	return rc ? rc : cut_rc;
}

void stele_reserved_release(struct stele_reserved *reserved)
{
	free(reserved->list);
	memset(reserved, 0, sizeof(*reserved));
}

/* ---- limits of a filesystem -------------------------------------------------- */

/* Blocks that ext4 keeps for itself: they count as free, and nobody gets them. */
static uint64_t kept_blocks(int fd)
{
	char place[PATH_MAX], path[PATH_MAX + 32];
	unsigned long long count = 0;
	struct stat st;
	FILE *file;

	if (fstat(fd, &st) < 0 || stele_stack_place(st.st_dev, place))
		return 0;
	snprintf(path, sizeof(path), "/sys/fs/ext4%s/reserved_clusters", strrchr(place, '/'));
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%llu", &count) != 1)
		count = 0;
	fclose(file);
	return count;
}

/* Of what a filesystem keeps for root, root gets some. One without a size counts no blocks. */
int stele_reserve_free(int fd, uint64_t *bytes)
{
	uint64_t blocks, kept = kept_blocks(fd);
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0)
		return -errno;
	blocks = fs.f_bfree > kept ? fs.f_bfree - kept : 0; /* root's; f_bavail is without them */
	*bytes = !fs.f_blocks ? UINT64_MAX : (geteuid() ? fs.f_bavail : blocks) * fs.f_frsize;
	return 0;
}

/* The kernel refuses to seek to where its filesystem can have nothing. */
static bool can_be(int fd, uint64_t size)
{
	return lseek(fd, (off_t)size, SEEK_SET) >= 0 || errno != EINVAL;
}

static uint64_t size_max(int fd)
{
	uint64_t least = 0, most = INT64_MAX;
	struct rlimit limit;

	while (least < most) {
		const uint64_t middle = most - (most - least) / 2;

		if (can_be(fd, middle))
			least = middle;
		else
			most = middle - 1;
	}
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < least)
		least = limit.rlim_cur;
	return least;
}

int stele_reserve_check_size(int fd, uint64_t size, const struct stele_log *log)
{
	const int temporary = openat(fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	const int file = temporary >= 0 ? temporary : fd;
	uint64_t most = INT64_MAX;
	struct stat st;

	if (fstat(file, &st) == 0 && S_ISREG(st.st_mode))
		most = size_max(file);
	if (temporary >= 0)
		close(temporary);
	if (size <= most)
		return 0;
	stele_log_error(log, "a file of %" PRIu64 " bytes is needed, and files there have up to "
			"%" PRIu64, size, most);
	return -EFBIG;
}
