/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.c - a buffer of blocks, and where it goes
 */
#include "lib/segment/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stele_blocks_open(struct stele_blocks_writer *writer,
		      struct stele_device *dev, uint64_t offset,
		      uint64_t buffer_size)
{
	memset(writer, 0, sizeof(*writer));
	writer->dev = dev;
	writer->offset = offset;
	writer->capacity = buffer_size / STELE_BLOCK_SIZE;
	writer->buffer = stele_device_alloc(dev, writer->capacity *
						 STELE_BLOCK_SIZE);
	return writer->buffer ? 0 : -ENOMEM;
}

void stele_blocks_close(struct stele_blocks_writer *writer)
{
	free(writer->buffer);
	memset(writer, 0, sizeof(*writer));
}

int stele_blocks_flush(struct stele_blocks_writer *writer)
{
	const uint64_t size = writer->count * STELE_BLOCK_SIZE;
	int ret = 0;

	if (size)
		ret = stele_device_write(writer->dev, writer->buffer,
					 writer->offset, size);
	writer->offset += size;
	writer->count = 0;
	return ret;
}

int stele_blocks_next(struct stele_blocks_writer *writer,
		      struct stele_disk_block **block)
{
	if (writer->count == writer->capacity) {
		int ret = stele_blocks_flush(writer);

		if (ret < 0)
			return ret;
	}
	*block = &writer->buffer[writer->count++];
	memset(*block, 0, sizeof(**block));
	return 0;
}

uint64_t stele_blocks_offset(const struct stele_blocks_writer *writer)
{
	return writer->offset + writer->count * STELE_BLOCK_SIZE;
}

uint64_t stele_blocks_last(const struct stele_blocks_writer *writer)
{
	return stele_blocks_offset(writer) - STELE_BLOCK_SIZE;
}

int stele_blocks_put(struct stele_blocks_writer *writer,
		     const struct stele_disk_block *blocks, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		struct stele_disk_block *block;
		int ret = stele_blocks_next(writer, &block);

		if (ret < 0)
			return ret;
		memcpy(block, &blocks[i], sizeof(*block));
	}
	return 0;
}
