/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - fuzz target: any bytes as a source of format csv
 */
#include "tests/fuzz/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return source_fuzz("csv", false, data, size);
}
