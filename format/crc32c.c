/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.c - the only user of isa-l's CRC-32C
 *
 * isa-l takes the raw register (no inversion before or after), a buffer
 * that is not const, and an int length; and it leaves the upper
 * halves of the vector registers dirty. Nothing else in the tree has to know.
 */
#include "format/crc32c.h"

#include <isa-l/crc.h>

#define CHUNK_SIZE ((size_t)1 << 30)

#ifdef __x86_64__
/*
 * With those halves in use, code that is made for SSE waits for them at each
 * instruction: SHA-256 by libcrypto, behind a checksum of the same bytes, took
 * 1.35 times as long. No inlining: only a call ends what else is in them.
 */
__attribute__((target("avx"), noinline)) static void clear_upper_halves(void)
{
	__builtin_ia32_vzeroupper();
}

static void leave_vectors(void)
{
	if (__builtin_cpu_supports("avx"))
		clear_upper_halves();
}
#else
static void leave_vectors(void)
{
}
#endif

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
	leave_vectors();
	return ~crc;
}
