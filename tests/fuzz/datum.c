/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datum.c - fuzz target: any bytes as a Datum
 */
#include "cmd/from/datum.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct datum datum;

	if (!datum_parse(data, size, &datum))
		return 0;
	input_assert(datum.data >= data && datum.data_size <= size);
	input_assert((size_t)(datum.data - data) <= size - datum.data_size);
	input_assert(datum.floats <= size / 4);
	input_touch(datum.data, datum.data_size);
	return 0;
}
