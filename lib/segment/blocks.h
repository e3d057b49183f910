/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - metadata blocks one behind the other, in large blocking writes
 */
#ifndef STELE_SEGMENT_BLOCKS_H
#define STELE_SEGMENT_BLOCKS_H

#include "format/block.h"
#include "lib/device/device.h"

struct stele_blocks_writer {
	struct stele_device *dev;
	struct stele_disk_block *buffer;
	uint64_t capacity, count; /* blocks in the buffer */
	uint64_t offset;	  /* on the target, of the buffer's first one */
};

/* Begin at `offset`, a block's. Return: 0; -ENOMEM. */
int stele_blocks_open(struct stele_blocks_writer *writer,
		      struct stele_device *dev, uint64_t offset,
		      uint64_t buffer_size);
/* Idempotent on a zeroed struct; what is not flushed is dropped. */
void stele_blocks_close(struct stele_blocks_writer *writer);

/* The next block, zeroed. Return: 0; errno of the device. */
int stele_blocks_next(struct stele_blocks_writer *writer,
		      struct stele_disk_block **block);
/* Where the block that next() gave last will lie. */
uint64_t stele_blocks_last(const struct stele_blocks_writer *writer);
/* Where the next block will lie. */
uint64_t stele_blocks_offset(const struct stele_blocks_writer *writer);
/* Whole blocks as they are. */
int stele_blocks_put(struct stele_blocks_writer *writer,
		     const struct stele_disk_block *blocks, uint64_t count);
int stele_blocks_flush(struct stele_blocks_writer *writer);

#endif
