/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue-register.c - memory that a queue is told of, and what a queue counts
 */
#include "tests/device/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/tap.h"

#define SIZE        (4u << 20)
#define REGION_SIZE (1u << 20)
#define DEPTH       8
#define PIECE       65536u

static const char *name; /* of the backend */

static char *map(size_t size)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		sysbail("no memory");
	return memory;
}

/* DEPTH pieces from the start of the device, in one go. */
static unsigned int read_pieces(struct stele_queue *queue, char *data)
{
	struct stele_request requests[DEPTH], *done[DEPTH];
	unsigned int good = 0;
	int n;

	for (unsigned int i = 0; i < DEPTH; i++) {
		requests[i] = (struct stele_request){.op = STELE_OP_READ,
						     .data = data + i * PIECE,
						     .offset = i * PIECE,
						     .size = PIECE};
		if (stele_queue_submit(queue, &requests[i]))
			return 0;
	}
	n = stele_queue_reap(queue, done, DEPTH, DEPTH);
	for (int i = 0; i < n; i++)
		good += !done[i]->status;
	return good;
}

static struct stele_queue *open_queue(struct stele_device *dev, void *arena,
				      size_t size)
{
	struct stele_queue *queue;

	if (stele_queue_open(dev, DEPTH, arena, size, &queue))
		bail("no queue over %s", name);
	return queue;
}

static bool says(const struct stele_queue *queue, const char *what)
{
	char text[128];

	stele_queue_describe(queue, text, sizeof(text));
	diag("%s: %s", name, text);
	return strstr(text, what) != NULL;
}

static void check_refusals(struct stele_device *dev, bool registers)
{
	struct stele_queue *queue = open_queue(dev, NULL, 0);
	char *memory = map(REGION_SIZE);

	is_int(-EINVAL, stele_queue_register(queue, NULL, REGION_SIZE),
	       "%s: no memory", name);
	is_int(-EINVAL, stele_queue_register(queue, memory, 0), "%s: no size",
	       name);
	is_int(-EINVAL, stele_queue_register(queue, memory + 512, 4096),
	       "%s: not by the page", name);
	is_int(registers ? 0 : -EOPNOTSUPP,
	       stele_queue_register(queue, memory, REGION_SIZE),
	       "%s: registers or not", name);
	ok(says(queue, name), "%s: says who it is", name);
	is_uint(DEPTH, read_pieces(queue, memory), "%s: reads there", name);
	is_uint(registers ? DEPTH : 0, queue->stats.registered,
		"%s: counts what was registered", name);
	stele_queue_close(queue);
	munmap(memory, REGION_SIZE);
}

/* ---- where memory can be registered ----------------------------------------- */

static void check_bytes(struct stele_device *dev, const char *wanted)
{
	char *arena = map(REGION_SIZE), *regions = map(2 * REGION_SIZE);
	char *other = map(REGION_SIZE);
	struct stele_queue *queue = open_queue(dev, arena, REGION_SIZE);
	char *places[] = {arena, regions, regions + REGION_SIZE,
			  /* across the border of two regions */
			  regions + REGION_SIZE - DEPTH / 2 * PIECE, other};
	const unsigned int registered[] = {DEPTH, DEPTH, DEPTH, DEPTH, 0};
	uint64_t before;

	is_int(0, stele_queue_register(queue, regions, REGION_SIZE), "one");
	is_int(0,
	       stele_queue_register(queue, regions + REGION_SIZE, REGION_SIZE),
	       "two");
	ok(says(queue, "fixed-buffers"), "%s: says that memory is registered",
	   name);
	for (unsigned int i = 0; i < 5; i++) {
		before = queue->stats.registered;
		memset(places[i], 0, DEPTH * PIECE);
		is_uint(DEPTH, read_pieces(queue, places[i]),
			"%s: place %u: reads", name, i);
		is_uint(registered[i], queue->stats.registered - before,
			"%s: place %u: registered", name, i);
		is_blob(wanted, places[i], DEPTH * PIECE,
			"%s: place %u: the bytes", name, i);
	}
	stele_queue_close(queue);
	munmap(arena, REGION_SIZE);
	munmap(regions, 2 * REGION_SIZE);
	munmap(other, REGION_SIZE);
}

/* What could not be registered is memory as any other, also when it is new. */
static void check_failed(struct stele_device *dev, const char *wanted)
{
	struct stele_queue *queue = open_queue(dev, NULL, 0);
	char *memory = map(REGION_SIZE);

	mprotect(memory + REGION_SIZE / 2, REGION_SIZE / 2, PROT_NONE);
	is_int(-EFAULT, stele_queue_register(queue, memory, REGION_SIZE),
	       "%s: half of it is not there", name);
	is_uint(DEPTH, read_pieces(queue, memory),
		"%s: reads there all the same", name);
	is_uint(0, queue->stats.registered, "%s: as into any memory", name);
	is_blob(wanted, memory, DEPTH * PIECE, "%s: the bytes", name);
	stele_queue_close(queue);
	munmap(memory, REGION_SIZE);
}

static void check_many(struct stele_device *dev)
{
	struct stele_queue *queue = open_queue(dev, NULL, 0);
	char *memory = map(REGION_SIZE);
	unsigned int taken = 0;

	while (taken <= STELE_QUEUE_REGIONS_MAX &&
	       !stele_queue_register(queue, memory + taken * 4096, 4096))
		taken++;
	is_uint(STELE_QUEUE_REGIONS_MAX, taken, "%s: as many as it says", name);
	is_int(-ENOSPC, stele_queue_register(queue, memory, 4096),
	       "%s: and not one more", name);
	stele_queue_close(queue);
	munmap(memory, REGION_SIZE);
}

/* What is submitted and waited for takes one call. */
static void check_enters(struct stele_device *dev)
{
	struct stele_queue *queue = open_queue(dev, NULL, 0);
	char *memory = map(REGION_SIZE);

	read_pieces(queue, memory);
	is_uint(1, queue->stats.enters, "%s: one call for a batch", name);
	read_pieces(queue, memory);
	is_uint(2, queue->stats.enters, "%s: and for the next", name);
	stele_queue_close(queue);
	munmap(memory, REGION_SIZE);
}

int main(void)
{
	static const char *const names[] = {"memory", "threads", "uring",
					    "fault over uring"};

	plan_lazy();
	for (size_t i = 0; i < 4; i++) {
		struct stele_device *dev;
		char *wanted;

		name = names[i];
		if (i > 1 && !test_backend_usable("uring"))
			break;
		dev = i < 3 ? test_device_open(name, SIZE)
			    : test_fault_open("uring", SIZE, NULL);
		wanted = test_data(dev, DEPTH * PIECE, 1);
		stele_device_write(dev, wanted, 0, DEPTH * PIECE);
		check_refusals(dev, i > 1);
		if (i > 1) {
			check_bytes(dev, wanted);
			check_failed(dev, wanted);
			check_many(dev);
		}
		if (i == 2)
			check_enters(dev);
		free(wanted);
		stele_device_close(dev);
	}
	return done();
}
