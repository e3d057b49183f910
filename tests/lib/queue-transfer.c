/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue-transfer.c - queued transfers, the same over every backend
 */
#include "tests/device/device.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

#define SIZE	   (8u << 20)
#define ARENA_SIZE (5u << 20) /* two slabs and a half */
#define DEPTH	   8
#define POLL_MS	   10000

static const char *name; /* of the backend */

static struct stele_queue *open_queue(struct stele_device *dev,
				      unsigned int depth)
{
	struct stele_queue *queue;
	int rc = stele_queue_open(dev, depth, NULL, 0, &queue);

	if (rc)
		bail("no queue over %s: %s", name, strerror(-rc));
	return queue;
}

/* One request from submit to reap. Return: its status. */
static int run(struct stele_queue *queue, enum stele_op op, void *data,
	       uint64_t offset, uint32_t size)
{
	struct stele_request request = {
		.op = op, .data = data, .offset = offset, .size = size};
	struct stele_request *done = NULL;
	int rc = stele_queue_submit(queue, &request);

	if (rc)
		return rc;
	rc = stele_queue_reap(queue, &done, 1, 1);
	return rc == 1 && done == &request ? request.status : -EPROTO;
}

/* ---- many, from memory that is registered and from memory that is not ---- */

/* Writes or reads the whole device in pieces of 96 KiB, which straddle slabs. */
static unsigned int sweep(struct stele_queue *queue, enum stele_op op,
			  char *data)
{
	enum { PIECE = 96 << 10 };
	struct stele_request requests[DEPTH], *done[DEPTH];
	unsigned int bad = 0, used = 0;
	struct stele_request *free_list = NULL;
	uint64_t offset = 0;
	int n;

	while (offset < ARENA_SIZE || used) {
		if (offset < ARENA_SIZE && (free_list || used < DEPTH)) {
			struct stele_request *r =
				free_list ? free_list : &requests[used];
			uint64_t left = ARENA_SIZE - offset;

			free_list = NULL;
			*r = (struct stele_request){
				.op = op,
				.data = data + offset,
				.offset = SIZE - ARENA_SIZE + offset,
				.size = left < PIECE ? (uint32_t)left : PIECE,
				.user = r,
			};
			used += r == &requests[used];
			offset += r->size;
			bad += stele_queue_submit(queue, r) != 0;
			continue;
		}
		n = stele_queue_reap(queue, done, 1, 1);
		if (n <= 0)
			break;
		bad += done[0]->status != 0 || done[0]->user != done[0];
		if (offset < ARENA_SIZE)
			free_list = done[0];
		else
			used--;
	}
	return bad;
}

static void check_many(struct stele_device *dev)
{
	char *wanted = test_data(dev, ARENA_SIZE, 1);
	char *seen = test_data(dev, ARENA_SIZE, 2);
	struct stele_queue *queue;

	is_int(0, stele_queue_open(dev, DEPTH, wanted, ARENA_SIZE, &queue),
	       "%s: opens with an arena", name);
	is_uint(0, sweep(queue, STELE_OP_WRITE, wanted), "%s: writes arena",
		name);
	is_int(0, run(queue, STELE_OP_FLUSH, NULL, 0, 0), "%s: flushes", name);
	is_uint(0, sweep(queue, STELE_OP_READ, seen), "%s: reads elsewhere",
		name);
	is_blob(wanted, seen, ARENA_SIZE, "%s: the same bytes", name);
	memset(wanted, 0, ARENA_SIZE);
	is_uint(0, sweep(queue, STELE_OP_READ, wanted), "%s: reads into arena",
		name);
	is_blob(seen, wanted, ARENA_SIZE, "%s: the same bytes again", name);
	stele_queue_close(queue);
	free(wanted);
	free(seen);
}

/* ---- refusals ------------------------------------------------------------ */

