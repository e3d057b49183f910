/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webdataset.c - fuzz target: any bytes as a tar archive whose members are grouped
 *
 * Headers get the checksums that they should have.
 */
#include "tests/fuzz/source.h"

#define BLOCK 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	for (size_t at = 0; at + BLOCK <= size; at += BLOCK) {
		unsigned int sum = 0;

		if (memcmp(copy + at + 257, "ustar", 5) != 0)
			continue;
		memset(copy + at + 148, ' ', 8);
		for (size_t i = 0; i < BLOCK; i++)
			sum += copy[at + i];
		snprintf((char *)copy + at + 148, 8, "%06o", sum);
	}
	source_fuzz("webdataset", false, copy, size);
	free(copy);
	return 0;
}
