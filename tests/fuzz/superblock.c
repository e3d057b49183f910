/* SPDX-License-Identifier: Apache-2.0 */
/*
 * superblock.c - fuzz target: any bytes as a superblock
 *
 * Bit 0 makes the block good but keeps the generation; what decodes must be
 * encoded to the same bytes.
 */
#include "format/superblock.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stele_disk_superblock disk = {0}, again;
	struct stele_disk_block *block = (struct stele_disk_block *)&disk;
	struct stele_superblock sb;
	const char *why = NULL;

	if (size < 2 || size > sizeof(disk) + 1)
		return 0;
	memcpy(&disk, data + 1, size - 1);
	if (data[0] & 1)
		stele_block_seal(block, STELE_BLOCK_SUPERBLOCK, INPUT_OFFSET,
				 le64_get(block->owner));
	if (stele_superblock_decode(&disk, INPUT_OFFSET, &sb, &why) < 0) {
		input_assert(why != NULL);
		return 0;
	}
	input_assert(stele_superblock_same(&sb, &sb));
	stele_superblock_encode(&sb, INPUT_OFFSET, &again);
	input_assert(memcmp(&disk, &again, sizeof(disk)) == 0);
	return 0;
}