static void check_refusals(struct stele_device *dev)
{
	uint32_t over = dev->limits.transfer_max + 4096;
	const struct {
		unsigned int shift; /* of memory */
		uint64_t offset;
		uint32_t size;
		const char *what;
	} cases[] = {
		{0, 1, 4096, "offset"},
		{0, 4096, 4095, "size"},
		{0, 4096, 0, "no size"},
		{1, 4096, 4096, "memory"},
		{0, 0, over, "more than transfer_max"},
		{0, UINT64_MAX - 511, 4096, "end that overflows"},
	};
	char *data = test_data(dev, over + 4096, 3);
	struct stele_queue *queue = open_queue(dev, 1);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		is_int(-EINVAL,
		       run(queue, STELE_OP_READ, data + cases[i].shift,
			   cases[i].offset, cases[i].size),
		       "%s: read refuses %s", name, cases[i].what);
		is_int(-EINVAL,
		       run(queue, STELE_OP_WRITE, data + cases[i].shift,
			   cases[i].offset, cases[i].size),
		       "%s: write refuses %s", name, cases[i].what);
	}
	is_int(-EINVAL, run(queue, STELE_OP_READ, NULL, 0, 4096),
	       "%s: refuses no memory", name);
	is_int(-EINVAL, run(queue, (enum stele_op)99, data, 0, 4096),
	       "%s: refuses an unknown operation", name);
	is_int(0,
	       run(queue, STELE_OP_READ, data, 0, dev->limits.transfer_max),
	       "%s: what was refused takes no place", name);
	stele_queue_close(queue);
	free(data);
}

static void check_depth(struct stele_device *dev)
{
	static const unsigned int depths[] = {1, 3, 8};
	struct stele_request requests[9], *done[9];
	struct stele_queue *queue = NULL;
	char *data = test_data(dev, 9 * 512, 4);

	is_int(-EINVAL, stele_queue_open(dev, 0, NULL, 0, &queue),
	       "%s: no depth", name);
	is_int(-EINVAL,
	       stele_queue_open(dev, STELE_QUEUE_DEPTH_MAX + 1, NULL, 0, &queue),
	       "%s: too deep", name);
	for (size_t i = 0; i < 3; i++) {
		unsigned int depth = depths[i], taken = 0;

		queue = open_queue(dev, depth);
		for (unsigned int j = 0; j <= depth; j++)
			requests[j] = (struct stele_request){
				.op = STELE_OP_READ, .data = data + 512 * j, .size = 512};
		while (taken < depth &&
		       !stele_queue_submit(queue, &requests[taken]))
			taken++;
		is_uint(depth, taken, "%s: takes %u", name, depth);
		is_int(-EAGAIN, stele_queue_submit(queue, &requests[depth]),
		       "%s: and not one more", name);
		is_int(1, stele_queue_reap(queue, done, 1, 1), "%s: reaps one",
		       name);
		is_int(0, stele_queue_submit(queue, &requests[depth]),
		       "%s: has room again", name);
		is_int((int)depth, stele_queue_reap(queue, done, 9, 9),
		       "%s: reaps what is in flight, not more", name);
		stele_queue_close(queue);
	}
	queue = open_queue(dev, STELE_QUEUE_DEPTH_MAX);
	is_int(0, run(queue, STELE_OP_READ, data, 0, 512), "%s: deepest", name);
	stele_queue_close(queue);
	free(data);
}

/* ---- reap ---------------------------------------------------------------- */

