/* SPDX-License-Identifier: Apache-2.0 */
/*
 * area.h - bytes of a tree on their way to the device, or compared with what is there
 *
 * An area is filled from its beginning, in whole blocks, which go out in large pieces.
 */
#ifndef STELE_POSIX_AREA_H
#define STELE_POSIX_AREA_H

#include "lib/device/device.h"

/* Where they go. */
struct stele_posix_output {
	struct stele_device *dev;
	uint64_t *differs; /* NULL: write; else compare, and say where it differs */
};

struct stele_posix_area {
	const struct stele_posix_output *out;
	uint8_t *buffer; /* owned */
	uint64_t at;	 /* on the device, of what is in the buffer */
	uint32_t filled;
};

/* Whole blocks, from stele_device_alloc(). Return: 0; -EUCLEAN (they differ); -ENOMEM; errno. */
int stele_posix_put(const struct stele_posix_output *out, const uint8_t *data, uint64_t at,
		    size_t size);

/* Release in any case. Return: 0; -ENOMEM. */
int stele_posix_area_begin(struct stele_posix_area *area,
			   const struct stele_posix_output *out, uint64_t at);
/* The next `size` bytes, a power of two up to a block, zeroed. NULL: *ret says why. */
uint8_t *stele_posix_area_take(struct stele_posix_area *area, uint32_t size, int *ret);
/* Where on the device what was taken will be. */
static inline uint64_t stele_posix_area_at(const struct stele_posix_area *area,
					   const uint8_t *bytes)
{
	return area->at + (uint64_t)(bytes - area->buffer);
}
/* What was taken so far, and zeros up to the end of a block. Return: as put. */
int stele_posix_area_flush(struct stele_posix_area *area);
/* Idempotent on a zeroed struct. */
void stele_posix_area_release(struct stele_posix_area *area);

#endif
