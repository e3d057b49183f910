/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uring.c - queued transfers by io_uring, one ring per queue
 *
 * Registered descriptor, ring and memory are used where the kernel took them. Order of
 * the end: nothing in flight, then unregister, then unmap. A forked child may only
 * unmap and close: what it would submit would complete in its parent. A ring that the
 * kernel does not serve any more while transfers are in flight, or that is another
 * thread's, is left as it is, with all that belongs to it: the kernel may still write
 * there. Of a group, that is the ring of them all.
 */
#include "lib/device/file/uring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Of a ring that queues share: how deep they can be together. */
#define SHARED_DEPTH 2048u
/* A request that came back with EAGAIN that often may block in a worker. */
#define RETRIES_ASYNC 3

static const struct stele_uring_kind plain = {
	.name = STELE_BACKEND_URING,
	.prepare = stele_uring_prepare,
};

/* A sandbox may allow to make a ring and forbid to use it. */
int stele_uring_probe(void)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int rc;

	rc = stele_uring_ring_init(&ring, 1, &plain);
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

/* ---- operations ---------------------------------------------------------- */

/*
 * What the ring is not asked (a discard; a write that has no room; to read what is in
 * memory, which it would hand to a worker thread, as tmpfs does not promise that it
 * never waits) is done at once: the result waits in request->status, and a NOP brings
 * it back. Return: whether that is so.
 */
static bool answer_here(struct stele_uring *queue,
			struct stele_request *request, unsigned int *size)
{
	struct stele_device *dev = &queue->file->base;
	ssize_t res;

	switch (request->op) {
	case STELE_OP_READ:
		if (!queue->file->in_memory || queue->kind != &plain)
			return false;
		res = dev->ops->transfer(dev, STELE_OP_READ,
					 (char *)request->data + request->done,
					 request->offset + request->done, *size);
		break;
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

/* The opcodes for registered memory are those for any memory, and one more thing. */
static void prepare_transfer(struct stele_uring *queue,
			     struct io_uring_sqe *sqe, bool write, char *data,
			     unsigned int size, uint64_t offset)
{
	int entry = stele_uring_memory_find(queue, data, size);
	int op = write ? IORING_OP_WRITE : IORING_OP_READ;

	if (entry >= 0)
		op = write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
	io_uring_prep_rw(op, sqe, queue->fd, data, size, offset);
	if (entry < 0)
		return;
	sqe->buf_index = (__u16)entry;
	queue->base.stats.registered++;
}

void stele_uring_prepare(struct stele_uring *queue, struct io_uring_sqe *sqe,
			 struct stele_request *request)
{
	uint64_t offset = request->offset + request->done;
	unsigned int size = request->size - request->done;
	char *data = request->data;

	if (answer_here(queue, request, &size)) {
		io_uring_prep_nop(sqe);
		return;
	}
	if (request->op == STELE_OP_FLUSH)
		io_uring_prep_fsync(sqe, queue->fd, IORING_FSYNC_DATASYNC);
	else
		prepare_transfer(queue, sqe, request->op == STELE_OP_WRITE,
				 data + request->done, size, offset);
	if (queue->fd_registered)
		sqe->flags |= IOSQE_FIXED_FILE;
}

/*
 * There is room: the ring has as many entries as the queue is deep. (With a thread
 * of the kernel there will be, once it has said that it took what is complete.)
 */
static struct io_uring_sqe *get_entry(struct stele_uring *queue)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&queue->ring);

	if (sqe || !(queue->ring.flags & IORING_SETUP_SQPOLL))
		return sqe;
	if (io_uring_submit(&queue->ring) < 0 ||
	    io_uring_sqring_wait(&queue->ring) < 0)
		return NULL;
	return io_uring_get_sqe(&queue->ring);
}

