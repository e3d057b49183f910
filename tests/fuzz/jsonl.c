/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsonl.c - fuzz target: any bytes as a source of format jsonl
 */
#include "tests/fuzz/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return source_fuzz("jsonl", false, data, size);
}
