/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvme.c - reads that go to an NVMe namespace as commands of its own
 *
 * "passthrough" puts NVMe reads into the ring, for the generic character device of a
 * namespace (/dev/ngXnY for /dev/nvmeXnY): no block layer, no page cache. Only of a
 * whole namespace that one controller serves, with blocks that carry no metadata: what
 * lies above it (partitions, device-mapper, multipath) is not there for a command.
 * A status of NVMe comes as a positive result; it means what the block layer would
 * have made of it. Transfers that block go through the block device, as all else does.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/nvme_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "format/checked.h"
#include "lib/device/backends.h"
#include "lib/device/file/uring.h"
#include "lib/device/stack.h"

#ifndef NVME_URING_CMD_IO /* Linux 5.19 */
struct nvme_uring_cmd {
	__u8 opcode, flags;
	__u16 rsvd1;
	__u32 nsid, cdw2, cdw3;
	__u64 metadata, addr;
	__u32 metadata_len, data_len;
	__u32 cdw10, cdw11, cdw12, cdw13, cdw14, cdw15;
	__u32 timeout_ms, rsvd2;
};
#define NVME_URING_CMD_IO _IOWR('N', 0x80, struct nvme_uring_cmd)
#endif

#define OPCODE_READ     0x02
#define OPCODE_IDENTIFY 0x06   /* an admin command; cdw10 0: of a namespace */
#define BLOCKS_MAX      65536u /* of one command */
STELE_CHECK_SIZE(struct nvme_uring_cmd, 72);
_Static_assert(STELE_FILE_TRANSFER_SIZE_MAX / 512 <= BLOCKS_MAX,
	       "a transfer is one command");

struct stele_nvme {
	int fd; /* of the character device */
	uint32_t nsid;
	unsigned int shift; /* blocks are 1 << shift bytes */
};

/* ---- commands -------------------------------------------------------------- */

static void prepare(struct stele_uring *queue, struct io_uring_sqe *sqe,
		    struct stele_request *request)
{
	const struct stele_nvme *nvme = queue->file->nvme;
	uint64_t block = (request->offset + request->done) >> nvme->shift;
	uint32_t size = request->size - request->done;
	char *data = (char *)request->data + request->done;
	int entry = stele_uring_memory_find(queue, data, size);
	struct nvme_uring_cmd *cmd = (struct nvme_uring_cmd *)sqe->cmd;

	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = queue->fd;
	sqe->flags = queue->fd_registered ? IOSQE_FIXED_FILE : 0;
	sqe->cmd_op = NVME_URING_CMD_IO;
	if (entry >= 0) {
		sqe->uring_cmd_flags = IORING_URING_CMD_FIXED;
		sqe->buf_index = (__u16)entry;
		queue->base.stats.registered++;
	}
	cmd->opcode = OPCODE_READ;
	cmd->nsid = nvme->nsid;
	cmd->addr = (uintptr_t)data;
	cmd->data_len = size;
	cmd->cdw10 = (uint32_t)block;
	cmd->cdw11 = (uint32_t)(block >> 32);
	cmd->cdw12 = (size >> nvme->shift) - 1;
}

/* As the block layer has it, errno of a completed command. */
static int error_of(unsigned int status)
{
	static const struct {
		uint16_t status;
		int error;
	} known[] = {
		{0x021, EREMOTEIO},  /* command interrupted */
		{0x001, EOPNOTSUPP}, /* invalid opcode */
		{0x002, EOPNOTSUPP}, /* invalid field */
		{0x00b, EOPNOTSUPP}, /* invalid namespace */
		{0x082, EREMOTEIO},  /* namespace not ready */
		{0x083, EBADE},      /* reservation conflict */
		{0x181, EILSEQ},     /* invalid protection information */
		{0x281, ENODATA},    /* unrecovered read error */
		{0x282, EILSEQ},     /* guard, application, reference tag */
		{0x283, EILSEQ},     {0x284, EILSEQ},
		{0x286, ENODATA}, /* access denied */
		{0x287, ENODATA}, /* deallocated or unwritten block */
		{0x370, ENOLINK}, /* host path error */
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].status == (status & 0x7ff))
			return known[i].error;
	return EIO;
}

/* A command is done or failed, never short. Beyond the end there is nothing to read. */
static ssize_t result(const struct stele_request *request, int res)
{
	enum { LBA_OUT_OF_RANGE = 0x080 };

	if (res < 0)
		return res;
	if ((res & 0x7ff) == LBA_OUT_OF_RANGE)
		return 0;
	if (res)
		return -error_of((unsigned int)res);
	return request->size - request->done;
}

static const struct stele_uring_kind kind = {
	.name = "passthrough",
	.setup = IORING_SETUP_SQE128 | IORING_SETUP_CQE32,
	.prepare = prepare,
	.result = result,
};

