/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - see memory.h
 */
#include "tests/memory.h"

#include <stdio.h>
#include <string.h>

#include "tests/tap.h"

struct stele_device *test_memory(uint64_t size, uint32_t logical_block,
				 int byte)
{
	struct stele_device *dev;

	if (stele_device_open_memory(size, logical_block, &dev) < 0)
		bail("no memory device");
	if (byte) /* else its pages are not there yet */
		memset(stele_device_memory(dev), byte, size);
	return dev;
}

void test_memory_save(struct stele_device *dev, const char *path)
{
	FILE *file = fopen(path, "w");
	uint64_t size;

	if (stele_device_size(dev, &size) || !file ||
	    fwrite(stele_device_memory(dev), 1, size, file) != size ||
	    fclose(file) != 0)
		sysbail("%s", path);
}
