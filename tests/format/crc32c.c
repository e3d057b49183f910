/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.c - the checksum is the one of RFC 3720, however it is cut up
 *
 * Vectors: RFC 3720 appendix B.4, and "123456789" from Rocksoft's catalogue.
 */
#include <string.h>

#include "format/block.h"
#include "format/crc32c.h"
#include "tests/tap.h"

static void test_vectors(void)
{
	uint8_t data[32];

	memset(data, 0, sizeof(data));
	is_hex(0x8a9136aa, stele_crc32c(0, data, 32), "32 bytes of zero");
	memset(data, 0xff, sizeof(data));
	is_hex(0x62a8ab43, stele_crc32c(0, data, 32), "32 bytes of ones");
	for (uint8_t i = 0; i < 32; i++)
		data[i] = i;
	is_hex(0x46dd794e, stele_crc32c(0, data, 32), "32 bytes ascending");
	for (uint8_t i = 0; i < 32; i++)
		data[i] = (uint8_t)(31 - i);
	is_hex(0x113fdb5c, stele_crc32c(0, data, 32), "32 bytes descending");
	is_hex(0xe3069283, stele_crc32c(0, "123456789", 9), "check string");
}

static void test_pieces(void)
{
	const char *text = "a stele is carved once and read by everyone";
	size_t size = strlen(text);
	uint32_t whole = stele_crc32c(0, text, size);
	unsigned int wrong = 0;

	is_hex(0, stele_crc32c(0, text, 0), "nothing has the checksum 0");
	is_hex(whole, stele_crc32c(whole, text, 0), "nothing changes nothing");
	for (size_t i = 0; i <= size; i++)
		wrong += stele_crc32c(stele_crc32c(0, text, i), text + i,
				      size - i) != whole;
	is_uint(0, wrong, "two pieces make the whole, wherever it is cut");
}

#ifdef __x86_64__
#define UPPER(n) "vextractf128 $1, %%ymm" #n ", 16*" #n "(%0)\n\t"

/* The upper halves of all vector registers, as the checksum left them. */
__attribute__((target("avx"))) static unsigned int upper_in_use(void)
{
	uint8_t data[STELE_BLOCK_SIZE] = {1}, upper[16 * 16] = {0};
	unsigned int used = 0;

	stele_crc32c(0, data, sizeof(data));
	__asm__ volatile(UPPER(0) UPPER(1) UPPER(2) UPPER(3) UPPER(4) UPPER(5)
			 UPPER(6) UPPER(7) UPPER(8) UPPER(9) UPPER(10)
			 UPPER(11) UPPER(12) UPPER(13) UPPER(14) UPPER(15)
			 : : "r"(upper) : "memory");
	for (size_t i = 0; i < sizeof(upper); i++)
		used += upper[i] != 0;
	return used;
}

static void test_registers(void)
{
	if (!__builtin_cpu_supports("avx")) /* not a skip: nothing can be installed */
		diag("a processor without AVX has no upper halves");
	else
		is_uint(0, upper_in_use(), "vector registers are left as SSE likes them");
}
#else
static void test_registers(void)
{
	skip_block(1, "AVX is for x86-64");
}
#endif

int main(void)
{
	plan_lazy();
	test_vectors();
	test_pieces();
	test_registers();
	return done();
}
