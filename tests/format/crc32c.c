/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc32c.c - the checksum is the one of RFC 3720, however it is cut up
 *
 * Vectors: RFC 3720 appendix B.4, and "123456789" from Rocksoft's catalogue.
 */
#include <string.h>

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

int main(void)
{
	plan_lazy();
	test_vectors();
	test_pieces();
	return done();
}
