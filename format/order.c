/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - bit-packed numbers of the order section
 *
 * An entry is at most 48 bits wide and may start at any bit, so it
 * touches at most seven bytes, all of them within the block.
 */
#include "format/sections.h"

#include "format/decode.h"

#define PAYLOAD_BITS (STELE_BLOCK_PAYLOAD * 8u)

uint32_t stele_order_width(uint64_t count)
{
	if (count < 2)
		return 1;
	return 64u - (uint32_t)__builtin_clzll(count - 1);
}

uint32_t stele_order_per_block(uint32_t width)
{
	return PAYLOAD_BITS / width;
}

uint64_t stele_order_blocks(uint64_t count)
{
	return ceil_div(count, stele_order_per_block(stele_order_width(count)));
}

uint64_t stele_order_get(const struct stele_disk_block *block, uint32_t width,
			 uint32_t index)
{
	const uint32_t bit = index * width;
	const uint32_t shift = bit % 8;
	const uint8_t *p = block->payload + bit / 8;
	uint64_t word = 0;

	for (uint32_t i = 0; i * 8 < shift + width; i++)
		word |= (uint64_t)p[i] << i * 8;
	return word >> shift & ((UINT64_C(1) << width) - 1);
}

void stele_order_put(struct stele_disk_block *block, uint32_t width,
		     uint32_t index, uint64_t value)
{
	const uint32_t bit = index * width;
	const uint32_t shift = bit % 8;
	const uint64_t mask = ((UINT64_C(1) << width) - 1) << shift;
	uint8_t *p = block->payload + bit / 8;

	value <<= shift;
	for (uint32_t i = 0; i * 8 < shift + width; i++) {
		const uint8_t keep = (uint8_t)~(mask >> i * 8);

		p[i] = (uint8_t)((p[i] & keep) | (value >> i * 8 & ~keep));
	}
}
