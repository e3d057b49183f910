/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - devices in memory
 */
#ifndef STELE_TESTS_DEVICE_MEMORY_H
#define STELE_TESTS_DEVICE_MEMORY_H

#include "lib/device/device.h"

/* Logical block 512 or 4096; zeroed. */
int stele_device_open_memory(uint64_t size, uint32_t logical_block,
			     struct stele_device **out);
/* Its bytes, to corrupt or compare; valid until close. */
void *stele_device_memory(struct stele_device *dev);

/* All of its bytes are `byte`; or the test ends. */
struct stele_device *test_memory(uint64_t size, uint32_t logical_block,
				 int byte);
/* Its bytes to a file, for a command to look at. */
void test_memory_save(struct stele_device *dev, const char *path);

#endif