static int open_queue(struct stele_device *dev, unsigned int depth, void *arena,
		      size_t arena_size, struct stele_queue **out)
{
	struct stele_file *file = (struct stele_file *)dev;

	return stele_uring_open(file, &kind, file->nvme->fd, depth, arena,
				arena_size, out);
}

/* ---- the namespace --------------------------------------------------------- */

/* "nvme0n1" of a disk that is a whole namespace, and its place in sysfs. */
static const char *find_name(dev_t dev, char place[PATH_MAX], const char **name)
{
	char *base, rest;
	unsigned int controller, ns;

	if (stele_stack_place(dev, place))
		return "sysfs does not show it";
	base = strrchr(place, '/') + 1;
	*name = base;
	if (strstr(place, "/nvme-subsystem/"))
		return "it is a multipath device of NVMe";
	if (sscanf(base, "nvme%un%u%c", &controller, &ns, &rest) == 2)
		return NULL;
	return sscanf(base, "nvme%un%up%c", &controller, &ns, &rest) == 3
		       ? "it is a partition, and only a whole namespace will do"
		       : "it is no namespace of NVMe";
}

/* The character device of that namespace, as sysfs knows it. */
static int open_generic(const char *name)
{
	unsigned int wanted_major, wanted_minor;
	char path[PATH_MAX];
	struct stat st;
	FILE *file;
	int fd, n;

	snprintf(path, sizeof(path), "/sys/class/nvme-generic/ng%s/dev",
		 name + strlen("nvme"));
	file = fopen(path, "re");
	if (!file)
		return -errno;
	n = fscanf(file, "%u:%u", &wanted_major, &wanted_minor);
	fclose(file);
	snprintf(path, sizeof(path), "/dev/ng%s", name + strlen("nvme"));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (n == 2 && !fstat(fd, &st) && S_ISCHR(st.st_mode) &&
	    st.st_rdev == makedev(wanted_major, wanted_minor))
		return fd;
	close(fd);
	return -ENODEV;
}

/* Its blocks: of the size that the block device has, and nothing beside data. */
static const char *check_blocks(struct stele_nvme *nvme, int block_fd)
{
	enum { SIZE = 4096, FLBAS = 26, FORMATS = 128, FORMAT_SIZE = 4 };
	struct nvme_admin_cmd identify = {.opcode = OPCODE_IDENTIFY,
					  .nsid = nvme->nsid,
					  .data_len = SIZE};
	const char *why = NULL;
	uint8_t *data, *format;
	int block;

	if (posix_memalign((void **)&data, SIZE, SIZE))
		return "no memory";
	memset(data, 0, SIZE);
	identify.addr = (uintptr_t)data;
	if (ioctl(nvme->fd, NVME_IOCTL_ADMIN_CMD, &identify) ||
	    ioctl(block_fd, BLKSSZGET, &block)) {
		why = "its namespace cannot be identified";
	} else {
		format = data + FORMATS +
			 FORMAT_SIZE * ((data[FLBAS] & 0xf) |
					(data[FLBAS] >> 1 & 0x30));
		nvme->shift = format[2];
		if (format[0] || format[1])
			why = "its blocks carry metadata";
		else if (nvme->shift > 16 || 1 << nvme->shift != block)
			why = "its blocks are not those of the block device";
	}
	free(data);
	return why;
}

static const char *refuse(struct stele_file *file)
{
	struct stele_nvme *nvme = NULL;
	char place[PATH_MAX];
	const char *name, *why;
	struct stat st;
	int fd, nsid;

	if (file->regular || fstat(file->base.fd, &st))
		return "it is no namespace of NVMe";
	why = find_name(st.st_rdev, place, &name);
	if (why)
		return why;
	fd = open_generic(name);
	if (fd < 0)
		return "the character device of its namespace (/dev/ng*) "
		       "cannot "
		       "be opened";
	nsid = ioctl(fd, NVME_IOCTL_ID);
	if (nsid <= 0 || nsid != ioctl(file->base.fd, NVME_IOCTL_ID))
		why = "it is not the namespace of its character device";
	else if (!(nvme = calloc(1, sizeof(*nvme))))
		why = "no memory";
	if (why) {
		close(fd);
		return why;
	}
	nvme->fd = fd;
	nvme->nsid = (uint32_t)nsid;
	file->nvme = nvme;
	return check_blocks(nvme, file->base.fd);
}

void stele_nvme_close(struct stele_nvme *nvme)
{
	if (nvme)
		close(nvme->fd);
	free(nvme);
}

const struct stele_file_backend stele_backend_passthrough = {
	.name = "passthrough",
	.reads_only = true,
	.refuse = refuse,
	.queue_open = open_queue,
};
