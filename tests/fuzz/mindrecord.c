/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mindrecord.c - fuzz target: any bytes as a source of format mindrecord, once with a header whose
 * size is right
 */
#include "tests/fuzz/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size > 8 ? memchr(data + 8, '\0', size - 8) : NULL;
	const uint64_t length = end ? (uint64_t)(end - data) - 8 : 0;
	uint8_t *file;

	source_fuzz("mindrecord", false, data, size);
	file = end ? malloc(size) : NULL;
	if (!file)
		return 0;
	memcpy(file, data, size);
	memcpy(file, &length, 8);
	source_fuzz("mindrecord", false, file, size);
	free(file);
	return 0;
}
