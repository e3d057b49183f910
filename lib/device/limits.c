/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c - alignment and sizes of transfers, read from the kernel
 *
 * A transfer larger than the queue's max_sectors_kb, or of more segments than
 * max_segments, would be split below us; io_uring then hands it to a worker
 * thread, which costs more than the transfer. Memory that is not physically
 * contiguous takes a segment per page, and one more when it starts within
 * one. A regular file obeys the queue of the device its filesystem lies on,
 * where there is one.
 */
#include "lib/device/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/checked.h"
#include "lib/device/stack.h"

#define BLOCK_MIN	512u
#define BLOCK_MAX	4096u /* an image's blocks: it is read in these */
#define ALIGN_MAX	65536u
#define PAGE_BYTES	4096u
#define FILE_ALIGN_SAFE 4096u
#define DEPTH_DEFAULT	128u
#define TAGS_RETURNING	32u

bool stele_limits_attribute(dev_t dev, const char *name, uint32_t *value)
{
	char attribute[64], text[32], *end;
	unsigned long long number;

	snprintf(attribute, sizeof(attribute), "queue/%s", name);
	if (!stele_stack_disk_text(dev, attribute, text, sizeof(text)))
		return false;
	number = strtoull(text, &end, 10);
	if (end == text)
		return false;
	*value = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
	return true;
}

/* Alignment of direct I/O as statx tells it, since Linux 6.1; or zeros. */
static void read_dioalign(int fd, uint32_t *memory, uint32_t *offset)
{
	*memory = 0;
	*offset = 0;
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) &&
	    (stx.stx_mask & STATX_DIOALIGN)) {
		*memory = stx.stx_dio_mem_align;
		*offset = stx.stx_dio_offset_align;
	}
#else
	(void)fd;
#endif
}

/*
 * A tag is free again a moment after its request is seen to be complete; those of a batch
 * (of TAG_COMP_BATCH_SIZE, in the kernel) all together. Whoever has one request in
 * flight for each tag finds none now and then, and is handed to a worker thread.
 */
static uint32_t depth_of(uint32_t tags)
{
	return tags - (tags / 4 < TAGS_RETURNING ? tags / 4 : TAGS_RETURNING);
}

/* What a queue may be asked at once; 0 where nothing is told. */
static void read_queue(dev_t dev, struct stele_limits *out)
{
	uint32_t kilobytes, segments, requests, max = STELE_FILE_TRANSFER_SIZE_MAX;

	if (stele_limits_attribute(dev, "max_sectors_kb", &kilobytes) &&
	    kilobytes && kilobytes < max >> 10)
		max = kilobytes << 10;
	if (stele_limits_attribute(dev, "max_segments", &segments) &&
	    segments && segments - 1 < max / PAGE_BYTES)
		max = segments > 1 ? (segments - 1) * PAGE_BYTES : PAGE_BYTES;
	if (!stele_limits_attribute(dev, "nr_requests", &requests) || !requests)
		requests = DEPTH_DEFAULT;
	requests = depth_of(requests);
	if (requests > STELE_QUEUE_DEPTH_MAX)
		requests = STELE_QUEUE_DEPTH_MAX;
	out->transfer_max = max;
	out->depth_max = requests;
}

static int read_block_device(int fd, dev_t dev, struct stele_limits *out)
{
	uint32_t memory, offset, queue, mask;
	int block;

	if (ioctl(fd, BLKSSZGET, &block))
		return -errno;
	out->logical_block = (uint32_t)block;
	if (stele_limits_attribute(dev, "logical_block_size", &queue) &&
	    queue > out->logical_block)
		out->logical_block = queue;
	read_dioalign(fd, &memory, &offset);
	if (offset > out->logical_block)
		out->logical_block = offset;
	if (!memory && stele_limits_attribute(dev, "dma_alignment", &mask))
		memory = mask + 1;
	out->memory_align = memory ? memory : out->logical_block;
	read_queue(dev, out);
	return 0;
}

/* Does a file whose filesystem tells nothing take 512 bytes at a time? */
static bool takes_small_blocks(int fd)
{
	void *data;
	bool taken;

	if (posix_memalign(&data, PAGE_BYTES, PAGE_BYTES))
		return false;
	taken = pread(fd, (char *)data + BLOCK_MIN, BLOCK_MIN, 0) > 0;
	free(data);
	return taken;
}

static void read_regular(int fd, dev_t dev, bool direct,
			 struct stele_limits *out)
{
	out->logical_block = BLOCK_MIN;
	out->memory_align = BLOCK_MIN;
	if (direct)
		read_dioalign(fd, &out->memory_align, &out->logical_block);
	if (!out->logical_block || !out->memory_align) {
		uint32_t align = takes_small_blocks(fd) ? BLOCK_MIN
							: FILE_ALIGN_SAFE;

		out->logical_block = align;
		out->memory_align = align;
	}
	if (out->logical_block < BLOCK_MIN)
		out->logical_block = BLOCK_MIN;
	read_queue(dev, out);
}

int stele_limits_read(int fd, bool direct, struct stele_limits *out)
{
	uint32_t granule;
	struct stat st;
	int rc = 0;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISBLK(st.st_mode))
		rc = read_block_device(fd, st.st_rdev, out);
	else
		read_regular(fd, st.st_dev, direct, out);
	if (rc)
		return rc;
	if (!is_power_of_two(out->logical_block) ||
	    out->logical_block < BLOCK_MIN || out->logical_block > BLOCK_MAX ||
	    !is_power_of_two(out->memory_align) ||
	    out->memory_align > ALIGN_MAX)
		return -EOPNOTSUPP;
	granule = out->logical_block > out->memory_align ? out->logical_block
							 : out->memory_align;
	out->transfer_max = (uint32_t)round_down(out->transfer_max, granule);
	if (!out->transfer_max)
		out->transfer_max = granule;
	return 0;
}
