/* SPDX-License-Identifier: Apache-2.0 */
/*
 * area.c - see area.h
 */
#include "lib/posix/area.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/block.h"

#define BUFFER_SIZE (UINT32_C(1) << 20)

static int compare(const struct stele_posix_output *out, const uint8_t *data, uint64_t at,
		   size_t size)
{
	uint8_t *seen = stele_device_alloc(out->dev, size);
	int ret = seen ? stele_device_read(out->dev, seen, at, size) : -ENOMEM;

	for (size_t i = 0; ret == 0 && i < size; i += STELE_BLOCK_SIZE) {
		if (!memcmp(seen + i, data + i, STELE_BLOCK_SIZE))
			continue;
		*out->differs = at + i;
		ret = -EUCLEAN;
	}
	free(seen);
	return ret;
}

int stele_posix_put(const struct stele_posix_output *out, const uint8_t *data, uint64_t at,
		    size_t size)
{
	if (!size)
		return 0;
	return out->differs ? compare(out, data, at, size) :
			      stele_device_write(out->dev, data, at, size);
}

int stele_posix_area_begin(struct stele_posix_area *area,
			   const struct stele_posix_output *out, uint64_t at)
{
	*area = (struct stele_posix_area){.out = out, .at = at};
	area->buffer = stele_device_alloc(out->dev, BUFFER_SIZE);
	if (!area->buffer)
		return -ENOMEM;
	memset(area->buffer, 0, BUFFER_SIZE);
	return 0;
}

int stele_posix_area_flush(struct stele_posix_area *area)
{
	const uint32_t size = (uint32_t)round_up(area->filled, STELE_BLOCK_SIZE);
	int ret = stele_posix_put(area->out, area->buffer, area->at, size);

	memset(area->buffer, 0, size);
	area->at += size;
	area->filled = 0;
	return ret;
}

uint8_t *stele_posix_area_take(struct stele_posix_area *area, uint32_t size, int *ret)
{
	uint8_t *bytes;

	*ret = area->filled == BUFFER_SIZE ? stele_posix_area_flush(area) : 0;
	if (*ret < 0)
		return NULL;
	bytes = area->buffer + area->filled;
	area->filled += size;
	return bytes;
}

void stele_posix_area_release(struct stele_posix_area *area)
{
	free(area->buffer);
	area->buffer = NULL;
}
