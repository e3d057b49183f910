/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segments.c - all segments of a snapshot: their descriptors are read side by side
 *
 * What a queue could not read is left to who loads that segment, who reads it again or
 * the other copy, and says what is wrong with it.
 */
#include "lib/image/snapshot.h"

#include <errno.h>
#include <stdlib.h>

#define READ_MANY  4u /* descriptors that are worth a queue */
#define READ_DEPTH 64u

/* Size 0: nothing to read. */
static void ask_for(const struct stele_image *image,
		    const struct stele_catalog_segment *where,
		    struct stele_request *request)
{
	*request = (struct stele_request){.op = STELE_OP_READ,
					  .offset = where->offset};
	if (where->descriptor_size > image->dev->limits.transfer_max ||
	    where->descriptor_size > STELE_DESCRIPTOR_SIZE_MAX ||
	    where->descriptor_size > where->size)
		return;
	request->data = stele_device_alloc(image->dev, where->descriptor_size);
	if (request->data)
		request->size = (uint32_t)where->descriptor_size;
}

/* The first copies. Where a queue broke, memory may be written to for ever. */
static void read_all(struct stele_image *image,
		     const struct stele_segment_at *at, uint32_t count,
		     void **blocks)
{
	struct stele_request *requests = calloc(count, sizeof(*requests));
	struct stele_queue *queue = NULL;
	uint32_t asked = 0;
	bool good = requests && !stele_queue_open(image->dev, READ_DEPTH, NULL,
						  0, &queue);

	for (uint32_t i = 0; good && i < count; i++) {
		ask_for(image, &at[i].where, &requests[asked]);
		if (!requests[asked].size)
			continue;
		requests[asked].user = &blocks[i];
		asked++;
	}
	if (good)
		good = stele_queue_run(queue, requests, asked) == 0;
	if (stele_queue_close(queue))
		asked = 0;
	for (uint32_t i = 0; i < asked; i++) {
		if (good && requests[i].status == 0)
			*(void **)requests[i].user = requests[i].data;
		else
			free(requests[i].data);
	}
	free(requests);
}

int stele_segments_load(struct stele_image *image,
			const struct stele_segment_at *at, uint32_t count,
			struct stele_segment *out, uint32_t *loaded)
{
	void **blocks = calloc((size_t)count + 1, sizeof(*blocks));
	int ret = blocks ? 0 : -ENOMEM;

	*loaded = 0;
	if (blocks && count >= READ_MANY)
		read_all(image, at, count, blocks);
	for (uint32_t i = 0; i < count && ret == 0; i++) {
		ret = stele_segment_load_like(image, &at[i], blocks[i],
					      i ? &out[i - 1] : NULL, &out[i]);
		blocks[i] = NULL; /* the segment's, or released with it */
		*loaded += ret == 0;
	}
	for (uint32_t i = 0; blocks && i < count; i++)
		free(blocks[i]);
	free(blocks);
	return ret;
}