static int uring_start(struct stele_queue *base, struct stele_request *request)
{
	struct stele_uring *queue = (struct stele_uring *)base;
	struct stele_uring *host = queue->host;
	struct io_uring_sqe *sqe = get_entry(host);

	if (!sqe)
		return -EBUSY;
	request->status = 0;
	request->queue = base;
	queue->kind->prepare(queue, sqe, request);
	if (request->retries >= RETRIES_ASYNC &&
	    !(host->ring.flags & IORING_SETUP_IOPOLL))
		sqe->flags |= IOSQE_ASYNC;
	io_uring_sqe_set_data(sqe, request);
	host->in_ring++;
	return 0;
}

/* ---- completions --------------------------------------------------------- */

/*
 * Readable just when something may be left. The kernel sets the flag or posts
 * the completion before it signals: what comes after the read is not lost.
 */
static void update_event(struct stele_uring *host)
{
	eventfd_t events;

	if (host->event_fd < 0)
		return;
	eventfd_read(host->event_fd, &events);
	if (host->parked_count || stele_uring_ring_ready(&host->ring))
		eventfd_write(host->event_fd, 1);
}

static ssize_t result_of(const struct stele_uring *queue,
			 const struct stele_request *request, int res)
{
	if (request->status)
		return request->status;
	return queue->kind->result ? queue->kind->result(request, res) : res;
}

/* For the one that it is of, to whom somebody else saw it come. */
static void park(struct stele_uring *host, struct stele_request *request,
		 ssize_t res)
{
	request->status = (int)res;
	stele_request_push(&((struct stele_uring *)request->queue)->parked,
			   request);
	host->parked_count++;
}

/*
 * What is in the ring: up to max for this queue. Of a shared one, all is taken.
 * Return: how many for this one.
 */
static unsigned int take(struct stele_uring *queue, struct stele_request **done,
			 ssize_t *res, unsigned int max)
{
	struct stele_uring *host = queue->host;
	unsigned int count = 0, seen = 0, head;
	struct io_uring_cqe *cqe;

	io_uring_for_each_cqe(&host->ring, head, cqe)
	{
		struct stele_request *request = io_uring_cqe_get_data(cqe);
		ssize_t result = result_of(queue, request, cqe->res);
		bool ours = request->queue == &queue->base && count < max;

		if (!ours && !host->users)
			break;
		seen++;
		if (!ours) {
			park(host, request, result);
			continue;
		}
		done[count] = request;
		res[count++] = result;
	}
	io_uring_cq_advance(&host->ring, seen);
	host->in_ring -= seen;
	return count;
}

/* How many completions to sleep for. */
static unsigned int lacking(const struct stele_uring *host, unsigned int min_wait,
			    unsigned int count, unsigned int max)
{
	if (!max) { /* any that is reaped next */
		count = host->parked_count;
		if (min_wait > count + host->in_ring)
			min_wait = count + host->in_ring;
	}
	return min_wait > count ? min_wait - count : 0;
}

static int uring_wait(struct stele_queue *base, unsigned int min_wait,
		      struct stele_request **done, ssize_t *res,
		      unsigned int max)
{
	struct stele_uring *queue = (struct stele_uring *)base;
	struct stele_uring *host = queue->host;
	unsigned int count;

	count = (unsigned int)stele_request_drain(&queue->parked, done, res, max);
	host->parked_count -= count;
	/* Many look in turn: the kernel is called by whoever gathers for all. */
	if (host->users && max && count >= min_wait)
		return (int)count;
	do {
		int rc = stele_uring_ring_push(&host->ring,
					       lacking(host, min_wait, count, max),
					       max || host->users,
					       &base->stats.enters);

		if (rc)
			return count ? (int)count : rc;
		count += take(queue, done + count, res + count, max - count);
	} while (count < min_wait && max);
	update_event(host);
	return (int)count;
}

/*
 * Not the ring: while completions wait for us to come and post them
 * (DEFER_TASKRUN), it polls readable, but who sleeps in poll or epoll may
 * never be woken. A ring that is polled itself is not woken by anything.
 */
