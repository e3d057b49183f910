/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfrecord.c - fuzz target: any bytes as a file of TFRecords, and as one Example in such a file
 */
#include <isa-l/crc.h>

#include "tests/fuzz/source.h"

static void put_crc(uint8_t *at, const uint8_t *data, size_t size)
{
	const uint32_t crc = ~crc32_iscsi((unsigned char *)(uintptr_t)data, (int)size, ~0u);
	const uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;

	for (unsigned int i = 0; i < 4; i++)
		at[i] = (uint8_t)(masked >> 8 * i);
}

/* As a record whose checksums are right. */
static void fuzz_example(const uint8_t *data, size_t size)
{
	uint8_t *record = calloc(1, size + 16);

	if (!record)
		return;
	for (unsigned int i = 0; i < 8; i++)
		record[i] = (uint8_t)((uint64_t)size >> 8 * i);
	put_crc(record + 8, record, 8);
	memcpy(record + 12, data, size);
	put_crc(record + 12 + size, record + 12, size);
	source_fuzz("tfrecord", true, record, size + 16);
	free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 1 && data[0] & 1)
		fuzz_example(data + 1, size - 1);
	else if (size)
		source_fuzz("tfrecord", data[0] & 2, data + 1, size - 1);
	return 0;
}
