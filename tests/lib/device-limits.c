/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device-limits.c - limits are the kernel's, of a disk and of its partition
 *
 * On loop devices of both block sizes; their queues are changed through sysfs,
 * and what is read follows. A loop device detaches itself when its last
 * descriptor is closed, however this test ends.
 */
#include "tests/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/tap.h"

#define SIZE	   (8u << 20)
#define PART_START (1u << 20)
#define PART_SIZE  (4u << 20)

struct loop {
	int fd;
	int number;
	char path[64];
};

/* False: the kernel has no loop devices, or none of such blocks. */
static bool attach(struct loop *loop, uint32_t block)
{
	struct loop_config config = {
		.block_size = block,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_PARTSCAN,
	};
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	char backing[4096];
	int rc = -1;

	snprintf(backing, sizeof(backing), "%s/backing", test_tmpdir());
	config.fd = (unsigned int)open(backing, O_RDWR | O_CREAT | O_CLOEXEC,
				       0600);
	if (control < 0 || ftruncate((int)config.fd, SIZE))
		sysbail("no backing file");
	errno = 0;
	/* Somebody else may take the one that was free a moment ago. */
	for (int tries = 0; rc && errno != EINVAL && tries < 100; tries++) {
		loop->number = ioctl(control, LOOP_CTL_GET_FREE);
		snprintf(loop->path, sizeof(loop->path), "/dev/loop%d",
			 loop->number);
		loop->fd = open(loop->path, O_RDWR | O_CLOEXEC);
		if (loop->fd < 0)
			break;
		rc = ioctl(loop->fd, LOOP_CONFIGURE, &config);
		if (rc)
			close(loop->fd);
	}
	close((int)config.fd);
	close(control);
	unlink(backing);
	return !rc;
}

static bool attribute_path(const struct loop *loop, const char *name,
			   char *path, size_t size)
{
	snprintf(path, size, "/sys/block/loop%d/queue/%s", loop->number, name);
	return !access(path, R_OK);
}

static unsigned int attribute(const struct loop *loop, const char *name)
{
	unsigned int value = 0;
	char path[256];
	FILE *file;

	if (!attribute_path(loop, name, path, sizeof(path)))
		return 0;
	file = fopen(path, "r");
	if (!file || fscanf(file, "%u", &value) != 1)
		bail("cannot read '%s'", path);
	fclose(file);
	return value;
}

static bool set_attribute(const struct loop *loop, const char *name,
			  unsigned int value)
{
	char path[256];
	FILE *file;

	attribute_path(loop, name, path, sizeof(path));
	file = fopen(path, "w");
	if (!file)
		return false;
	fprintf(file, "%u", value);
	return !fclose(file) && attribute(loop, name) == value;
}

static struct stele_limits limits_of(const char *path)
{
	struct stele_limits limits = {0};
	struct stele_device *dev;
	int rc = stele_device_open_file(path, 0, "threads", NULL, &dev);

	is_int(0, rc, "opens '%s'", path);
	if (rc)
		return limits;
	limits = dev->limits;
	stele_device_close(dev);
	return limits;
}

/* Some tags are on their way back: up to 32, and a quarter at most. */
static unsigned int depth_of(unsigned int tags)
{
	unsigned int depth = tags > 128 ? tags - 32 : tags - tags / 4;

	return depth > STELE_QUEUE_DEPTH_MAX ? STELE_QUEUE_DEPTH_MAX : depth;
}

static void check_limits(const struct loop *loop, const char *path,
			 uint32_t block)
{
	unsigned int requests = attribute(loop, "nr_requests");
	unsigned int sectors = attribute(loop, "max_sectors_kb");
	struct stele_limits limits = limits_of(path);

	is_uint(block, limits.logical_block, "logical block");
	is_uint(attribute(loop, "dma_alignment") + 1, limits.memory_align,
		"alignment of memory");
	is_uint(depth_of(requests), limits.depth_max, "depth");
	ok(limits.transfer_max <= attribute(loop, "max_sectors_kb") << 10 &&
		   limits.transfer_max <=
			   (attribute(loop, "max_segments") - 1) * 4096 &&
		   limits.transfer_max >= block &&
		   limits.transfer_max % block == 0,
	   "transfers of %u bytes", limits.transfer_max);

	if (!set_attribute(loop, "max_sectors_kb", 100)) {
		skip_block(1, "max_sectors_kb cannot be set");
		return;
	}
	limits = limits_of(path);
	is_uint(100 << 10, limits.transfer_max, "transfers as told");
	set_attribute(loop, "max_sectors_kb", sectors);
	for (unsigned int tags = 4; tags <= 256; tags *= 8) {
		if (!set_attribute(loop, "nr_requests", tags)) {
			/* Above the queue's own depth some kernels refuse it. */
			if (tags <= requests)
				skip_block(1, "nr_requests cannot be set");
			break;
		}
		limits = limits_of(path);
		is_uint(depth_of(tags), limits.depth_max, "depth as told");
	}
	set_attribute(loop, "nr_requests", requests);
}

