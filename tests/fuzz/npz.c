/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npz.c - fuzz target: any bytes as a source of format npz
 */
#include "tests/fuzz/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return source_fuzz("npz", false, data, size);
}
