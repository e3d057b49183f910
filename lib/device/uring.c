/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring.c - queued transfers by io_uring, one ring per queue
 *
 * The only file that includes liburing.h. What a kernel, a container or a
 * limit forbids is found by trying: flags of the ring are dropped from the best
 * downwards, and registered descriptor, file and memory are used where the
 * kernel took them. Order of the end: nothing in flight, then unregister,
 * then unmap. A forked child may only unmap and close: what it would submit
 * would complete in its parent.
 */
#include "lib/device/backend.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* Registered memory: slabs as large as a huge page, no more than allowed. */
#define SLAB_SIZE_MIN  (2u << 20)
#define SLAB_COUNT_MAX (1u << 14)
/* A request that came back with EAGAIN that often may block in a worker. */
#define RETRIES_ASYNC 3

/* Linux 5.6, the first to have IORING_OP_READ; and no lost completions. */
#define FEATURES_NEEDED (IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS)

enum { SLAB_NEW, SLAB_REGISTERED, SLAB_REFUSED };

struct uring_queue {
	struct stele_queue base;
	struct io_uring ring;
	struct stele_file *file;
	bool file_registered;
	char *arena;
	size_t arena_size; /* 0: nothing of it can be registered */
	size_t slab_size;
	uint8_t *slabs; /* what became of each */
	bool refused;	/* told that one was */
	int event_fd; /* -1 until asked for; then the kernel signals it */
};

/* ---- ring ---------------------------------------------------------------- */

static int init_ring(struct io_uring *ring, unsigned int entries)
{
	static const unsigned int tiers[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
			IORING_SETUP_CLAMP,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
			IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP,
		IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP,
		IORING_SETUP_CLAMP,
	};
	struct io_uring_params params;
	int rc = -EINVAL;

	for (size_t i = 0; rc == -EINVAL && i < 4; i++) {
		memset(&params, 0, sizeof(params));
		params.flags = tiers[i];
		rc = io_uring_queue_init_params(entries, ring, &params);
	}
	if (rc)
		return rc;
	if ((params.features & FEATURES_NEEDED) == FEATURES_NEEDED &&
	    params.sq_entries >= entries)
		return 0;
	io_uring_queue_exit(ring);
	return -ENOSYS;
}

/* A sandbox may allow to make a ring and forbid to use it. */
int stele_uring_probe(void)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int rc;

	rc = init_ring(&ring, 1);
	if (rc)
		return rc;
	io_uring_prep_nop(io_uring_get_sqe(&ring));
	do {
		rc = io_uring_submit_and_wait(&ring, 1);
	} while (rc == -EINTR);
	if (rc >= 0)
		rc = io_uring_wait_cqe(&ring, &cqe);
	io_uring_queue_exit(&ring);
	return rc;
}

/* ---- registered memory --------------------------------------------------- */

/*
 * Only the table, with nothing in it: to register memory is to touch all of it,
 * which takes longer than anything else that a reader does to begin.
 */
static void register_arena(struct uring_queue *queue, char *arena, size_t size)
{
	size_t slab = SLAB_SIZE_MIN, count;
	int rc;

	if (!arena || !size)
		return;
	while (size / slab >= SLAB_COUNT_MAX)
		slab <<= 1;
	count = size / slab + (size % slab != 0);
	queue->slabs = calloc(count, sizeof(*queue->slabs));
	if (!queue->slabs)
		return;
	rc = io_uring_register_buffers_sparse(&queue->ring,
					      (unsigned int)count);
	if (rc) {
		stele_log_info(&queue->file->base.log,
			       "cannot register memory: %s", strerror(-rc));
		return;
	}
	queue->arena = arena;
	queue->arena_size = size;
	queue->slab_size = slab;
}

/* Its first transfer: from now on, or never again. */
static void register_slab(struct uring_queue *queue, size_t index)
{
	size_t start = index * queue->slab_size;
	size_t left = queue->arena_size - start;
	struct iovec iov = {
		.iov_base = queue->arena + start,
		.iov_len = left < queue->slab_size ? left : queue->slab_size,
	};
	int rc = io_uring_register_buffers_update_tag(
		&queue->ring, (unsigned int)index, &iov, NULL, 1);

	queue->slabs[index] = rc == 1 ? SLAB_REGISTERED : SLAB_REFUSED;
	if (rc == 1 || queue->refused)
		return;
	queue->refused = true;
	stele_log_info(&queue->file->base.log,
		       "cannot register %zu bytes of memory: %s", iov.iov_len,
		       strerror(-rc));
}

