/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - fuzz target: any bytes as a page of keys
 *
 * A page that reads to its end is written again to the same bytes.
 */
#include "format/keys.h"
#include "tests/fuzz/input.h"

static void use(const struct stele_disk_block *block)
{
	struct stele_disk_block again = {0};
	struct stele_keys_cursor cursor;
	struct stele_keys_writer writer;
	const char *why = NULL;
	int ret = stele_keys_open(&cursor, block, &why);

	stele_keys_begin(&writer, &again);
	while (ret == 0 && (ret = stele_keys_next(&cursor, &why)) == 1) {
		const struct stele_key *k = &cursor.key;

		input_assert(writer.count == 0 ||
			     stele_key_compare(writer.last, writer.last_size,
					       k->key, k->key_size) < 0);
		input_assert(stele_keys_add(&writer, k->key, k->key_size,
					    k->number, k->size));
		ret = 0;
	}
	stele_keys_end(&writer);
	input_assert(ret < 0 ? why != NULL
			     : memcmp(block->payload, again.payload,
				      STELE_BLOCK_PAYLOAD) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t count;
	struct stele_disk_block *blocks =
		input_blocks(data, size, STELE_BLOCK_KEYS, &count);

	if (!blocks)
		return 0;
	if (stele_block_check(blocks, STELE_BLOCK_KEYS, INPUT_OFFSET,
			      INPUT_OWNER, NULL) == 0)
		use(blocks);
	free(blocks);
	return 0;
}
