/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring_tiers.c - rings in which somebody polls
 *
 * "iopoll": who reaps asks the device for completions, and no interrupt is taken. The
 * queue of the disk must be made for that (nvme.poll_queues=N): a ring that was set up
 * proves nothing. "hybrid" sleeps for half of the time that such a request is expected
 * to take. "sqpoll": a thread of the kernel looks for new requests, so that submitting
 * them takes no call; it costs a processor while it is awake.
 */
#include <sys/stat.h>

#include "lib/device/backends.h"
#include "lib/device/file/uring.h"
#include "lib/device/limits.h"

/* Linux 6.13; older headers have no name for it. */
#define SETUP_HYBRID_IOPOLL (1u << 17)

/* How long the thread of a ring looks for requests before it sleeps. */
#define SQPOLL_IDLE_MS 20

static const struct stele_uring_kind iopoll = {
	.name = "iopoll",
	.setup = IORING_SETUP_IOPOLL,
	.prepare = stele_uring_prepare,
};

static const struct stele_uring_kind hybrid = {
	.name = "hybrid",
	.setup = IORING_SETUP_IOPOLL | SETUP_HYBRID_IOPOLL,
	.prepare = stele_uring_prepare,
};

static const struct stele_uring_kind sqpoll = {
	.name = "sqpoll",
	.setup = IORING_SETUP_SQPOLL,
	.idle_ms = SQPOLL_IDLE_MS,
	.prepare = stele_uring_prepare,
};

/* Linux 6.1 polls for what interrupts complete, and says nothing. */
static const char *refuse_interrupts(struct stele_file *file)
{
	uint32_t polls = 1;
	struct stat st;

	if (fstat(file->base.fd, &st))
		return "cannot look at it";
	stele_limits_attribute(file->regular ? st.st_dev : st.st_rdev,
			       "io_poll", &polls);
	return polls ? NULL
		     : "its disk has no queues that are polled (of NVMe: "
		       "nvme.poll_queues)";
}

static int open_iopoll(struct stele_device *dev, unsigned int depth,
		       void *arena, size_t arena_size, struct stele_queue **out)
{
	return stele_uring_open((struct stele_file *)dev, &iopoll, dev->fd,
				depth, arena, arena_size, out);
}

static int open_hybrid(struct stele_device *dev, unsigned int depth,
		       void *arena, size_t arena_size, struct stele_queue **out)
{
	return stele_uring_open((struct stele_file *)dev, &hybrid, dev->fd,
				depth, arena, arena_size, out);
}

static int open_sqpoll(struct stele_device *dev, unsigned int depth,
		       void *arena, size_t arena_size, struct stele_queue **out)
{
	return stele_uring_open((struct stele_file *)dev, &sqpoll, dev->fd,
				depth, arena, arena_size, out);
}

const struct stele_file_backend stele_backend_iopoll = {
	.name = "iopoll",
	.reads_only = true,
	.refuse = refuse_interrupts,
	.queue_open = open_iopoll,
};

const struct stele_file_backend stele_backend_hybrid = {
	.name = "hybrid",
	.reads_only = true,
	.refuse = refuse_interrupts,
	.queue_open = open_hybrid,
};

const struct stele_file_backend stele_backend_sqpoll = {
	.name = "sqpoll",
	.queue_open = open_sqpoll,
};
