/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recordio.c - fuzz target: any bytes as a source of format recordio
 */
#include "tests/fuzz/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return source_fuzz("recordio", false, data, size);
}
