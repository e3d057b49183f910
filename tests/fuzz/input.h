/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - from the bytes of a fuzzer to the blocks of a decoder
 *
 * The first byte of an input chooses: bit 0, whether checksums and headers are
 * made good, since random bytes would never get past them; the other bits are
 * the target's. The rest is blocks, the last one padded with zeros, in memory
 * of exactly their size, so that ASan sees the first byte too far.
 */
#ifndef STELE_TESTS_FUZZ_INPUT_H
#define STELE_TESTS_FUZZ_INPUT_H

#include <stdlib.h>
#include <string.h>

#include "format/block.h"

#define INPUT_OFFSET     UINT64_C(0x400000)
#define INPUT_OWNER      UINT64_C(0x2222)
#define INPUT_BLOCKS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Return: blocks to be freed, NULL if there are none or too many. */
static inline struct stele_disk_block *input_blocks(const uint8_t *data,
						    size_t size,
						    enum stele_block_type type,
						    size_t *count)
{
	struct stele_disk_block *blocks;

	if (size < 2)
		return NULL;
	*count = (size - 1 + STELE_BLOCK_SIZE - 1) / STELE_BLOCK_SIZE;
	if (*count > INPUT_BLOCKS_MAX)
		return NULL;
	blocks = calloc(*count, sizeof(*blocks));
	if (!blocks)
		return NULL;
	memcpy(blocks, data + 1, size - 1);
	if (data[0] & 1)
		stele_blocks_seal(blocks, *count, type, INPUT_OFFSET,
				  INPUT_OWNER);
	return blocks;
}

/*
 * What follows the first byte, as it is. Return: *size bytes to be freed, NULL if there
 * are none.
 */
static inline void *input_bytes(const uint8_t *data, size_t *size)
{
	void *bytes;

	if (*size < 2)
		return NULL;
	bytes = malloc(--*size);
	if (bytes)
		memcpy(bytes, data + 1, *size);
	return bytes;
}

/* Read every byte, so that a pointer out of bounds is seen. */
static inline void input_touch(const void *data, size_t size)
{
	static volatile uint8_t sink;
	const uint8_t *p = data;

	for (size_t i = 0; i < size; i++)
		sink = (uint8_t)(sink ^ p[i]);
}

/* What holds after a decoder said yes. */
static inline void input_assert(bool holds)
{
	if (!holds)
		abort();
}

#endif
