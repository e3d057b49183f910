/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.c - the one door to isa-l's CRC-32C
 *
 * isa-l takes the register as it is (no inversion before or after), a buffer
 * that is not const, and a length that is an int; nothing else in the tree
 * has to know.
 */
#include "format/crc32c.h"

#include <isa-l/crc.h>

#define CHUNK_SIZE ((size_t)1 << 30)

uint32_t stele_crc32c(uint32_t crc, const void *data, size_t size)
{
	const unsigned char *p = data;

	crc = ~crc;
	while (size > 0) {
		size_t chunk = size < CHUNK_SIZE ? size : CHUNK_SIZE;

		crc = crc32_iscsi((unsigned char *)p, (int)chunk, crc);
		p += chunk;
		size -= chunk;
	}
	return ~crc;
}
