/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.c - fuzz target: any bytes as a source of format npy
 */
#include "tests/fuzz/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return source_fuzz("npy", false, data, size);
}
