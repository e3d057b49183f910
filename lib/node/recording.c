/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.c - a device that remembers what was read from it
 *
 * Blocking reads only: that is how an image is opened. Queues go straight to
 * the device below. What is kept are raw transfers, in the order of their
 * coming; stele_recording_take() makes extents of them. Two reads of one place
 * must have seen the same bytes, else somebody wrote meanwhile.
 */
#include "lib/node/mapping_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct read_record {
	uint64_t offset;
	size_t size;
	uint8_t *data;
};

struct recording {
	struct stele_device base;
	struct stele_device *inner;
	pthread_mutex_t lock; /* reads may come from several threads */
	struct read_record *reads;
	size_t count, room;
};

static int remember(struct recording *recording, const void *data,
		    uint64_t offset, size_t size)
{
	struct read_record *reads = recording->reads;
	uint8_t *copy = malloc(size);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, size);
	if (recording->count == recording->room) {
		size_t room = recording->room ? 2 * recording->room : 64;

		reads = reallocarray(reads, room, sizeof(*reads));
		if (!reads) {
			free(copy);
			return -ENOMEM;
		}
		recording->reads = reads;
		recording->room = room;
	}
	reads[recording->count++] = (struct read_record){offset, size, copy};
	/* cppcheck-suppress memleak ; the record's now */
	return 0;
}

static ssize_t recording_transfer(struct stele_device *dev, enum stele_op op,
				  void *data, uint64_t offset, size_t size)
{
	struct recording *recording = (struct recording *)dev;
	struct stele_device *inner = recording->inner;
	ssize_t res = inner->ops->transfer(inner, op, data, offset, size);
	int err = 0;

	if (op == STELE_OP_READ && res > 0) {
		pthread_mutex_lock(&recording->lock);
		err = remember(recording, data, offset, (size_t)res);
		pthread_mutex_unlock(&recording->lock);
	}
	return err ? err : res;
}

static int recording_size(struct stele_device *dev, uint64_t *size)
{
	return stele_device_size(((struct recording *)dev)->inner, size);
}

static int recording_queue_open(struct stele_device *dev, unsigned int depth,
				void *arena, size_t arena_size,
				struct stele_queue **queue)
{
	struct stele_device *inner = ((struct recording *)dev)->inner;

	return inner->ops->queue_open(inner, depth, arena, arena_size, queue);
}

static void recording_close(struct stele_device *dev)
{
	struct recording *recording = (struct recording *)dev;

	for (size_t i = 0; i < recording->count; i++)
		free(recording->reads[i].data);
	free(recording->reads);
	pthread_mutex_destroy(&recording->lock);
	stele_device_close(recording->inner);
	free(recording);
}

static int recording_check(struct stele_device *dev)
{
	return stele_device_check(((struct recording *)dev)->inner);
}

static const struct stele_device_ops recording_ops = {
	.name = "recording",
	.transfer = recording_transfer,
	.size = recording_size,
	.queue_open = recording_queue_open,
	.close = recording_close,
	.check = recording_check,
};

int stele_device_open_recording(struct stele_device *inner,
				struct stele_device **out)
{
	struct recording *recording = calloc(1, sizeof(*recording));

	if (!recording) {
		stele_device_close(inner);
		return -ENOMEM;
	}
	recording->base = *inner;
	recording->base.ops = &recording_ops;
	recording->base.writable = false;
	recording->inner = inner;
	pthread_mutex_init(&recording->lock, NULL);
	*out = &recording->base;
	return 0;
}

/* ---- extents --------------------------------------------------------------- */

static int by_offset(const void *a, const void *b)
{
	const struct read_record *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->size > y->size ? -1 : x->size < y->size;
}

struct span {
	uint64_t offset, size;
	uint64_t position; /* of its bytes in the buffer */
};

/* Append a read to the last span, or begin another. */
static int merge(const struct read_record *read, struct span *spans,
		 uint32_t *count, uint8_t *bytes, uint64_t *bytes_size)
{
	struct span *last = *count ? &spans[*count - 1] : NULL;
	uint64_t skip = 0;

	if (!last || read->offset > last->offset + last->size) {
		last = &spans[(*count)++];
		*last = (struct span){read->offset, 0, *bytes_size};
	} else {
		uint64_t within = read->offset - last->offset;

		skip = last->size - within;
		if (skip > read->size)
			skip = read->size;
		if (memcmp(bytes + last->position + within, read->data, skip))
			return -ESTALE;
	}
	memcpy(bytes + *bytes_size, read->data + skip, read->size - skip);
	*bytes_size += read->size - skip;
	last->size += read->size - skip;
	return 0;
}

/* Cut spans down to whole blocks: no answer may end within one. */
static void trim(const struct span *spans, uint32_t count, uint32_t block,
		 struct stele_recorded *out)
{
	out->extent_count = 0;
	out->bytes_size = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t begin = round_up(spans[i].offset, block);
		uint64_t end = round_down(spans[i].offset + spans[i].size,
					  block);

		if (begin >= end)
			continue;
		memmove(out->bytes + out->bytes_size,
			out->bytes + spans[i].position +
				(begin - spans[i].offset),
			end - begin);
		out->extents[out->extent_count++] =
			(struct stele_mapping_extent){le64_put(begin),
						      le64_put(end - begin)};
		out->bytes_size += end - begin;
	}
}

int stele_recording_take(struct stele_device *recording_dev,
			 struct stele_recorded *out)
{
	struct recording *recording = (struct recording *)recording_dev;
	struct span *spans = NULL;
	uint64_t size = 0;
	uint32_t count = 0;
	int err = 0;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < recording->count; i++)
		size += recording->reads[i].size;
	if (size > STELE_MAPPING_SIZE_MAX ||
	    recording->count > STELE_MAPPING_EXTENTS_MAX)
		return -EFBIG;
	spans = calloc(recording->count + 1, sizeof(*spans));
	out->extents = calloc(recording->count + 1, sizeof(*out->extents));
	out->bytes = malloc(size + 1);
	if (!spans || !out->extents || !out->bytes) {
		err = -ENOMEM;
		goto out;
	}
	if (recording->count)
		qsort(recording->reads, recording->count,
		      sizeof(*recording->reads), by_offset);
	for (size_t i = 0; !err && i < recording->count; i++)
		err = merge(&recording->reads[i], spans, &count, out->bytes,
			    &out->bytes_size);
	if (!err)
		trim(spans, count, recording->base.limits.logical_block, out);
out:
	free(spans);
	if (err)
		stele_recorded_release(out);
	return err;
}

void stele_recorded_release(struct stele_recorded *recorded)
{
	free(recorded->extents);
	free(recorded->bytes);
	memset(recorded, 0, sizeof(*recorded));
}
