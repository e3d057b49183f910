/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - fuzz target: any bytes as a stream of names, or a deleted list
 *
 * The stream ends where the input does: bytes behind a block's end count too.
 */
#include "format/sections.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t count;
	struct stele_disk_block *blocks =
		input_blocks(data, size, STELE_BLOCK_NAMES, &count);
	const char *why = NULL;
	uint64_t at = 0;
	char *name;
	int ret;

	if (!blocks)
		return 0;
	name = malloc(4001);
	while ((ret = stele_names_next(blocks, count, size, &at, name)) > 0)
		input_assert(strlen(name) == (size_t)ret);
	input_assert(at <= size);
	free(name);
	if (stele_deleted_check(blocks, count * STELE_DELETED_PER_BLOCK - 5,
				data[0], &why) < 0)
		input_assert(why != NULL);
	stele_blocks_check(blocks, count, STELE_BLOCK_NAMES, INPUT_OFFSET,
			   INPUT_OWNER, NULL);
	free(blocks);
	return 0;
}
