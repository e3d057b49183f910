/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ffrecord.c - fuzz target: any bytes as an FFRecord file, once with a header that is right
 */
#include <isa-l/crc.h>

#include "tests/fuzz/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *file;
	uint64_t count;
	uint32_t crc;

	source_fuzz("ffrecord", false, data, size);
	if (size < 12)
		return 0;
	memcpy(&count, data + 4, 8);
	if (count > (size - 12) / 12)
		return 0;
	file = malloc(size);
	if (!file)
		return 0;
	memcpy(file, data, size);
	crc = crc32_gzip_refl(0, file + 4, 8 + count * 12);
	memcpy(file, &crc, 4);
	source_fuzz("ffrecord", false, file, size);
	free(file);
	return 0;
}
