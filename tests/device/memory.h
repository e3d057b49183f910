/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - devices of memory, for tests that need no other
 */
#ifndef STELE_TESTS_DEVICE_MEMORY_H
#define STELE_TESTS_DEVICE_MEMORY_H

#include "lib/device/device.h"

/* All of its bytes are `byte`; or the test ends. */
struct stele_device *test_memory(uint64_t size, uint32_t logical_block,
				 int byte);
/* Its bytes to a file, for a command to look at. */
void test_memory_save(struct stele_device *dev, const char *path);

#endif