static void check_reap(struct stele_device *dev)
{
	struct stele_request requests[DEPTH], *done[DEPTH];
	struct stele_queue *queue = open_queue(dev, DEPTH);
	char *data = test_data(dev, DEPTH * 512, 5);
	unsigned int seen = 0, bits = 0;
	int n;

	is_int(0, stele_queue_reap(queue, done, DEPTH, 0), "%s: none", name);
	is_int(0, stele_queue_reap(queue, done, DEPTH, DEPTH),
	       "%s: does not wait for what is not in flight", name);
	for (unsigned int i = 0; i < DEPTH; i++) {
		requests[i] = (struct stele_request){.op = STELE_OP_READ,
						     .data = data + i * 512,
						     .offset = i * 512,
						     .size = 512};
		stele_queue_submit(queue, &requests[i]);
	}
	is_int(0, stele_queue_reap(queue, done, 0, 5), "%s: room for none",
	       name);
	n = stele_queue_reap(queue, done, 3, 3);
	is_int(3, n, "%s: max limits", name);
	for (int i = 0; i < n; i++)
		bits |= 1u << (done[i] - requests);
	seen = 3;
	while (seen < DEPTH) {
		n = stele_queue_reap(queue, done, DEPTH, 2);
		if (n < 1)
			break;
		for (int i = 0; i < n; i++)
			bits |= 1u << (done[i] - requests);
		seen += (unsigned int)n;
	}
	is_uint(DEPTH, seen, "%s: as many as were submitted", name);
	is_hex((1u << DEPTH) - 1, bits, "%s: each of them", name);
	stele_queue_close(queue);
	free(data);
}

static int readable(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout_ms);
}

/* From where check_many() wrote: a hole would be read without waiting. */
static void check_event_fd(struct stele_device *dev)
{
	struct stele_queue *queue = open_queue(dev, DEPTH);
	struct stele_request requests[2], *done[2];
	char *data = test_data(dev, 1024, 6);
	int fd = stele_queue_fd(queue);
	unsigned int seen = 0;

	ok(fd >= 0, "%s: has an event descriptor", name);
	is_int(fd, stele_queue_fd(queue), "%s: always the same", name);
	for (int round = 0; round < 3; round++) {
		is_int(0, readable(fd, 0), "%s: nothing to reap", name);
		for (int i = 0; i < 2; i++) {
			requests[i] = (struct stele_request){
				.op = STELE_OP_READ,
				.data = data + 512 * i,
				.offset = SIZE - 4096,
				.size = 512};
			stele_queue_submit(queue, &requests[i]);
		}
		for (seen = 0; seen < 2;) {
			int n = stele_queue_reap(queue, done, 1, 0);

			seen += n > 0 ? (unsigned int)n : 0;
			if (seen < 2 && readable(fd, POLL_MS) != 1)
				break;
		}
		is_uint(2, seen, "%s: poll tells of each", name);
	}
	stele_queue_close(queue);
	free(data);
}

/* ---- ends ---------------------------------------------------------------- */

static void check_end(struct stele_device *dev)
{
	struct stele_queue *queue = open_queue(dev, 2);
	char *data = test_data(dev, 8192, 7);

	is_int(0, run(queue, STELE_OP_WRITE, data, SIZE - 8192, 8192),
	       "%s: writes to the end", name);
	is_int(-ENODATA, run(queue, STELE_OP_READ, data, SIZE - 4096, 8192),
	       "%s: reads across the end", name);
	is_int(-ENODATA, run(queue, STELE_OP_READ, data, SIZE, 4096),
	       "%s: reads at the end", name);
	is_int(-ENOSPC, run(queue, STELE_OP_WRITE, data, SIZE - 4096, 8192),
	       "%s: writes across the end", name);
	is_int(-ENOSPC, run(queue, STELE_OP_WRITE, data, SIZE, 4096),
	       "%s: writes at the end", name);
	stele_queue_close(queue);
	free(data);
}

static void check_discard(struct stele_device *dev)
{
	struct stele_queue *queue = open_queue(dev, 2);
	char *data = test_data(dev, 12288, 8), *seen = test_data(dev, 12288, 9);

	run(queue, STELE_OP_WRITE, data, 65536, 12288);
	is_int(0, run(queue, STELE_OP_DISCARD, NULL, 65536 + 4096, 4096),
	       "%s: discards", name);
	is_int(0, run(queue, STELE_OP_READ, seen, 65536, 12288),
	       "%s: reads around it", name);
	memset(data + 4096, 0, 4096);
	/* Ceph passes over what is small. */
	if (strcmp(name, "rbd"))
		is_blob(data, seen, 12288, "%s: a hole of that size there",
			name);
	is_int(-EINVAL, run(queue, STELE_OP_DISCARD, NULL, 1, 4096),
	       "%s: discard refuses offset", name);
	stele_queue_close(queue);
	free(data);
	free(seen);
}