static void check_strict(const struct loop *loop, uint32_t block)
{
	struct stele_device *dev;
	uint64_t size = 0;
	char *data;

	if (stele_device_open_file(loop->path, STELE_DEVICE_WRITE, NULL, NULL,
				   &dev))
		bail("cannot open");
	data = test_data(dev, 16384, 1);
	is_int(0, stele_device_size(dev, &size), "size");
	is_uint(SIZE, size, "of the backing file");
	is_int(0, stele_device_write(dev, data, block, block), "a block");
	is_int(-EINVAL, stele_device_write(dev, data, block / 2, block),
	       "half a block's offset");
	is_int(-EINVAL, stele_device_write(dev, data, block, block / 2),
	       "half a block");
	is_int(-EINVAL, stele_device_read(dev, data + 1, 0, block),
	       "memory that a loop device would take");
	is_int(-ENODATA, stele_device_read(dev, data, SIZE - block, 8192),
	       "reads across the end");
	is_int(-ENOSPC, stele_device_write(dev, data, SIZE - block, 8192),
	       "writes across the end");
	is_int(-EOPNOTSUPP, stele_device_resize(dev, SIZE), "no resize");
	is_int(0, stele_device_discard(dev, 0, 65536), "discards");
	is_int(0, stele_device_flush(dev), "flushes");
	free(data);
	stele_device_close(dev);
}

static void check_exclusive(const struct loop *loop)
{
	unsigned int excl = STELE_DEVICE_WRITE | STELE_DEVICE_EXCL;
	struct stele_device *dev = NULL, *second;
	int read_only = 1, holder;

	holder = open(loop->path, O_RDONLY | O_EXCL | O_CLOEXEC);
	is_int(-EBUSY,
	       stele_device_open_file(loop->path, excl, NULL, NULL, &dev),
	       "a holder that knows no flock");
	close(holder);
	is_int(0, stele_device_open_file(loop->path, excl, NULL, NULL, &dev),
	       "exclusive");
	is_int(-EBUSY,
	       stele_device_open_file(loop->path, excl, NULL, NULL, &second),
	       "and not twice");
	stele_device_close(dev);

	ioctl(loop->fd, BLKROSET, &read_only);
	is_int(-EROFS,
	       stele_device_open_file(loop->path, STELE_DEVICE_WRITE, NULL,
				      NULL, &second),
	       "a device that is read-only");
	read_only = 0;
	ioctl(loop->fd, BLKROSET, &read_only);
}

static void check_partition(const struct loop *loop, uint32_t block)
{
	struct blkpg_partition part = {
		.start = PART_START, .length = PART_SIZE, .pno = 1};
	struct blkpg_ioctl_arg arg = {.op = BLKPG_ADD_PARTITION,
				      .datalen = sizeof(part),
				      .data = &part};
	char path[80];

	snprintf(path, sizeof(path), "%sp1", loop->path);
	if (ioctl(loop->fd, BLKPG, &arg) || access(path, R_OK)) {
		skip_block(1, "no partitions on loop devices");
		return;
	}
	check_limits(loop, path, block);
	arg.op = BLKPG_DEL_PARTITION;
	ioctl(loop->fd, BLKPG, &arg);
}

/* A block of an image could not be read from it. */
static void check_too_large(void)
{
	struct stele_device *dev;
	struct loop loop;

	if (!attach(&loop, 8192)) {
		/* Not a skip: Linux before 6.15 has none, also in CI. */
		diag("this kernel has no loop devices of 8192-byte blocks");
		return;
	}
	is_int(-EOPNOTSUPP,
	       stele_device_open_file(loop.path, 0, NULL, NULL, &dev),
	       "blocks of 8192 bytes are refused");
	close(loop.fd);
}

int main(void)
{
	static const uint32_t blocks[] = {512, 4096};

	if (geteuid())
		skip_all("not root");
	plan_lazy();
	for (size_t i = 0; i < 2; i++) {
		struct loop loop;

		if (!attach(&loop, blocks[i]))
			skip_all("no loop devices");
		diag("%s, blocks of %u bytes", loop.path, blocks[i]);
		check_limits(&loop, loop.path, blocks[i]);
		check_partition(&loop, blocks[i]);
		check_strict(&loop, blocks[i]);
		check_exclusive(&loop);
		close(loop.fd);
	}
	check_too_large();
	return done();
}
