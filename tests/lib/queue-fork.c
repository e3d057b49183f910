/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue-fork.c - a forked child cannot use a queue, nor harm its parent's
 *
 * The child has no TAP of its own: it says with its exit status which step
 * went wrong.
 */
#include "tests/device/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tap.h"

#define SIZE  (4u << 20)
#define DEPTH 16
#define PIECE 65536

/*
 * A sanitizer's allocator does not survive the fork of a process with threads
 * (gcc 12: its locks stay as they are): then a child must not allocate or free.
 */
static bool may_allocate(struct stele_device *dev)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return strcmp(stele_device_backend(dev), STELE_BACKEND_THREADS) != 0;
#else
	(void)dev;
	return true;
#endif
}

/* ThreadSanitizer ends a child that starts threads, as librados does. */
static bool threads_survive(const char *backend)
{
#ifdef __SANITIZE_THREAD__
	return strcmp(backend, "rbd") != 0;
#else
	(void)backend;
	return true;
#endif
}

/* 0, or the number of the step that went wrong. */
static int use_in_child(struct stele_device *dev, struct stele_queue *queue,
			struct stele_request *spare, char *data)
{
	struct stele_request *done[DEPTH], own;
	struct stele_queue *second;

	if (stele_fork_count() != 1)
		return 1;
	if (stele_queue_submit(queue, spare) != -EOWNERDEAD)
		return 2;
	if (stele_queue_reap(queue, done, DEPTH, 1) != -EOWNERDEAD)
		return 3;
	if (stele_queue_fd(queue) != -EOWNERDEAD)
		return 4;
	if (!may_allocate(dev))
		return 0;
	stele_queue_close(queue);

	/* A queue of its own serves, and blocking transfers, too. */
	if (stele_queue_open(dev, 2, NULL, 0, &second))
		return 5;
	own = (struct stele_request){
		.op = STELE_OP_READ, .data = data, .size = PIECE};
	if (stele_queue_submit(second, &own) ||
	    stele_queue_reap(second, done, 1, 1) != 1 || done[0] != &own ||
	    own.status)
		return 6;
	stele_queue_close(second);
	if (stele_device_read(dev, data, 0, PIECE))
		return 7;
	return 0;
}

static int in_child(struct stele_device *dev, struct stele_queue *queue,
		    struct stele_request *spare, char *data)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		sysbail("fork");
	if (!pid)
		_exit(use_in_child(dev, queue, spare, data));
	if (waitpid(pid, &status, 0) != pid)
		sysbail("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* In a child an image goes on that is open for reading. */
static struct stele_device *reopen(struct stele_device *dev)
{
	char *path = stele_device_uri(dev);

	if (stele_device_flush(dev))
		bail("no flush");
	stele_device_close(dev);
	if (stele_device_open(path, NULL, 0, NULL, NULL, &dev))
		bail("no device");
	free(path);
	return dev;
}

static void check_backend(const char *name)
{
	struct stele_device *dev = test_device_open(name, SIZE);
	size_t size = (size_t)DEPTH * PIECE;
	char *wanted = test_data(dev, size, 1), *seen = test_data(dev, size, 2);
	char *other = test_data(dev, PIECE, 3);
	struct stele_request requests[DEPTH], *done[DEPTH], spare;
	struct stele_queue *queue;
	unsigned int bits = 0;
	int n;

	stele_device_write(dev, wanted, 0, size);
	if (!strcmp(name, "rbd"))
		dev = reopen(dev);
	/* Room for one more than is in flight: so depth is not what refuses. */
	if (stele_queue_open(dev, DEPTH + 1, seen, size, &queue))
		bail("no queue");
	for (int i = 0; i < DEPTH; i++) {
		requests[i] = (struct stele_request){.op = STELE_OP_READ,
						     .data = seen + i * PIECE,
						     .offset = i * PIECE,
						     .size = PIECE};
		stele_queue_submit(queue, &requests[i]);
	}
	n = stele_queue_reap(queue, done, 4, 0);
	for (int i = 0; i < n; i++)
		bits |= 1u << (done[i] - requests);

	spare = (struct stele_request){
		.op = STELE_OP_READ, .data = other, .size = PIECE};
	if (threads_survive(name))
		is_int(0, in_child(dev, queue, &spare, other),
		       "%s: a child is refused, and has its own", name);
	else
		skip_block(1, "needs a child that may start threads");

	is_int(DEPTH - n, stele_queue_reap(queue, done, DEPTH, DEPTH),
	       "%s: the parent reaps the rest", name);
	for (int i = 0; i < DEPTH - n; i++)
		bits |= 1u << (done[i] - requests);
	is_hex((1u << DEPTH) - 1, bits, "%s: each of its requests", name);
	is_blob(wanted, seen, size, "%s: with their bytes", name);
	is_int(0, stele_queue_submit(queue, &requests[0]), "%s: goes on", name);
	is_int(1, stele_queue_reap(queue, done, 1, 1), "%s: and reaps", name);
	stele_queue_close(queue);
	stele_device_close(dev);
	free(wanted);
	free(seen);
	free(other);
}

int main(void)
{
	plan_lazy();
	is_uint(0, stele_fork_count(), "not forked");
	for (int i = 0; i < TEST_BACKENDS; i++)
		if (test_backend_usable(test_backends[i]))
			check_backend(test_backends[i]);
	is_uint(0, stele_fork_count(), "a parent stays what it was");
	return done();
}
