/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packing.h - where the samples of a set lie in a tar of them
 *
 * One header block, then the bytes in whole blocks. As all sizes are known, the tar serves
 * as a packed file with an index in memory, too.
 */
#ifndef STELE_BENCH_PACKING_H
#define STELE_BENCH_PACKING_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench/content.h"

#define PACKING_BLOCK 512u

static inline uint64_t packing_round(uint64_t size)
{
	return (size + PACKING_BLOCK - 1) / PACKING_BLOCK * PACKING_BLOCK;
}

/* The ustar header of sample i, PACKING_BLOCK bytes. */
static inline void packing_header(uint64_t i, uint64_t size, char *block)
{
	unsigned int sum = 0;

	memset(block, 0, PACKING_BLOCK);
	content_path(i, block);
	memcpy(block + 100, "0000644\0000000000\0000000000\000", 24);
	snprintf(block + 124, 12, "%011llo", (unsigned long long)size);
	memcpy(block + 136, "00000000000\0        0", 21);
	memcpy(block + 257, "ustar\00000", 8);
	for (unsigned int at = 0; at < PACKING_BLOCK; at++)
		sum += (unsigned char)block[at];
	snprintf(block + 148, 8, "%06o", sum);
}

#endif