/* The slab that holds all of this memory, or -1. */
static int find_slab(struct uring_queue *queue, const void *data, size_t size)
{
	size_t start = (uintptr_t)data - (uintptr_t)queue->arena;
	size_t index;

	if ((uintptr_t)data < (uintptr_t)queue->arena ||
	    start >= queue->arena_size || size > queue->arena_size - start ||
	    start / queue->slab_size != (start + size - 1) / queue->slab_size)
		return -1;
	index = start / queue->slab_size;
	if (queue->slabs[index] == SLAB_NEW)
		register_slab(queue, index);
	return queue->slabs[index] == SLAB_REGISTERED ? (int)index : -1;
}

/* ---- operations ---------------------------------------------------------- */

static void prepare_read(struct uring_queue *queue, struct io_uring_sqe *sqe,
			 int fd, void *data, unsigned int size, uint64_t offset)
{
	int slab = find_slab(queue, data, size);

	if (slab >= 0)
		io_uring_prep_read_fixed(sqe, fd, data, size, offset, slab);
	else
		io_uring_prep_read(sqe, fd, data, size, offset);
}

static void prepare_write(struct uring_queue *queue, struct io_uring_sqe *sqe,
			  int fd, void *data, unsigned int size,
			  uint64_t offset)
{
	int slab = find_slab(queue, data, size);

	if (slab >= 0)
		io_uring_prep_write_fixed(sqe, fd, data, size, offset, slab);
	else
		io_uring_prep_write(sqe, fd, data, size, offset);
}

/*
 * What the ring is not asked (a discard; a write that has no room) is done at
 * once: the result waits in request->status, and a NOP brings it back.
 * Return: whether that is so.
 */
static bool answer_here(struct uring_queue *queue,
			struct stele_request *request, unsigned int *size)
{
	struct stele_device *dev = &queue->file->base;
	ssize_t res;

	switch (request->op) {
	case STELE_OP_WRITE:
		res = stele_file_room(queue->file,
				      request->offset + request->done, *size);
		if (res >= 0) {
			*size = (unsigned int)res;
			return false;
		}
		break;
	case STELE_OP_DISCARD:
		res = dev->ops->transfer(dev, STELE_OP_DISCARD, NULL,
					 request->offset, *size);
		break;
	default:
		return false;
	}
	request->status = (int)res;
	return true;
}

static void prepare(struct uring_queue *queue, struct io_uring_sqe *sqe,
		    struct stele_request *request)
{
	int fd = queue->file_registered ? 0 : queue->file->base.fd;
	uint64_t offset = request->offset + request->done;
	unsigned int size = request->size - request->done;
	char *data = request->data;

	request->status = 0;
	if (answer_here(queue, request, &size)) {
		io_uring_prep_nop(sqe);
		return;
	}
	if (request->op == STELE_OP_FLUSH)
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
	else if (request->op == STELE_OP_READ)
		prepare_read(queue, sqe, fd, data + request->done, size,
			     offset);
	else
		prepare_write(queue, sqe, fd, data + request->done, size,
			      offset);
	if (queue->file_registered)
		sqe->flags |= IOSQE_FIXED_FILE;
	if (request->retries >= RETRIES_ASYNC)
		sqe->flags |= IOSQE_ASYNC;
}

/* There is room: the ring has as many entries as the queue is deep. */
static int uring_start(struct stele_queue *base, struct stele_request *request)
{
	struct uring_queue *queue = (struct uring_queue *)base;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&queue->ring);

	if (!sqe)
		return -EBUSY;
	prepare(queue, sqe, request);
	io_uring_sqe_set_data(sqe, request);
	return 0;
}