/* The memory is freed right behind the close: sanitizers would see a write. */
static void check_close(struct stele_device *dev)
{
	struct stele_request requests[DEPTH];
	struct stele_queue *queue = open_queue(dev, DEPTH);
	char *wanted = test_data(dev, DEPTH * 65536, 10);
	char *seen = test_data(dev, DEPTH * 65536, 11);

	for (unsigned int i = 0; i < DEPTH; i++) {
		requests[i] = (struct stele_request){.op = STELE_OP_WRITE,
						     .data = wanted + i * 65536,
						     .offset = i * 65536,
						     .size = 65536};
		stele_queue_submit(queue, &requests[i]);
	}
	stele_queue_close(queue);
	is_int(0, stele_device_read(dev, seen, 0, DEPTH * 65536),
	       "%s: reads behind the close", name);
	is_blob(wanted, seen, DEPTH * 65536,
		"%s: close waits for what is in flight", name);
	free(wanted);
	free(seen);
	stele_queue_close(NULL);
}

/* ---- a file in memory ------------------------------------------------------ */

/* io_uring would have worker threads of the kernel wait for what never waits. */
static void check_tmpfs(void)
{
	char path[] = "/dev/shm/stele-test-XXXXXX";
	struct stele_request requests[DEPTH], *done[DEPTH];
	struct stele_queue *queue;
	struct stele_device *dev;
	char *wanted, *seen;
	int fd;

	name = "uring, tmpfs";
	if (!test_backend_usable("uring"))
		return;
	fd = mkstemp(path);
	if (fd < 0 || ftruncate(fd, DEPTH * 65536)) {
		skip_block(5, "needs a tmpfs in /dev/shm");
		return;
	}
	close(fd);
	if (stele_device_open_file(path, STELE_DEVICE_WRITE, NULL, NULL, &dev))
		bail("cannot open '%s'", path);
	unlink(path);
	wanted = test_data(dev, DEPTH * 65536, 12);
	seen = test_data(dev, DEPTH * 65536, 13);
	is_int(0, stele_device_write(dev, wanted, 0, DEPTH * 65536),
	       "%s: is written", name);
	queue = open_queue(dev, DEPTH);
	for (unsigned int i = 0; i < DEPTH; i++) {
		requests[i] = (struct stele_request){.op = STELE_OP_READ,
						     .data = seen + i * 65536,
						     .offset = i * 65536,
						     .size = 65536};
		stele_queue_submit(queue, &requests[i]);
	}
	is_int(DEPTH, stele_queue_reap(queue, done, DEPTH, DEPTH),
	       "%s: all is read", name);
	is_blob(wanted, seen, DEPTH * 65536, "%s: the bytes", name);
	is_uint(0, stele_device_workers(), "%s: without a worker of the kernel",
		name);
	is_int(-ENODATA, run(queue, STELE_OP_READ, seen, (DEPTH - 1) * 65536, 131072),
	       "%s: reads across the end", name);
	stele_queue_close(queue);
	stele_device_close(dev);
	free(wanted);
	free(seen);
}

int main(void)
{
	plan_lazy();
	check_tmpfs(); /* first: workers of other rings stay for a while */
	for (size_t i = 0; i < TEST_BACKENDS; i++) {
		struct stele_device *dev;

		name = test_backends[i];
		if (!test_backend_usable(name))
			continue;
		dev = test_device_open(name, SIZE);
		check_many(dev);
		check_refusals(dev);
		check_depth(dev);
		check_reap(dev);
		check_event_fd(dev);
		check_end(dev);
		check_discard(dev);
		check_close(dev);
		stele_device_close(dev);
	}
	return done();
}
