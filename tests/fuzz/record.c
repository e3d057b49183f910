/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - fuzz target: any bytes as a slot
 *
 * The first byte is the shape: low and high half are the numbers of fields
 * with bytes and of scalars. The decoder does not look at the checksum.
 */
#include "format/record.h"
#include "tests/fuzz/input.h"

static void use(const struct stele_record *r,
		const struct stele_record_shape *shape)
{
	uint32_t ends = shape->bytes_count ? shape->bytes_count - 1 : 0;
	uint64_t before = 0;

	input_touch(r->payload, r->payload_size);
	input_touch(r->key, r->key_size);
	input_touch(r->scalars, shape->scalar_count * sizeof(le64));
	for (uint32_t i = 0; i < ends; i++) {
		input_assert(le64_get(r->ends[i]) >= before);
		before = le64_get(r->ends[i]);
	}
	input_assert(before <= r->payload_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stele_record_shape shape;
	struct stele_record r;
	const char *why = NULL;
	uint8_t *slot = input_bytes(data, &size);

	if (!slot)
		return 0;
	shape = (struct stele_record_shape){data[0] & 15, data[0] >> 4};
	if (stele_record_decode(slot, size, &shape, &r, &why) == 0)
		use(&r, &shape);
	else
		input_assert(why != NULL);
	if (size >= 64)
		stele_record_decode_tail(slot + size - 64, 64, size, &shape, &r,
					 NULL);
	free(slot);
	return 0;
}