static int uring_event_fd(struct stele_queue *base)
{
	struct stele_uring *queue = ((struct stele_uring *)base)->host;
	int fd, rc;

	if (queue->ring.flags & IORING_SETUP_IOPOLL)
		return -EOPNOTSUPP;
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

static void uring_describe(const struct stele_queue *base, char *text,
			   size_t size)
{
	const struct stele_uring *queue = (const struct stele_uring *)base;
	const struct stele_uring_memory *memory = &queue->memory;
	const struct io_uring *ring = &queue->host->ring;
	unsigned int flags = ring->flags;

	snprintf(text, size, "%s%s%s%s%s", queue->kind->name,
		 flags & IORING_SETUP_DEFER_TASKRUN  ? " defer-taskrun"
		 : flags & IORING_SETUP_COOP_TASKRUN ? " coop-taskrun"
						     : "",
		 ring->enter_ring_fd != ring->ring_fd ? " fixed-ring" : "",
		 queue->fd_registered ? " fixed-file" : "",
		 memory->arena_size || memory->region_count ? " fixed-buffers"
							    : "");
}

/* ---- open and close ------------------------------------------------------ */

static int make_ring(struct stele_uring *queue, void *arena, size_t arena_size)
{
	int rc = stele_uring_ring_init(&queue->ring, queue->entries, queue->kind);

	if (rc)
		return rc;
	queue->maker = stele_thread_number();
	queue->ring_flags = queue->ring.int_flags;
	queue->fd_registered =
		!io_uring_register_files(&queue->ring, &queue->target, 1);
	queue->fd = queue->fd_registered ? 0 : queue->target;
	queue->memory = (struct stele_uring_memory){0};
	stele_uring_memory_init(queue, arena, arena_size);
	return 0;
}

/* It is in the table of another thread, whose numbers mean other rings in ours. */
static void forget_ring_fd(struct stele_uring *queue)
{
	queue->ring.enter_ring_fd = queue->ring.ring_fd;
	queue->ring.int_flags = queue->ring_flags;
}

/* Nothing is in flight. What another thread made ends a moment later, by itself. */
static void end_ring(struct stele_uring *queue)
{
	/* Of a group, others than its host may have used it. */
	unsigned int user = queue->base.thread ? queue->base.thread : queue->maker;

	if (user != stele_thread_number())
		forget_ring_fd(queue);
	io_uring_unregister_buffers(&queue->ring);
	if (queue->fd_registered)
		io_uring_unregister_files(&queue->ring);
	io_uring_queue_exit(&queue->ring);
	stele_uring_memory_release(queue);
}

/* A new ring for this thread; of the old one what callers know of. */
static int replace_ring(struct stele_uring *queue)
{
	struct stele_uring old = *queue;
	int rc = make_ring(queue, old.memory.arena, old.memory.arena_size);

	if (!rc && old.event_fd >= 0) {
		rc = io_uring_register_eventfd(&queue->ring, old.event_fd);
		if (rc)
			end_ring(queue);
	}
	if (rc) {
		*queue = old;
		return rc;
	}
	for (unsigned int i = 0; i < old.memory.region_count; i++)
		stele_uring_memory_attach(&queue->base,
					  old.memory.regions[i].start,
					  old.memory.regions[i].size);
	end_ring(&old);
	return 0;
}

/*
 * The descriptor is registered for the first thread that uses the ring: its table keeps
 * what is in there until the thread ends, so a ring that goes about is in none.
 */
static int uring_adopt(struct stele_queue *base)
{
	struct stele_uring *queue = (struct stele_uring *)base;
	bool mine = queue->host->maker == stele_thread_number() ||
		    !(queue->host->ring.flags & IORING_SETUP_SINGLE_ISSUER);
	int rc;

	if (queue->host->users && mine &&
	    queue->host->ring.enter_ring_fd == queue->host->ring.ring_fd)
		io_uring_register_ring_fd(&queue->host->ring);
	if (queue->host->users) /* as long as it lives */
		return mine ? 0 : -EBUSY;
	if (!mine) {
		rc = base->in_flight ? -EBUSY : replace_ring(queue);
		if (rc)
			return rc;
	}
	if (base->thread)
		forget_ring_fd(queue);
	else
		io_uring_register_ring_fd(&queue->ring);
	return 0;
}

/* Return: the queue that is left to be closed: the host, by the last one; or NULL. */
static struct stele_uring *leave_group(struct stele_uring *queue)
{
	struct stele_uring *host = queue->host;

	if (queue != host)
		free(queue);
	return --host->users ? NULL : host;
}

static void uring_close(struct stele_queue *base, bool forked)
{
	struct stele_uring *queue = (struct stele_uring *)base;

	if (!forked && base->in_flight) {
		stele_log_error(&queue->file->base.log,
				"cannot end %u transfers: io_uring has failed, or "
				"they are another thread's; their memory is not freed",
				base->in_flight);
		return;
	}
	if (queue->host->users)
		queue = leave_group(queue);
	if (!queue)
		return;
	if (forked)
		stele_uring_ring_abandon(&queue->ring);
	else
		end_ring(queue);
	if (queue->event_fd >= 0)
		close(queue->event_fd);
	stele_uring_memory_release(queue);
	free(queue);
}

static const struct stele_queue_ops uring_queue_ops = {
	.start = uring_start,
	.wait = uring_wait,
	.event_fd = uring_event_fd,
	.close = uring_close,
	.adopt = uring_adopt,
	.attach = stele_uring_memory_attach,
	.describe = uring_describe,
};

static struct stele_uring *new_queue(struct stele_file *file,
				     const struct stele_uring_kind *kind, int fd)
{
	struct stele_uring *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->base.ops = &uring_queue_ops;
	queue->kind = kind;
	queue->file = file;
	queue->event_fd = -1;
	queue->target = queue->fd = fd;
	queue->host = queue;
	return queue;
}

int stele_uring_open(struct stele_file *file,
		     const struct stele_uring_kind *kind, int fd,
		     unsigned int depth, void *arena, size_t arena_size,
		     struct stele_queue **out)
{
	struct stele_uring *queue = new_queue(file, kind, fd);
	int rc;

	if (!queue)
		return -ENOMEM;
	queue->entries = depth;
	rc = make_ring(queue, arena, arena_size);
	if (rc) {
		free(queue);
		return rc;
	}
	*out = &queue->base;
	return 0;
}

int stele_uring_open_queue(struct stele_device *dev, unsigned int depth,
			   void *arena, size_t arena_size,
			   struct stele_queue **out)
{
	return stele_uring_open((struct stele_file *)dev, &plain, dev->fd,
				depth, arena, arena_size, out);
}

/* The ring of a group is made for the depth of all who may join it. */
static int begin_group(struct stele_file *file, unsigned int depth,
		       struct stele_uring **host)
{
	struct stele_queue *queue;
	int rc = stele_uring_open(file, &plain, file->base.fd,
				  depth > SHARED_DEPTH ? depth : SHARED_DEPTH,
				  NULL, 0, &queue);

	if (!rc)
		*host = (struct stele_uring *)queue;
	return rc;
}

int stele_uring_join(struct stele_device *dev, unsigned int depth,
		     struct stele_queue_group *group, struct stele_queue **out)
{
	struct stele_uring *host = (struct stele_uring *)group->host, *queue = NULL;
	struct stele_file *file = (struct stele_file *)dev;
	int rc = 0;

	if (!host || depth > host->entries - host->promised) {
		rc = begin_group(file, depth, &host);
		queue = host;
	} else {
		queue = new_queue(file, &plain, dev->fd);
		rc = queue ? 0 : -ENOMEM;
	}
	if (rc)
		return rc;
	queue->host = host;
	if (queue->target == host->target) {
		queue->fd = host->fd;
		queue->fd_registered = host->fd_registered;
	}
	host->users++;
	host->promised += depth;
	group->host = &host->base;
	*out = &queue->base;
	return 0;
}