/* Everything submitted, and min_wait completions in the ring. */
static int push(struct io_uring *ring, unsigned int min_wait)
{
	unsigned int failures = 0;
	int rc;

	while (io_uring_sq_ready(ring) || io_uring_cq_ready(ring) < min_wait) {
		if (io_uring_cq_ready(ring) < min_wait)
			rc = io_uring_submit_and_wait(ring, min_wait);
		else
			rc = io_uring_submit(ring);
		if (rc >= 0 || rc == -EINTR)
			continue;
		if (rc != -EAGAIN || ++failures > STELE_RETRY_MAX)
			return rc;
	}
	return 0;
}

/*
 * Readable just when something may be left. The kernel sets the flag or posts
 * the completion before it signals: what comes after the read is not lost.
 */
static void update_event(struct uring_queue *queue)
{
	const unsigned int *flags = queue->ring.sq.kflags;
	eventfd_t events;

	if (queue->event_fd < 0)
		return;
	eventfd_read(queue->event_fd, &events);
	if (io_uring_cq_ready(&queue->ring) ||
	    (IO_URING_READ_ONCE(*flags) &
	     (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)))
		eventfd_write(queue->event_fd, 1);
}

static int uring_wait(struct stele_queue *base, unsigned int min_wait,
		      struct stele_request **done, ssize_t *res,
		      unsigned int max)
{
	struct uring_queue *queue = (struct uring_queue *)base;
	struct io_uring_cqe *cqe;
	unsigned int count = 0;
	int rc;

	rc = push(&queue->ring, min_wait);
	if (rc)
		return rc;
	while (count < max && !io_uring_peek_cqe(&queue->ring, &cqe)) {
		done[count] = io_uring_cqe_get_data(cqe);
		res[count] = done[count]->status ? done[count]->status
						 : cqe->res;
		io_uring_cqe_seen(&queue->ring, cqe);
		count++;
	}
	update_event(queue);
	return (int)count;
}

/*
 * Not the ring: while completions wait for us to come and post them
 * (DEFER_TASKRUN), it polls readable, but who sleeps in poll or epoll may
 * never be woken.
 */
static int uring_event_fd(struct stele_queue *base)
{
	struct uring_queue *queue = (struct uring_queue *)base;
	int fd, rc;

	if (queue->event_fd >= 0)
		return queue->event_fd;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	rc = io_uring_register_eventfd(&queue->ring, fd);
	if (rc) {
		close(fd);
		return rc;
	}
	queue->event_fd = fd;
	update_event(queue);
	return fd;
}

/* io_uring_queue_exit() would ask the kernel to unregister. */
static void abandon_ring(struct io_uring *ring)
{
	munmap(ring->sq.sqes, ring->sq.ring_entries * sizeof(*ring->sq.sqes));
	munmap(ring->sq.ring_ptr, ring->sq.ring_sz);
	if (ring->cq.ring_ptr != ring->sq.ring_ptr)
		munmap(ring->cq.ring_ptr, ring->cq.ring_sz);
	close(ring->ring_fd);
}

static void uring_close(struct stele_queue *base, bool forked)
{
	struct uring_queue *queue = (struct uring_queue *)base;

	if (forked) {
		abandon_ring(&queue->ring);
	} else {
		if (queue->arena_size)
			io_uring_unregister_buffers(&queue->ring);
		if (queue->file_registered)
			io_uring_unregister_files(&queue->ring);
		io_uring_queue_exit(&queue->ring);
	}
	if (queue->event_fd >= 0)
		close(queue->event_fd);
	free(queue->slabs);
	free(queue);
}

static const struct stele_queue_ops uring_queue_ops = {
	.start = uring_start,
	.wait = uring_wait,
	.event_fd = uring_event_fd,
	.close = uring_close,
};

int stele_uring_open_queue(struct stele_device *dev, unsigned int depth,
			   void *arena, size_t arena_size,
			   struct stele_queue **out)
{
	struct uring_queue *queue = calloc(1, sizeof(*queue));
	int rc;

	if (!queue)
		return -ENOMEM;
	rc = init_ring(&queue->ring, depth);
	if (rc) {
		free(queue);
		return rc;
	}
	queue->base.ops = &uring_queue_ops;
	queue->file = (struct stele_file *)dev;
	queue->event_fd = -1;
	io_uring_register_ring_fd(&queue->ring);
	queue->file_registered =
		!io_uring_register_files(&queue->ring, &dev->fd, 1);
	register_arena(queue, arena, arena_size);
	*out = &queue->base;
	return 0;
}
