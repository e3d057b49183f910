/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge.c - a short list of blocks in the making
 */
#include "lib/segment/edge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/block.h"

struct stele_edge {
	uint64_t offset; /* of the block; 0: free (superblocks lie there) */
	uint32_t filled; /* bytes */
	bool wanted;	 /* to be written */
	uint8_t *block;
};

int stele_edges_init(struct stele_edges *edges, struct stele_device *dev,
		     unsigned int jobs)
{
	const unsigned int count = 2 * jobs + 1;

	memset(edges, 0, sizeof(*edges));
	pthread_mutex_init(&edges->lock, NULL);
	edges->dev = dev;
	edges->list = calloc(count, sizeof(*edges->list));
	edges->blocks = stele_device_alloc(dev, count * STELE_BLOCK_SIZE);
	if (!edges->list || !edges->blocks) {
		stele_edges_release(edges);
		return -ENOMEM;
	}
	edges->count = count;
	for (unsigned int i = 0; i < count; i++)
		edges->list[i].block = edges->blocks + i * STELE_BLOCK_SIZE;
	return 0;
}

void stele_edges_release(struct stele_edges *edges)
{
	if (edges->dev)
		pthread_mutex_destroy(&edges->lock);
	free(edges->list);
	free(edges->blocks);
	memset(edges, 0, sizeof(*edges));
}

/* The one of this block, or a new one. */
static struct stele_edge *find(struct stele_edges *edges, uint64_t offset)
{
	struct stele_edge *unused = NULL;

	for (unsigned int i = 0; i < edges->count; i++) {
		struct stele_edge *edge = &edges->list[i];

		if (edge->offset == offset)
			return edge;
		if (!edge->offset)
			unused = edge;
	}
	if (unused)
		unused->offset = offset;
	return unused;
}

int stele_edges_put(struct stele_edges *edges, uint64_t offset,
		    const void *data, size_t size, bool present)
{
	const uint64_t block = round_down(offset, STELE_BLOCK_SIZE);
	struct stele_edge *edge;
	bool complete = false;
	int ret = 0;

	if (!size)
		return 0;
	pthread_mutex_lock(&edges->lock);
	edge = find(edges, block);
	if (edge) {
		memcpy(edge->block + (offset - block), data, size);
		edge->filled += (uint32_t)size;
		edge->wanted |= !present;
		complete = edge->filled == STELE_BLOCK_SIZE;
	}
	pthread_mutex_unlock(&edges->lock);
	if (!edge)
		return -ENOBUFS;
	if (!complete)
		return 0;

	/* Both sides have come: nobody else looks at this one any more. */
	if (edge->wanted)
		ret = stele_device_write(edges->dev, edge->block, block,
					 STELE_BLOCK_SIZE);
	if (ret < 0 && ret != -ESTALE) /* logged */
		stele_log_error(&edges->dev->log, "cannot write the block at %" PRIu64
				" of the target: %s", block,
				stele_device_strerror(edges->dev, ret));
	pthread_mutex_lock(&edges->lock);
	edge->offset = 0;
	edge->filled = 0;
	edge->wanted = false;
	pthread_mutex_unlock(&edges->lock);
	return ret;
}
