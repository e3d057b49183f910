/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read-by.c - the bytes of a target, by a backend's queue
 *
 *	read-by BACKEND TARGET BYTES DEPTH [handed] >BYTES
 *
 * In the largest pieces that it takes and down to a block, DEPTH in flight (0: as many as
 * the device has room for), into memory that is registered. On stderr: "by DESCRIPTION",
 * "error OFFSET: TEXT" for each piece that fails (zeros stand for it), "workers N", the most
 * that were seen, and "pieces N". With `handed` another thread reads the second half, by the
 * same queue, which the first one closes.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/device/device.h"

static unsigned int workers, pieces;

static void say(void *user, enum stele_log_level level, const char *message)
{
	(void)user, (void)level;
	fprintf(stderr, "%s\n", message);
}

static void settle(const struct stele_request *request)
{
	unsigned int now = stele_device_workers();

	if (now > workers)
		workers = now;
	if (!request->status)
		return;
	fprintf(stderr, "error %" PRIu64 ": %s\n", request->offset,
		strerror(-request->status));
	memset(request->data, 0, request->size);
}

/* Sizes come round: the largest, a half, a quarter, to one block. */
static uint32_t next_size(const struct stele_limits *limits, uint32_t size)
{
	size = size / 2 / limits->logical_block * limits->logical_block;
	return size ? size : limits->transfer_max;
}

/* What a thread reads: `data` is of the whole target. */
struct part {
	struct stele_queue *queue;
	const struct stele_limits *limits;
	char *data;
	uint64_t offset, end;
	unsigned int depth;
	int rc;
};

static int read_part(const struct part *part)
{
	struct stele_queue *queue = part->queue;
	unsigned int depth = part->depth;
	struct stele_request *requests = calloc(depth, sizeof(*requests));
	struct stele_request **done =
		calloc(depth, sizeof(struct stele_request *));
	struct stele_request *idle = NULL;
	uint32_t piece = part->limits->transfer_max;
	uint64_t offset = part->offset, size = part->end;
	unsigned int flying = 0;
	int n = 0;

	for (unsigned int i = 0; i < depth; i++) {
		requests[i].user = idle;
		idle = &requests[i];
	}
	while (n >= 0 && (offset < size || flying)) {
		if (offset < size && idle) {
			struct stele_request *next = idle->user;

			*idle = (struct stele_request){
				.op = STELE_OP_READ,
				.data = part->data + offset,
				.offset = offset,
				.size = size - offset < piece
						? (uint32_t)(size - offset)
						: piece,
			};
			offset += idle->size;
			piece = next_size(part->limits, piece);
			n = stele_queue_submit(queue, idle);
			flying += !n;
			pieces++;
			idle = next;
			continue;
		}
		n = stele_queue_reap(queue, done, depth, 1);
		for (int i = 0; i < n; i++) {
			settle(done[i]);
			done[i]->user = idle;
			idle = done[i];
			flying--;
		}
	}
	free(requests);
	free(done);
	return n < 0 ? n : 0;
}

static void *run_part(void *user)
{
	struct part *part = user;

	part->rc = read_part(part);
	return NULL;
}

static int read_handed(struct part part)
{
	struct part second = part;
	pthread_t thread;

	part.end = second.offset = part.end / 2;
	part.rc = read_part(&part);
	if (part.rc)
		return part.rc;
	if (pthread_create(&thread, NULL, run_part, &second))
		return -EAGAIN;
	pthread_join(thread, NULL);
	return second.rc;
}

int main(int argc, char **argv)
{
	const struct stele_log log = {.fn = say};
	struct stele_device *dev;
	struct stele_queue *queue;
	unsigned int depth;
	struct part part;
	char text[128], *data;
	uint64_t size;
	int rc;

	if (argc != 5 && (argc != 6 || strcmp(argv[5], "handed")))
		return 2;
	size = strtoull(argv[3], NULL, 10);
	depth = (unsigned int)strtoul(argv[4], NULL, 10);
	rc = stele_device_open_file(argv[2], 0, argv[1], &log, &dev);
	if (rc)
		return 1;
	if (!depth)
		depth = dev->limits.depth_max;
	data = stele_device_alloc(dev, size);
	if (!data || stele_queue_open(dev, depth, data, size, &queue))
		return 1;
	stele_queue_describe(queue, text, sizeof(text));
	fprintf(stderr, "by %s\n", text);
	part = (struct part){queue, &dev->limits, data, 0, size, depth, 0};
	rc = argc == 6 ? read_handed(part) : read_part(&part);
	stele_queue_close(queue);
	stele_device_close(dev);
	fprintf(stderr, "workers %u\npieces %u\n", workers, pieces);
	if (rc)
		fprintf(stderr, "failed: %s\n", strerror(-rc));
	if (rc || fwrite(data, 1, size, stdout) != size)
		return 1;
	free(data);
	return 0;
}
