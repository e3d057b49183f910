/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column.c - what the bounds of a column's blocks tell
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/device/device.h"
#include "lib/image/section.h"

#define BLOCKS_PER_READ UINT64_C(64)

int stele_column_is(const struct stele_image *image, const struct stele_segment *segment,
		    uint32_t field, int64_t value)
{
	struct stele_disk_block *blocks;
	struct stele_section section;
	uint64_t count, at = 0;
	int ret = 1;

	if (stele_descriptor_find_section(&segment->descriptor, STELE_BLOCK_COLUMN, field,
					  &section) < 0)
		return -EUCLEAN;
	blocks = stele_device_alloc(image->dev, BLOCKS_PER_READ * STELE_BLOCK_SIZE);
	if (!blocks)
		return -ENOMEM;
	for (uint64_t left = section.size / STELE_BLOCK_SIZE; left && ret > 0; left -= count) {
		count = left < BLOCKS_PER_READ ? left : BLOCKS_PER_READ;
		ret = stele_section_read(image, segment, &section, at, count, blocks);
		at += count;
		ret = ret < 0 ? ret : 1;
		for (uint64_t i = 0; i < count && ret > 0; i++) {
			const struct stele_disk_column *column = (const void *)blocks[i].payload;

			ret = (int64_t)le64_get(column->min) == value &&
			      (int64_t)le64_get(column->max) == value;
		}
	}
	free(blocks);
	return ret;
}
